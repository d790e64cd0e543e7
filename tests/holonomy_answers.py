"""What tests of holonomy ask, and how they read the answer."""

import jax
import jax.numpy as jnp

import jaxmbs as jm


KEY = jax.random.key(3)

# Measures are sums of a few dozen products of numbers of size one.
ROUNDING = 1e-12


def ask(system, q, t=0.0, **options):
    return jm.holonomy(system, jnp.asarray(q, float), t, **{"key": KEY, **options})


def verdict(found):
    """Holonomic nearby, here, and how many combinations of how many independent rows are."""
    own = found.together
    return (
        own.integrable.tolist(),
        own.here.tolist(),
        int(own.integrable_rows),
        int(own.rank),
    )
