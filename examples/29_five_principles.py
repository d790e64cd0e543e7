"""Example 29: one motion by five principles of mechanics.

A rod hangs on a cart, and a coin rolls and leans on a table. Their accelerations come from Newton
and Euler with multipliers in absolute coordinates, from Lagrange with multipliers in generalized
coordinates, from Kane's generalized speeds and partial velocities, from Maggi's equations in
quasi-velocities, and from the explicit equation of Udwadia and Kalaba. They agree to rounding. What
they solve for differs, and so does what becomes of them where every row of the hinge, and of the
contact, stands there twice (Zhao et al. 2018, section 6, compares the five in words).
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import planar, spatial


jax.config.update("jax_enable_x64", True)

G = 9.81
# Random ones, and as many along a motion: programs are the same.
STATES = 121
UP = np.array([0.0, 0.0, 1.0])


# ---------------------------------------------------------------------------------------------
# Two mechanisms
# ---------------------------------------------------------------------------------------------


class AbstractMechanism(eqx.Module):
    """Bodies whose velocities along the world's axes (linear and angular, body by body) are the
    language that all principles speak in the end. q are generalized coordinates, of which some
    are too many; v = dq/dt; u are Kane's generalized speeds, as many as there are freedoms."""

    coordinates: ClassVar[tuple[str, ...]]
    lengths: ClassVar[tuple[str, ...]]
    joint: ClassVar[str]
    # Rates that Maggi takes as quasi-velocities.
    free: ClassVar[tuple[int, ...]]
    # Columns of the force at the joint on the last body: absolute, generalized.
    columns: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]]
    # Of all velocities along the world's axes, those that are angular.
    angular: ClassVar[tuple[int, ...]]
    gravity: ClassVar[tuple[float, ...]]
    size: eqx.AbstractVar[jax.Array]  # m

    @abc.abstractmethod
    def allowed(self, numbers: Any) -> Any:
        """q of as many numbers, those replaced that the holonomic rows determine."""

    @abc.abstractmethod
    def absolute(self, q: Any) -> Any:
        """The coordinates of all bodies, as jaxmbs has them."""

    @abc.abstractmethod
    def velocities(self, q: Any, v: Any) -> Any:
        """Of all bodies, along the world's axes."""

    @abc.abstractmethod
    def momenta(self, q: Any, v: Any) -> Any:
        """Likewise."""

    @abc.abstractmethod
    def weights(self) -> Any:
        """Forces and torques of gravity, likewise."""

    @abc.abstractmethod
    def potential(self, q: Any) -> Any:
        """Of the weights."""

    @abc.abstractmethod
    def rates(self, q: Any, u: Any) -> Any:
        """v of generalized speeds: none of these breaks a constraint."""

    @abc.abstractmethod
    def speeds(self, q: Any, v: Any) -> Any:
        """Generalized speeds."""

    @abc.abstractmethod
    def parts(self, names: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
        """Bodies and joints in absolute coordinates, the joint once under each of the names."""

    @abc.abstractmethod
    def constraints(self, names: tuple[str, ...]) -> dict[str, Any]:
        """The same joint in generalized coordinates."""

    def lagrangian(self, q: Any, v: Any) -> Any:
        return self.velocities(q, v) @ self.momenta(q, v) / 2 - self.potential(q)

    def mass_matrix(self, q: Any) -> Any:
        return jax.hessian(self.lagrangian, 1)(q, jnp.zeros_like(q))

    def force(self, q: Any, v: Any, t: Any) -> Any:
        """What Lagrange's equations hold beside M dv/dt."""
        del t
        momentum = jax.grad(self.lagrangian, 1)
        _, change = jax.jvp(lambda q: momentum(q, v), (q,), (v,))
        return jax.grad(self.lagrangian)(q, v) - change


class CartAndRod(AbstractMechanism):
    """q: the place x of the cart on a level rail, the centre X, Y of the rod that hangs on it, its
    angle. Two rows of the hinge are holonomic."""

    coordinates = ("x", "X", "Y", "angle")
    lengths = ("x", "X", "Y")
    joint = "hinge"
    free = (0, 3)
    columns = ((3, 4), (1, 2))
    angular = (2, 5)
    gravity = (0.0, -G)
    masses: jax.Array  # kg
    inertia: jax.Array  # kg m2
    size: jax.Array  # m, from the hinge to the centre of the rod

    def allowed(self, numbers):
        return numbers.at[1:3].add(-self.gap(numbers, 0.0))

    def absolute(self, q):
        return jnp.concatenate([q[:1], jnp.zeros(2), q[1:]])

    def velocities(self, q, v):
        return self.absolute(v)

    def momenta(self, q, v):
        cart, rod = self.masses
        zero = 0.0 * cart
        return jnp.stack([cart, zero, zero, rod, rod, self.inertia]) * self.absolute(v)

    def weights(self):
        cart, rod = self.masses
        return -G * jnp.zeros(6).at[1].set(cart).at[4].set(rod)

    def potential(self, q):
        return self.masses[1] * G * q[2]

    def centre(self, angle):
        """Of the rod, from the hinge."""
        return self.size * jnp.stack([jnp.sin(angle), -jnp.cos(angle)])

    def gap(self, q, t):
        return q[1:3] - self.centre(q[3]) - jnp.stack([q[0], 0.0 * q[0]])

    def rates(self, q, u):
        """u: velocity of the cart, angular velocity of the rod."""
        across = self.size * jnp.stack([jnp.cos(q[3]), jnp.sin(q[3])])
        rod = u[1] * across + jnp.stack([u[0], 0.0 * u[0]])
        return jnp.concatenate([u[:1], rod, u[1:]])

    def speeds(self, q, v):
        return v[jnp.array([0, 3])]

    def parts(self, names):
        cart, rod = self.masses
        bodies = [
            planar.Body("cart", mass=cart, inertia=1.0, position=(0.0, 0.0)),
            planar.Body("rod", mass=rod, inertia=self.inertia, position=(0.0, -self.size)),
        ]
        rail = planar.Translational("rail", ("ground", "cart"), (0.0, 0.0), (1.0, 0.0))
        hinges = [planar.Revolute(name, ("cart", "rod"), (0.0, 0.0)) for name in names]
        return bodies, [rail, *hinges]

    def constraints(self, names):
        return {name: jm.generalized.PositionConstraint(self.gap, rows=2) for name in names}


class Coin(AbstractMechanism):
    """q: the centre X, Y, Z, then the heading about the vertical, the lean from upright about the
    heading, the turn about the axle. One row of the contact is holonomic, two are not."""

    coordinates = ("X", "Y", "Z", "heading", "lean", "turn")
    lengths = ("X", "Y", "Z")
    joint = "contact"
    free = (3, 4, 5)
    columns = ((0, 1, 2), (0, 1, 2))
    angular = (3, 4, 5)
    gravity = (0.0, 0.0, -G)
    mass: jax.Array  # kg
    size: jax.Array  # m, the radius

    def allowed(self, numbers):
        return numbers.at[2].add(-self.height(numbers, 0.0))

    @property
    def inertia(self):
        """About a diameter, about the axle."""
        return self.mass * self.size**2 * jnp.array([0.25, 0.5])

    def axes(self, q):
        """Rows: along the heading, the axle, up in the coin's plane."""
        (c, s), (cosine, sine) = ((jnp.cos(x), jnp.sin(x)) for x in q[3:5])
        along = jnp.stack([c, s, 0.0 * c])
        across = jnp.stack([-s, c, 0.0 * c])
        return jnp.stack([along, cosine * across + sine * UP, cosine * UP - sine * across])

    def absolute(self, q):
        """Centre, and the quaternion of turns about z, x and y."""
        (a, d), (b, e), (c, f) = ((jnp.cos(x / 2), jnp.sin(x / 2)) for x in q[3:])
        w, x, y, z = a * b, a * e, d * e, d * b
        turned = [w * c - y * f, x * c - z * f, y * c + w * f, z * c + x * f]
        return jnp.concatenate([q[:3], jnp.stack(turned)])

    def velocities(self, q, v):
        along, axle, _ = self.axes(q)
        return jnp.concatenate([v[:3], v[3] * UP + v[4] * along + v[5] * axle])

    def momenta(self, q, v):
        velocity, (_, axle, _), (across, axial) = self.velocities(q, v), self.axes(q), self.inertia
        spin = velocity[3:]
        angular = across * spin + (axial - across) * (axle @ spin) * axle
        return jnp.concatenate([self.mass * velocity[:3], angular])

    def weights(self):
        return -self.mass * G * jnp.zeros(6).at[2].set(1.0)

    def potential(self, q):
        return self.mass * G * q[2]

    def height(self, q, t):
        return q[2] - self.size * jnp.cos(q[4])

    def slip(self, q, v, t):
        """Horizontal velocity of the coin's lowest point."""
        velocity, (_, _, up) = self.velocities(q, v), self.axes(q)
        return (velocity[:3] - self.size * jnp.cross(velocity[3:], up))[:2]

    def rates(self, q, u):
        """u: angular velocity along the heading, the axle, up in the coin's plane."""
        along, axle, _ = self.axes(q)
        heading = u[2] / jnp.cos(q[4])
        angles = jnp.stack([heading, u[0], u[1] - heading * jnp.sin(q[4])])
        return jnp.concatenate([self.size * (u[1] * along - u[0] * axle), angles])

    def speeds(self, q, v):
        return self.axes(q) @ self.velocities(q, v)[3:]

    def parts(self, names):
        across, axial = self.inertia
        coin = spatial.Body(
            "coin",
            mass=self.mass,
            inertia=jnp.stack([across, axial, across]),
            position=self.size * UP,
        )
        return [coin], [
            spatial.RollingDisk(name, ("coin",), axis=(0.0, 1.0, 0.0), radius=self.size)
            for name in names
        ]

    def constraints(self, names):
        slip = jm.generalized.VelocityConstraint(self.slip, rows=2, quantity=jm.generalized.LENGTH)
        height = jm.generalized.PositionConstraint(self.height, quantity=jm.generalized.LENGTH)
        rows = (("slip", slip), ("height", height))
        return {f"{name} {word}": row for name in names for word, row in rows}


class Case(eqx.Module):
    """A mechanism, and jaxmbs's system of it in absolute and in generalized coordinates. The joint
    stands there once under each of the names."""

    mechanism: AbstractMechanism
    bodies: jm.MultibodySystem
    generalized: jm.MultibodySystem
    names: tuple[str, ...] = eqx.field(static=True)


def case_of(mechanism: AbstractMechanism, *, twice: bool = False) -> Case:
    names = tuple(f"{mechanism.joint} {k}" for k in range(1, 3 if twice else 2))
    generalized = jm.GeneralizedSystem(
        mechanism.coordinates,
        mass_matrix=mechanism.mass_matrix,
        force=mechanism.force,
        constraints=mechanism.constraints(names),
        lengths=mechanism.lengths,
    )
    bodies = jm.MultibodySystem(*mechanism.parts(names), gravity=mechanism.gravity)
    return Case(mechanism, bodies, generalized, names)


MECHANISMS = {
    "rod on a cart": CartAndRod(jnp.array([2.0, 0.8]), jnp.array(0.05), jnp.array(0.4)),
    "coin": Coin(jnp.array(0.0085), jnp.array(0.012875)),  # two euros
}


# ---------------------------------------------------------------------------------------------
# Five principles
# ---------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """`accelerations` of all bodies along the world's axes; `forces` at the joints of each name on
    the last body, if the principle says them; what it is solved for, by the name of these
    unknowns."""

    accelerations: Any
    forces: Any
    unknowns: dict[str, Any]


def matrices(system: Any, q: Any, v: Any) -> tuple[Any, Any, Any, Any]:
    """M, F, C and Gamma of M dv/dt + C^T lambda = F, C dv/dt = Gamma."""
    return (
        system.mass_matrix(q, 0.0),
        system.force(q, v, 0.0),
        system.constraint_matrix(q, v, 0.0),
        system.acceleration_offset(q, v, 0.0),
    )


def by_rank(system: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """dv/dt and lambda of minimum norm: rows may depend on each other."""
    found = jm.formulations.MinimumNorm().solve(system.equations(q, v, 0.0))
    return found.acceleration, found.multipliers


def by_elimination(system: Any, q: Any, v: Any) -> tuple[Any, Any]:
    """Both by Gauss's elimination, as textbooks write them: a square matrix of full rank."""
    mass, force, rows, offset = matrices(system, q, v)
    corner = jnp.zeros((len(offset), len(offset)))
    matrix = jnp.block([[mass, rows.T], [rows, corner]])
    found = jnp.linalg.solve(matrix, jnp.concatenate([force, offset]))
    return found[: len(force)], found[len(force) :]


def joint_forces(case: Case, system: Any, columns: Any, q: Any, v: Any, multipliers: Any) -> Any:
    """Of -C_X^T lambda_X for the rows X of each name."""
    rows = system.constraint_matrix(q, v, 0.0)
    labels = system.structure.row_names
    own = [np.array([row.startswith(name) for row in labels]) for name in case.names]
    forces = [-rows.T @ jnp.where(mask, multipliers, 0.0) for mask in own]
    return jnp.stack(forces)[:, np.array(columns)]


def world(case: Case, q: Any, v: Any, change: Any) -> Any:
    """Accelerations along the world's axes, of those in generalized coordinates."""
    return jax.jvp(case.mechanism.velocities, (q, v), (v, change))[1]


def newton_euler(case: Case, q: Any, v: Any, solve: Callable = by_rank) -> Answer:
    """Each body by itself, and the multipliers of all joints between them."""
    place = case.mechanism.absolute(q)
    axes = case.bodies.world_axes(place)
    velocity = axes.T @ case.mechanism.velocities(q, v)
    change, multipliers = solve(case.bodies, place, velocity)
    columns, _ = case.mechanism.columns
    forces = joint_forces(case, case.bodies, columns, place, velocity, multipliers)
    return Answer(axes @ change, forces, {"accelerations": change, "multipliers": multipliers})


def lagrange(case: Case, q: Any, v: Any, solve: Callable = by_rank) -> Answer:
    """d/dt dL/dv - dL/dq = -C^T lambda."""
    change, multipliers = solve(case.generalized, q, v)
    _, columns = case.mechanism.columns
    forces = joint_forces(case, case.generalized, columns, q, v, multipliers)
    unknowns = {"accelerations": change, "multipliers": multipliers}
    return Answer(world(case, q, v, change), forces, unknowns)


def kane(case: Case, q: Any, v: Any) -> Answer:
    """F_r + F_r* = 0 for each generalized speed u_r: the weights and minus the rates of the
    momenta, along the partial velocities d(velocities) / du_r. Reactions do no work along these
    and no row is left; to learn of a reaction takes one more speed, that breaks its row."""
    mechanism = case.mechanism
    u = mechanism.speeds(q, v)

    def momenta(q: Any, u: Any) -> Any:
        return mechanism.momenta(q, mechanism.rates(q, u))

    partial = jax.jacobian(lambda u: mechanism.velocities(q, mechanism.rates(q, u)))(u)
    _, rest = jax.jvp(lambda q: momenta(q, u), (q,), (v,))
    inertia = partial.T @ jax.jacobian(momenta, 1)(q, u)
    change = jnp.linalg.solve(inertia, partial.T @ (mechanism.weights() - rest))
    _, found = jax.jvp(mechanism.rates, (q, u), (v, change))
    return Answer(world(case, q, v, found), None, {"generalized speeds": change})


def maggi(case: Case, q: Any, v: Any) -> Answer:
    """E^T (M dv/dt - F) = 0 with v = E u + ...: the quasi-velocities are the rows, which are
    zero, and some of the rates, u; E belongs to these in the inverse of both. Reactions are left
    out, and follow from M dv/dt - F, if they are wanted and unique."""
    mass, force, rows, offset = matrices(case.generalized, q, v)
    chosen = jnp.eye(len(q))[np.array(case.mechanism.free)]
    inverse = jnp.linalg.inv(jnp.concatenate([rows, chosen]))
    fixed, kinematic = inverse[:, : len(offset)] @ offset, inverse[:, len(offset) :]
    inertia = kinematic.T @ mass @ kinematic
    change = jnp.linalg.solve(inertia, kinematic.T @ (force - mass @ fixed))
    found = world(case, q, v, kinematic @ change + fixed)
    return Answer(found, None, {"quasi-velocities": change})


def udwadia_kalaba(case: Case, q: Any, v: Any) -> Answer:
    """dv/dt = M^-1 F + M^-1/2 (C M^-1/2)^+ (Gamma - C M^-1 F)."""
    found = jm.formulations.UdwadiaKalaba().solve(case.generalized.equations(q, v, 0.0))
    _, columns = case.mechanism.columns
    forces = joint_forces(case, case.generalized, columns, q, v, found.multipliers)
    unknowns = {"accelerations": found.acceleration}
    return Answer(world(case, q, v, found.acceleration), forces, unknowns)


PRINCIPLES: dict[str, Callable[..., Answer]] = {
    "Newton-Euler": newton_euler,
    "Lagrange": lagrange,
    "Kane": kane,
    "Maggi": maggi,
    "Udwadia-Kalaba": udwadia_kalaba,
}
# The same equations as textbooks solve them.
TEXTBOOK: dict[str, Callable[..., Answer]] = {
    "Newton-Euler, eliminated": functools.partial(newton_euler, solve=by_elimination),
    "Lagrange, eliminated": functools.partial(lagrange, solve=by_elimination),
}


@eqx.filter_jit
def at_states(principle: Callable[..., Answer], case: Case, q: Any, v: Any) -> Answer:
    """Of a batch of states."""
    return jax.vmap(lambda q, v: principle(case, q, v))(q, v)


def random_states(mechanism: AbstractMechanism, count: int) -> tuple[Any, Any]:
    """States that the constraints allow; angles below 1.3 rad (a coin that lies flat touches the
    table all along its rim)."""
    rng = np.random.default_rng(29)
    numbers = jnp.asarray(rng.uniform(-1.3, 1.3, (count, len(mechanism.coordinates))))
    u = jnp.asarray(rng.normal(0.0, 5.0, (count, len(mechanism.free))))
    q = jax.vmap(mechanism.allowed)(numbers)
    return q, jax.vmap(mechanism.rates)(q, u)


# ---------------------------------------------------------------------------------------------
# What they have in common, and what not
# ---------------------------------------------------------------------------------------------


def differences(mechanism: AbstractMechanism, found: Answer, expected: Answer) -> np.ndarray:
    """Of the accelerations, state by state, relative to the largest one of all states; angular
    accelerations times the size of the mechanism."""
    scale = np.ones(expected.accelerations.shape[1])
    scale[np.array(mechanism.angular)] = mechanism.size
    largest = np.max(np.abs(expected.accelerations) * scale)
    apart = np.abs(np.asarray(found.accelerations - expected.accelerations)) * scale
    return np.max(apart, axis=1) / largest


def with_joint_twice(name: str, mechanism: AbstractMechanism, q: Any, v: Any) -> str:
    """What becomes of a principle when each row of the joint stands there twice."""
    principle = (PRINCIPLES | TEXTBOOK)[name]
    expected = at_states(newton_euler, case_of(mechanism), q, v)
    try:
        found = at_states(principle, case_of(mechanism, twice=True), q, v)
    except ValueError:
        return "no inverse: not square"
    if not np.all(np.isfinite(found.accelerations)):
        return "no numbers: singular"
    words = f"same to {np.max(differences(mechanism, found, expected)):.0e}"
    if found.forces is None:
        return words
    first, both = np.asarray(found.forces[:, 0]), np.asarray(expected.forces[:, 0])
    share = np.sum(first * both) / np.sum(both * both)
    return f"{words}, {100 * share:.0f} % each"


def table(name: str, mechanism: AbstractMechanism) -> None:
    """One line for each principle."""
    case, (q, v) = case_of(mechanism), random_states(mechanism, STATES)
    expected = at_states(newton_euler, case, q, v)
    joint = mechanism.joint
    heads = ("unknowns", "accelerations", f"force at {joint}", f"{joint} twice")
    print("\n{:25s}{:34s}{:15s}{:18s}{}".format(name, *heads))
    for word, principle in (PRINCIPLES | TEXTBOOK).items():
        found = at_states(principle, case, q, v)
        unknowns = " + ".join(f"{x.shape[1]} {kind}" for kind, x in found.unknowns.items())
        same = f"{np.max(differences(mechanism, found, expected)):.0e}"
        force = "not said"
        if found.forces is not None:
            apart = np.max(np.abs(found.forces - expected.forces))
            force = f"{apart / np.max(np.abs(expected.forces)):.0e}"
        twice = with_joint_twice(word, mechanism, q, v)
        print(f"{word:25s}{unknowns:34s}{same:15s}{force:18s}{twice}")


def motion(mechanism: AbstractMechanism, free: Any, u: Any, every: float) -> tuple[Any, Any]:
    """From these free coordinates (the others follow) and generalized speeds on, by Kane's
    equations; and how far apart the principles are along it. q, and differences by name."""
    case, count = case_of(mechanism), len(mechanism.coordinates)

    @jax.jit
    def slope(y: Any) -> Any:
        v = mechanism.rates(y[:count], y[count:])
        return jnp.concatenate([v, *kane(case, y[:count], v).unknowns.values()])

    numbers = jnp.zeros(count).at[jnp.array(mechanism.free)].set(free)
    start, times = [*mechanism.allowed(numbers), *u], every * np.arange(STATES)
    run = solve_ivp(
        lambda _, y: slope(y), (0.0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-12
    )
    q, speeds = jnp.asarray(run.y[:count].T), jnp.asarray(run.y[count:].T)
    v = jax.vmap(mechanism.rates)(q, speeds)
    found = {name: at_states(principle, case, q, v) for name, principle in PRINCIPLES.items()}
    expected = found.pop("Newton-Euler")
    return q, {name: differences(mechanism, one, expected) for name, one in found.items()}


def main() -> None:
    print(f"{STATES} random states; differences from Newton-Euler, relative to the largest number")
    for name, mechanism in MECHANISMS.items():
        table(name, mechanism)
    twice = case_of(MECHANISMS["coin"], twice=True).bodies
    report = jm.analyze(twice, twice.reference_q, subsets=[("contact 1", "contact 2")])
    words = ["unique" if x else "not unique" for x in report.reaction_unique]
    whole = "unique" if report.subset_unique[0] else "not unique"
    print(f"\nthe contact twice: reaction of each {words[0]}, of both together {whole}")

    swinging, rod_apart = motion(MECHANISMS["rod on a cart"], (0.0, 2.6), (0.0, 0.0), 0.02)
    rolling, coin_apart = motion(MECHANISMS["coin"], (0.0, 0.5, 0.0), (0.0, 30.0, 4.0), 0.005)
    figure, panels = plt.subplots(2, 2, figsize=(10.0, 7.0), layout="constrained")
    (rod, coin), below = panels
    rod.plot(swinging[:, 1], swinging[:, 2], "k-", label="centre of the rod")
    rod.plot(swinging[:, 0], 0.0 * swinging[:, 0], color="0.5", linewidth=4.0, label="cart")
    rod.set_title("rod on a cart", fontsize=11)
    rod.set_xlabel("x (m)")
    rod.set_ylabel("y (m)")
    rod.set_ylim(-0.5, 0.6)
    # The lowest point is the centre less the radius up in the coin's plane.
    up = np.asarray(jax.vmap(MECHANISMS["coin"].axes)(rolling))[:, 2]
    track = 1000 * (np.asarray(rolling[:, :3]) - MECHANISMS["coin"].size * up)
    coin.plot(track[:, 0], track[:, 1], "k-", label="contact")
    coin.plot(*(1000 * rolling[:, :2].T), color="0.5", linestyle="dashed", label="centre")
    coin.set_title("coin, from above", fontsize=11)
    coin.set_xlabel("x (mm)")
    coin.set_ylabel("y (mm)")
    coin.set_ylim(-75, 35)
    for axes, every, apart in zip(below, (0.02, 0.005), (rod_apart, coin_apart), strict=True):
        for (name, values), mark in zip(apart.items(), "osx+", strict=True):
            axes.semilogy(
                every * np.arange(0, STATES, 5),
                np.maximum(values[::5], 1e-18),
                f"k{mark}",
                markersize=4,
                markerfacecolor="none",
                label=name,
            )
        axes.set_ylim(1e-18, 1e-11)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("acceleration apart from\nNewton-Euler / largest (1)")
    for axes in (rod, coin):
        axes.set_aspect("equal", adjustable="datalim")
    for axes in panels.flat:
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, ncols=2, loc="upper center")
    figure.savefig("29_five_principles.png", dpi=130)


if __name__ == "__main__":
    main()
