"""Example 22: which links are elastic decides what they carry.

Six parallel links carry a platform, one too many: rigid bodies leave the forces in the four lower
ones open. With one of them elastic no redundant constraint is left, and a simulation prints all
forces; but the elastic one carries nothing, as if it had been taken out. With two or three elastic
links the numbers are others again, each as smooth and as unique as the last. Only with all four do
the links share the load as their stiffness says, and elastic upper links change nothing about that
(Wojtyra & Fraczek 2012, Figs. 6-9).

The motion is that of the rigid mechanism in all cases: which compliances there are is a matter of
numbers, so that one compiled function answers for all of them.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

system = jm.mechanisms.elastic_parallelogram().system()
links = ("AB", "CD", "EF", "GH", "KL", "MN")
stiffness = 17e6  # N/m
motion = jm.simulate(system, system.reference_q, system.initial_v, 1.0, every=0.01)


@jax.jit
def forces(compliance):
    """Mean axial forces of all links at all saved times (N, compression positive)."""

    def at(q, v, t):
        equations = system.equations(q, v, t)
        chosen = eqx.tree_at(lambda e: e.elasticity.compliance, equations, compliance)
        found = jm.formulations.ElasticResolution().solve(chosen)
        return system.deformation_matrix(q, v, t).T @ found.multipliers

    return jax.vmap(at)(motion.q, motion.v, motion.times)


cases = {
    "AB elastic": ("AB",),
    "AB and CD": ("AB", "CD"),
    "AB, CD and EF": ("AB", "CD", "EF"),
    "all four lower links": links[:4],
}
found = {
    case: forces(jnp.asarray(np.isin(links, soft) / stiffness)) for case, soft in cases.items()
}
everything = forces(jnp.full(6, 1 / stiffness))
change = np.max(np.abs(everything - found["all four lower links"]))
print(
    f"elastic upper links on top of all four lower ones change no force by more than {change:.2g} N"
)
print("at the start, N:")
for case, values in found.items():
    print(f"  {case}:", np.asarray(values[0]).round(4))
assert np.max(np.abs(found["AB elastic"][:, 0])) < 1e-6  # equivalent to dropping a row
# With links alike the pseudoinverse happens to say the same; not where one is stiffer.
unlike = forces(jnp.asarray(np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0]) / stiffness))
plain = system.deformation_matrix(motion.q[0], motion.v[0], 0.0).T @ motion.multipliers[0]
print("  GH twice as stiff:", np.asarray(unlike[0]).round(4))
print("  rigid, least norm of multipliers:", np.asarray(plain).round(4))

figure, axes = plt.subplots(
    2, 2, figsize=(9.0, 6.4), sharex=True, sharey=True, layout="constrained"
)
styles = ("k-", "k--", "k:", "k-.")
for panel, (case, values) in zip(axes.flat, found.items(), strict=True):
    for k, style in enumerate(styles):
        panel.plot(motion.times, values[:, k] / 1000, style, label=links[k])
    panel.set_title(case, fontsize=10)
    panel.grid(alpha=0.3)
for panel in axes[1]:
    panel.set_xlabel("time (s)")
for panel in axes[:, 0]:
    panel.set_ylabel("axial force (kN, compression > 0)")
axes[0, 1].text(0.5, 0.12, "AB and CD carry the same", transform=axes[0, 1].transAxes, fontsize=9)
handles, labels = axes[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, ncols=4, loc="outside upper center")
figure.savefig("22_elastic_resolution.png", dpi=130)
