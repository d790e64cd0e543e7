"""Ten published robots with their ranges, friction and damping, a second under control.

Each URDF of the package example-robot-data is read as it is: ranges of joints become stops, dry
friction and damping become forces. Every hinge and slide gets a motor with a PD controller, whose
gains follow from the inertia that it moves, and goes a tenth of its range towards the middle of
that, against gravity. What is told: steps, CPU seconds, how far the joints are from where they
should be at the end, and stops that were met. (Accelerations are compared with MuJoCo's in the
tests.)

    taskset -c 0 python benchmarks/robots.py                 # writes results/robots-<hardware>.json
    taskset -c 0 python benchmarks/robots.py panda z1        # these alone
    taskset -c 0 python benchmarks/robots.py --file arm.xml  # any other file, nothing is written
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import importlib.metadata
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, result_path

import jaxmbs as jm
from jaxmbs import forces, motions
from jaxmbs.io import import_model, Imported


jax.config.update("jax_enable_x64", True)

ROBOTS = {
    "panda": "panda_description/urdf/panda.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "ur3": "ur_description/urdf/ur3_robot.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "finger": "finger_edu_description/robots/finger_edu.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "talos arm": "talos_data/robots/talos_left_arm.urdf",
}
# Of the controlled joints (rad/s), and of stops without one of their own (N m/rad, N/m).
BANDWIDTH, STIFFNESS = 40.0, 50.0
START, STOP, END = 0.05, 0.55, 1.0
# Of Dopri8, and the step (s) of GeneralizedAlpha.
RTOL, STEP = 1e-5, 5e-4
FAR = 0.1
COORDINATES = {"revolute": "rotation", "translational": "translation"}


def folder() -> Path:
    """Where the robots are."""
    package = importlib.metadata.distribution("example-robot-data")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))


def ranges_of(model: jm.Model) -> dict[str, tuple[float, float]]:
    """The range of each joint that has stops; 0 for a missing bound."""
    found = {}
    for force in model.forces:
        if isinstance(force, forces.JointStop):
            ends = (0.0 if x is None else float(x) for x in (force.lower, force.upper))
            found[force.joint] = tuple(ends)
    return found


def controlled(model: jm.Model) -> jm.Model:
    """The model with a motor and a PD controller in each hinge and slide that none drives yet."""
    taken = {force.joint for force in model.forces if isinstance(force, forces.Motor)}
    followers = {
        body
        for joint in model.joints
        if isinstance(joint, jm.spatial.Coupling)
        for body in joint.bodies[:2]
    }
    joints = [
        joint
        for joint in model.joints
        if joint.kind in COORDINATES
        and joint.name not in taken
        and not {*joint.bodies} <= followers
    ]
    idle = [_motor(joint, 1.0, 0.0) for joint in joints]
    system = _with(model, idle).system()
    inertia = _joint_inertia(system)
    ranges = ranges_of(model)
    motors = []
    for joint, moved in zip(joints, inertia, strict=True):
        low, high = ranges.get(joint.name, (-1.0, 1.0))
        motors.append(_motor(joint, float(moved), FAR * (low + high) / 2 or FAR))
    return _with(model, motors)


def _motor(joint: Any, inertia: float, target: float) -> forces.Motor:
    """A motor whose gains are those of a mass on a critically damped spring."""
    return forces.Motor(
        f"motor of {joint.name}",
        joint.name,
        coordinate=COORDINATES[joint.kind],
        actuator=forces.IdealActuator(),
        controller=forces.PID(
            proportional=BANDWIDTH**2 * inertia, derivative=2 * BANDWIDTH * inertia
        ),
        reference=motions.Step(times=[START, STOP], values=[0.0, target]),
    )


def _with(model: jm.Model, motors: list[forces.Motor]) -> jm.Model:
    return jm.Model(
        model.name,
        model.dimension,
        bodies=model.bodies,
        joints=model.joints,
        drivers=model.drivers,
        forces=[*model.forces, *motors],
        elements=model.elements,
        compliances=model.compliances,
        gravity=model.gravity,
    )


def _joint_inertia(system: jm.MultibodySystem) -> np.ndarray:
    """What each motor moves if all other joints are held (kg m^2 or kg)."""
    q, v = system.reference_q, system.initial_v
    rates = jax.jacfwd(lambda u: system.motor_states(q, u, 0.0).rate)(v)
    rows = np.concatenate([np.asarray(system.constraint_matrix(q, v, 0.0)), np.asarray(rates)])
    count = rates.shape[0]
    wanted = np.zeros((len(rows), count))
    wanted[-count:] = np.eye(count)
    moved = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return np.einsum("ij,ik,kj->j", moved, np.asarray(system.mass_matrix(q)), moved)


def run(imported: Imported) -> dict[str, Any]:
    """A second of one robot."""
    model = controlled(imported.model)
    system = model.system()
    # Dry friction is stiff: an explicit method would take steps of its rise, 0.01 rad/s.
    rough = any(isinstance(force, forces.JointFriction) for force in model.forces)
    method: dict[str, Any] = {"solver": jm.runs.GeneralizedAlpha(step=STEP)} if rough else {}

    def simulate() -> jm.results.Trajectory:
        return jm.simulate(
            system,
            system.reference_q,
            system.initial_v,
            END,
            every=0.02,
            rtol=RTOL,
            atol=1e-2 * RTOL,
            **method,
        )

    began = time.process_time()
    trajectory = simulate()
    first = time.process_time() - began
    began = time.process_time()
    simulate()
    again = time.process_time() - began
    duty = jm.runs.motor_duty(trajectory)
    wanted = [
        float(force.reference(jnp.asarray(END)))
        for force in model.forces
        if isinstance(force, forces.Motor) and force.reference is not None
    ]
    reached = _coordinates(system, trajectory)
    met = jm.runs.stop_contacts(trajectory) if system.stops else None
    return {
        "method": "GeneralizedAlpha" if rough else "Dopri8",
        "bodies": len(model.bodies),
        "motors": len(system.motors),
        "stops": len(system.stops),
        "friction": sum(isinstance(f, forces.JointFriction) for f in model.forces),
        "omissions": sorted({own.kind for own in imported.omissions}),
        "steps": int(trajectory.statistics.accepted),
        "first_call_cpu_seconds": first,
        "second_call_cpu_seconds": again,
        "largest_error_at_the_end": float(np.max(np.abs(reached - np.array(wanted)), initial=0.0)),
        "largest_torque": float(np.max(np.abs(np.asarray(duty.states.torque)))),
        "closure": float(jnp.max(trajectory.position_error)),
        "stops_met": [] if met is None else met.sentences(),
    }


def _coordinates(system: jm.MultibodySystem, trajectory: Any) -> np.ndarray:
    """The motors' coordinates at the end, integrated from their rates by Simpson's rule."""
    rates = np.stack(
        [
            np.asarray(system.motor_states(q, v, t).rate)
            for q, v, t in zip(trajectory.q, trajectory.v, trajectory.times, strict=True)
        ]
    )
    step = float(trajectory.times[1] - trajectory.times[0])
    weights = np.full(len(rates), 2.0)
    weights[1::2], weights[0], weights[-1] = 4.0, 1.0, 1.0
    return step / 3 * weights @ rates


def _line(name: str, found: dict[str, Any]) -> str:
    return (
        f"{name:14s} {found['bodies']:3d} bodies {found['motors']:3d} motors "
        f"{found['stops']:3d} stops {found['friction']:3d} friction {found['steps']:5d} steps "
        f"{found['first_call_cpu_seconds']:6.1f} and {found['second_call_cpu_seconds']:6.2f} s "
        f"error {found['largest_error_at_the_end']:.1e} closed {found['closure']:.0e} "
        f"{len(found['stops_met'])} stops met"
    )


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("robots", nargs="*", choices=[*ROBOTS, []], help="these alone")
    parser.add_argument("--file", action="append", default=[], help="any other file")
    options = parser.parse_args()
    chosen = options.robots or ([] if options.file else [*ROBOTS])
    files = {name: folder() / ROBOTS[name] for name in chosen}
    files |= {Path(name).stem: Path(name) for name in options.file}
    device = hardware(("equinox",))
    path = result_path("robots", device)
    results: dict[str, Any] = {"hardware": device, "robots": {}}
    if path.exists():
        results["robots"] = json.loads(path.read_text())["robots"]
    for name, file in files.items():
        imported = import_model(file, stops=True, stop_stiffness=STIFFNESS)
        found = run(imported)
        results["robots"][name] = found
        print(_line(name, found), flush=True)
        jax.clear_caches()
    if not options.file:
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
