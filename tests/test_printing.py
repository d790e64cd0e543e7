"""What a person reads: every result has words, noise is 0, and no help is cut off."""

import inspect
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import everything_public
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import planar
from jaxmbs._printing import Column, Description, html, Table, text
from jaxmbs._reactions._report import largest
from jaxmbs.cli._app import app
from jaxmbs.cli._output import print_answer


# Settings, questions, parts and what is computed with, not results.
_NO_RESULTS = {
    *("AbstractSystem", "GeneralizedSystem", "MultibodySystem", "Model", "Driver", "Case"),
    *("PositionConstraint", "VelocityConstraint", "AbstractFormulation", "AugmentedLagrangian"),
    *("AccelerationConstraint", "PfaffianConstraint", "Servo", "ServoConstraint", "ServoControl"),
    *(
        "CoordinatePartitioning",
        "ElasticResolution",
        "Elimination",
        "MinimumNorm",
        "NonIdeal",
        "NullSpace",
        "UdwadiaKalaba",
    ),
    *("Baumgarte", "GeneralizedAlpha", "Projection", "RigidLimits"),
    *("StopAtLimit", "StopAtSingular", "StopWhen"),
    *("BatchedQR", "LapackQR"),
    *("PlatformQR", "QR", "SVD", "RankComparison", "Certification", "Misfit", "Simulation"),
    *("AbstractQuestion", "AbstractIteration", "AbstractSecondLook", "RESULTS"),
}


def test_every_result_has_words():
    classes = {
        name: x
        for name, x in everything_public().items()
        if inspect.isclass(x)
        and name not in _NO_RESULTS
        and (issubclass(x, eqx.Module) or issubclass(x, tuple))
    }
    assert len(classes) > 15
    plain = (eqx.Module.__str__, tuple.__str__)
    wordless = [name for name, x in classes.items() if x.__str__ in plain]
    assert wordless == []


@pytest.fixture(scope="module")
def system() -> jm.MultibodySystem:
    """Hangs straight down: the torque about its pin is what rounding leaves."""
    arm = planar.Body("arm", mass=2.0, inertia=0.1, position=(0.3, -0.4), angle=0.7)
    pin = planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))
    motor = jm.Driver("motor", "pin", "rotation", jm.motions.Linear(rate=1.0))
    return jm.MultibodySystem([arm], [pin], [motor], gravity=(0.0, -9.81))


class TestPrinting:
    """(The tests of a class share what has been compiled.)"""

    def test_singularity(self, system):
        found = jm.singularity(system, system.reference_q, key=jax.random.key(0))
        assert str(found) == (
            "not singular: rank 3 here and nearby (16 of 16 neighbours, closed); no row is "
            "redundant"
        )
        here = eqx.tree_at(
            lambda x: (x.rank, x.singular), found, (jnp.asarray(2), jnp.asarray(True))
        )
        assert str(here).startswith("SINGULAR configuration: rank 2 here, 3 nearby")
        alone = eqx.tree_at(lambda x: x.closed, found, jnp.zeros(16, bool))
        assert "no neighbour closed" in str(alone)
        assert str(jax.tree.map(lambda x: jnp.stack([x, x]), found)).startswith("2 configurations")

    def test_assembly_and_state(self, system):
        closed = jm.assemble(system, system.reference_q, 0.1)
        assert str(closed).startswith("Closed\nresidual at most ")
        assert "q = [" in str(closed)
        state = jm.consistent_state(system, closed.q, jnp.zeros(3), 0.1)
        assert str(state).splitlines()[1].startswith("v = [")
        assert str(state).count("\n") == 1

    def test_noise_is_zero_and_numbers_stay(self, system):
        found = jm.inverse_dynamics(system, system.reference_q, jnp.linspace(0.0, 0.1, 3))
        reactions = found.reactions().state(0)
        pin = reactions.wrench("pin")
        assert float(pin.arm) == pytest.approx(0.5)
        assert abs(float(pin.torque)) < 1e-12
        line = next(x for x in str(reactions).splitlines() if x.startswith("pin"))
        assert line.split()[-2] == "0"
        assert "torque 0 N m" in str(pin)
        assert np.asarray(reactions.wrench("motor").torque) == pytest.approx(2.0 * 9.81 * 0.3)
        # A torque that is all rounding is told from the force and its arm, with none beside it.
        noisy = eqx.tree_at(lambda w: w.torque, pin, jnp.asarray(1.6e-15))
        assert largest([noisy])[1] == pytest.approx(0.5 * np.max(np.abs(noisy.force)))
        assert "torque 0 N m" in str(noisy)
        known = eqx.tree_at(lambda w: w.torque, pin, jnp.asarray(1.6e-9))
        assert "torque 1.6e-09 N m" in str(known)

    def test_kinematics(self, system):
        found = jm.kinematics(system, system.reference_q, jnp.linspace(0.0, 0.1, 3))
        assert str(found).startswith("3 states from 0 s to 0.1 s, as drivers prescribe them")

    def test_too_many_states_are_refused(self, system):
        start = system.reference_q, system.initial_v
        with pytest.raises(ValueError, match=r"every=1e-12 s saves 1e\+12 states, more than"):
            jm.simulate(system, *start, 1.0, every=1e-12)


def test_small_results():
    sets = jm.results.DependentSets((("A", "B"), ("C", "D")), False)
    assert str(sets) == "A, B\nC, D\n... (the search was cut off)"
    assert str(jm.results.DependentSets((), True)) == "no dependent set"
    cases = jm.Cases.grid({"bodies.arm.mass": [1.0, 2.0], "time": [0.0, 0.5, 1.0]})
    assert str(cases) == "6 cases (grid of 2 x 3)\nbodies.arm.mass: 1 to 2\ntime: 0 to 1"


def test_writers_show_all_of_a_description(capsys):
    columns = [Column("arm", ["0.5"], "m"), Column("verdict", ["not unique"])]
    table = Table(columns, marked=[True], title="What acts")
    told = Description(["First."], [table], ["", "Last."], lambda: {"arm": 0.5}, "robot")
    print_answer(told, json=False)
    printed = capsys.readouterr().out
    for written in (text(told), html(told), printed):
        for words in (
            "robot",
            "First.",
            "What acts",
            "arm (m)",
            "0.5",
            "verdict",
            "not unique",
            "Last.",
        ):
            assert written.count(words) == 1
    print_answer(told, json=True)
    assert json.loads(capsys.readouterr().out) == {"arm": 0.5}
    assert text(told).splitlines() == [
        *("robot", "First.", "", "What acts", "", "arm (m)  verdict"),
        *("-------  ----------", "0.5      not unique", "", "Last."),
    ]


COMMANDS = (
    "",
    *["analyze", "simulate", "kinematics", "sweep", "design", "report", "list", "export", "demo"],
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_is_cut_off(command: str):
    result = CliRunner().invoke(
        app, [*command.split(), "--help"], env={"COLUMNS": "80"}, catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "..." not in result.stdout.replace("[ARGS]...", "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_rows_of_earlier_versions_warn():
    system = jm.mechanisms.get("door").system()
    found = jm.analyze(system, system.reference_q)
    with pytest.warns(DeprecationWarning, match="described"):
        rows = found.rows()
    assert rows == found.table().rows
