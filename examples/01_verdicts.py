"""Example 1: which reactions of a mechanism are unique?

A spatial parallelogram carries its platform on six parallel links and is overconstrained once. The
report says which of its twelve spherical joints a rigid-body model determines: those of the two
upper links, K, L, M and N (Wojtyra & Fraczek 2012). The picture shows them.
"""

import jax

import jaxmbs as jm
from jaxmbs.plot import draw_mechanism


jax.config.update("jax_enable_x64", True)

model = jm.mechanisms.parallelogram()
system = model.system()
report = jm.analyze(system, system.reference_q)
print(report)
print("rows that may be dropped together:", ", ".join(jm.criteria.complete_removal(report)))
for members in jm.dependent_sets(report).sets:
    print("dependent set:", ", ".join(members))

figure = draw_mechanism(model, system, report, system.reference_q)
figure.savefig("01_verdicts.png", dpi=130)
