"""Example 21: how much elasticity is enough.

Six parallel links carry a platform, which five of them would hold. Rigid bodies leave the forces in
the four lower links undecided, and the elasticity of links decides them: but that of one link alone
makes this link carry nothing, as if it were not there, and that of two or three gives other forces
again. The model looks decided each time; nothing but the comparison with all links elastic tells
that four of them are needed. The two upper links need not be elastic (Wojtyra & Fraczek 2012).
"""

import jax

import jaxmbs as jm
from jaxmbs import elastic
from jaxmbs.plot import draw_flexibility


jax.config.update("jax_enable_x64", True)

model = jm.mechanisms.elastic_parallelogram()
found = elastic.flexibility(model)
print(found)

lower = [own.elastic for own in found.smallest]
print("elastic links that are enough:", *lower)

# The upper links decide nothing, alone or beside others.
print(elastic.flexibility(model, subsets=[["KL", "MN"], ["AB", "KL", "MN"]]))

draw_flexibility(found).savefig("21_flexibility.png", dpi=130)
