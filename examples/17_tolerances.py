"""Example 17: parts with tolerances.

Six parallel links carry a platform. Every hole lies where it was drilled: each coordinate of each
marker point deviates at random, with a standard deviation of a tenth of a millimetre. So the six
links no longer fit together, and the misfit of the one redundant constraint says by how much. The
forces in the two upper links are unique; they vary with the geometry, by less than a newton. Those
in the four lower ones are not: the misfit strains the links, with a force that stiffness alone can
tell. What a rigid-body model prints for them is one of many, and says so.

With the stiffness of the links each mechanism is loaded by its own parts: a tenth of a millimetre
is worth about a thousand newtons.
"""

import jax
import numpy as np

import jaxmbs as jm
from jaxmbs.plot import draw_spread


jax.config.update("jax_enable_x64", True)

model = jm.mechanisms.parallelogram()
question = jm.sweeps.Misfit(model)
cases = jm.sweeps.tolerances(model, 1e-4, 1000, seed=0)
found = jm.sweep(question, model, cases)
print(found)
print(jm.sweeps.spread(found))

# To first order the residual of each row is the difference of two deviations, and N_h has unit
# length: the misfit varies by the square root of 2 times as much as a coordinate does.
answers = found.answers()
ratio = np.std(answers.misfit, axis=0, ddof=1) / (np.sqrt(2.0) * 1e-4)
print("standard deviation of the misfit against the first order:", ratio)

# Elastic links (N/m): now the lower ones have forces, which vary with the misfit and hardly with
# anything else.
elastic = jm.mechanisms.elastic_parallelogram()
stressed = jm.sweep(jm.sweeps.Misfit(elastic, elastic=True), elastic, cases)
print(jm.sweeps.spread(stressed))
figure = draw_spread(stressed, ["K", "A"])
figure.savefig("17_tolerances.png", dpi=130)
