import collections
import functools
from collections.abc import Iterable
from typing import Any

import jax
from equinox.internal import Enumeration


class RESULTS(Enumeration):
    """Outcome of a run-time computation; each text says what to try next.

    Failures that only the numbers reveal are members here, so that they work under `jit` and
    `vmap`; the caller's edge turns the first of them into an exception.
    """

    successful = ""
    assembly_did_not_close = (
        "The mechanism did not close: no configuration near the start satisfies the geometric "
        "constraints and drivers. Start closer to a closed configuration, move the drivers "
        "in smaller steps, or check the marker points of the joint named."
    )
    assembly_not_nearest = (
        "The mechanism closed, but the closed configuration nearest to the start was not "
        "found: the closest point is not unique or the start is too far away. Start closer."
    )
    least_squares_not_found = (
        "No configuration was found in which the constraints contradict each other least. Start "
        "closer to one, or make the deviations of the parts smaller."
    )
    acceleration_not_finite = (
        "The accelerations are not finite. Look for a division by zero, or a number that is not "
        "finite, in the masses, forces and motions at this state."
    )
    light_parts_lost = (
        "The reactions of parts that are very light beside what they carry were not found: the "
        "system is too large for the decomposition that finds them. Give these parts more mass, "
        "leave them out (join what they connect), or use UdwadiaKalaba(), which takes long."
    )
    mass_matrix_not_definite = (
        "The mass matrix is not positive definite. Give every coordinate inertia, or, where the "
        "constraints make up for what is missing, use UdwadiaKalaba(semidefinite=True)."
    )
    acceleration_not_determined = (
        "Nothing determines some of the accelerations: the mass matrix and the constraints hold no "
        "coordinate to them (undetermined_accelerations names those, and says whether the mass "
        "matrix has a negative eigenvalue). Give the coordinate mass, tie it by a constraint, or "
        "leave it out."
    )
    elimination_singular = (
        "This elimination has become singular: the rows that it keeps no longer determine the "
        "motion here, although all rows together do. Drop other rows (removable_rows lists them "
        "at this state), leave the choice to Elimination(), or use MinimumNorm()."
    )
    elimination_incomplete = (
        "The rows that this elimination keeps still depend on each other here, so that it does "
        "not determine their multipliers. Drop more rows (complete_removal lists a full set), "
        "leave the choice to Elimination(), or use MinimumNorm()."
    )
    accelerations_contradict = (
        "Constraints that are given at acceleration level, as those of servos are, cannot be met: "
        "they contradict other constraints, or each other. Leave one of them out, choose a target "
        "that is compatible with the others, or start from a state that they all allow."
    )
    servo_error_unknown = (
        "The error of a servo constraint is more than 3/8 of a turn (of a screw 3/8 of a pitch), "
        "and frames in space do not tell one turn from the next. Start closer to what is wanted, "
        "or let the motion begin where the joint stands."
    )
    servo_not_attainable = (
        "The actuators cannot give the accelerations that a servo constraint asks for: nothing "
        "that they do moves what it wants, or other constraints do not let it. Let other bodies or "
        "velocities carry the force, add an actuator, or choose another target."
    )
    augmented_lagrangian_not_converged = (
        "The augmented Lagrangian iteration did not meet the constraints. Allow more iterations "
        "or a larger penalty; close to a singular configuration use MinimumNorm()."
    )
    misfit_not_taken_up = (
        "The reactions of elastic parts were not found: a misfit strains parts that do not give "
        "way, the configuration is next to a singular one, or compliances lie too many orders of "
        "magnitude apart. Give a compliance to another part of the same loop, move away from the "
        "singular configuration, or leave out what is stiffer than the others by a factor of 1e6."
    )
    friction_did_not_converge = (
        "The friction forces and the reactions that they follow from did not converge: a joint "
        "jams, or a rigid-body model with friction this large has no or several solutions here. "
        "Lower the coefficient of friction, raise the regularisation velocity, or check the "
        "configuration for a self-locking one."
    )
    step_too_small = (
        "The step size went to zero: the motion cannot be continued. Look for a mechanism that "
        "has come to the end of its range, a force that jumps, or tolerances below rounding."
    )
    too_many_steps = (
        "The largest number of steps was reached. Raise max_steps, loosen rtol and atol, or choose "
        "an implicit solver if the forces are stiff. In reverse mode the default adjoint takes "
        "65,536 steps; for more pass adjoint=diffrax.RecursiveCheckpointAdjoint()."
    )
    state_not_finite = (
        "The state is not finite. Take smaller steps (first_step), or an adaptive controller."
    )
    integrator_failed = (
        "The integrator failed, most likely in the nonlinear solve of an implicit method. Take "
        "smaller steps, loosen its tolerances, or choose an explicit solver."
    )
    step_not_solved = (
        "The equations of a step were not solved: Newton's method did not converge, or a number "
        "became NaN or inf. Take smaller steps (`step` of GeneralizedAlpha), or look for a force "
        "that jumps."
    )
    elastic_body_too_bent = (
        "An elastic body deforms by more than its own length, far beyond the theory of small "
        "deformations that it obeys: it spins faster than it vibrates, it buckles, or what acts "
        "on it is too large. Give it displacements of second order, by which forces along it act "
        "on its bending (finite_elements.reduce computes them), reduce the load or the speed, make "
        "it stiffer, or make several bodies of it."
    )
    verdict_doubtful = (
        "The rank decision is marginal: the configuration is near a singular one, or the model's "
        "numbers are not exact. Read verdicts from configurations nearby, or give more digits."
    )
    answer_not_a_number = (
        "The answer holds what is not a number. Look for a division by zero or the root of a "
        "negative number in the question, or numbers that the mechanism cannot have."
    )
    reaction_not_unique = (
        "The objective depends on a reaction that is not unique, so it has no gradient. Use a "
        "unique combination of multipliers (analyze says which are), or give the joints "
        "compliance."
    )
    design_singular = (
        "The objective depends on reactions in a singular configuration, out of which the rank of "
        "the constraints changes, so it has no gradient there. Design for other configurations, or "
        "make a body elastic."
    )
    design_rank_changed = (
        "The rank of the constraints changes between the designs on the way, so that reactions "
        "jump there. Narrow the bounds so that they leave that out, or start elsewhere."
    )
    assembly_branch_ended = (
        "The mechanism did not close: the branch of configurations on which the start lies ends "
        "before its drivers reach their values, at a dead point or where it cannot be followed. "
        "Let the drivers ask for less, or start on a branch that goes on."
    )
    limit_jammed = (
        "A rigid limit is reached by a motion that drivers or other constraints force on it, so "
        "that no impulse and no force can hold it. End the run before that, reduce the travel of "
        "the drivers, or use compliant stops."
    )
    too_many_impacts = (
        "The motion met its rigid limits more often than is allowed. Raise most_events of "
        "RigidLimits (inside a transformation: most_pieces), raise rest_height, or end the run "
        "earlier."
    )
    state_not_valid = (
        "Invalid state: a coordinate, a velocity or the time is NaN or infinite, or a "
        "quaternion is not of length 1, so that nothing was decided. Look for where it became so, "
        "and divide quaternions by their length."
    )
    configuration_open = (
        "The configuration is not closed, so that its verdicts need not be those of the mechanism. "
        "Assemble it first, and give the time at which its drivers stand so."
    )
    states_not_determined = (
        "A state of a force may have any value in equilibrium, as no force and no rate depends on "
        "it there. Leave it out, or give it a gain other than zero."
    )
    velocity_row_vanishes = (
        "A velocity row does not depend on velocities to first order at this state, as of "
        "v . v = c^2 at rest: it holds nothing there, so that rank and motion are not determined. "
        "Give other velocities, or write the condition so that it is linear in them."
    )
    times_not_in_order = (
        "The times of saved states go back, or one is NaN, so that no motion was computed. Sort "
        "them, from start to end."
    )
    end_before_start = (
        "The end of the motion is not later than its start, so that no motion was computed. Choose "
        "a later end, or an earlier start of this case."
    )
    loads_not_carried = (
        "The loads cannot be carried within the bounds: no reactions of the mechanism balance them "
        "there. Loosen one of the bounds that contradict each other, or let less load act."
    )
    friction_without_acceleration = (
        "With friction this large the rigid bodies have no acceleration in this state (Painleve's "
        "paradox). `certify` tells up to which coefficient of each joint they have. Lower the "
        "coefficient, load the guide closer to its own direction, or put a bushing in the place of "
        "the joint."
    )


def code_of(result: Any) -> Any:
    """The number of a `RESULTS` member."""
    return jax.tree.leaves(result)[0]


@functools.cache
def sentences() -> dict[int, tuple[str, str]]:
    """The name and the text of each `RESULTS` member, by its number."""
    names = vars(RESULTS)["_name_to_item"]
    return {int(code_of(item)): (name, RESULTS[item]) for name, item in names.items()}


def count_failures(codes: Iterable[int]) -> list[tuple[int, str]]:
    """Number of these results that are a failure, and its text, for each."""
    said = sentences()
    counts = collections.Counter(said[int(code)][1] for code in codes)
    return [(count, text) for text, count in counts.items() if text]
