"""The reference of model files, from what the fields of parts declare, and its text besides
keys.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .._bodies._visuals import COLOURS
from .._constraints import Driver
from .._fields import Key, keys_of
from . import _examples
from ._expansion import Assembly, Cylinder, SHAPES, USES
from ._registry import (
    ACTUATORS,
    BODIES,
    COMPLIANCES,
    CONTACT_SHAPES,
    CONTROLLERS,
    ELEMENTS,
    FOLLOWS,
    FORCES,
    JOINTS,
    MOTIONS,
    TYPED_BODIES,
    VISUALS,
)
from ._write import tables_text


# --------------------------------------------------------------------------------------------------
# Text of the reference besides keys: written by hand, in the order of the page.
# --------------------------------------------------------------------------------------------------


HEAD = """# Model files

Made by `jaxmbs.io.reference()` (`jaxmbs reference` prints it) from what the parts declare and the
reader checks. SI units throughout: m, kg, s, N, rad. Vectors are arrays, quaternions scalar first.
A file is TOML:

```toml
#:schema model.schema.json
schema = 1
name = "pendulum"
dimension = 2
gravity = [0.0, -9.81]

[[body]]
name = "arm"
mass = 1.0
inertia = 0.1
position = [0.5, 0.0]

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "arm"]
at = [0.0, 0.0]
```

| key | admits | unit | default | meaning |
|---|---|---|---|---|
| schema | 1 |  | required | the version of the format |
| dimension | 2 or 3 |  | required | 2 planar, 3 spatial |
| name | a text |  | the file's name | of the model |
| gravity | 2 numbers, 3 in space | m/s2 | none | of the field, world axes |
| precision | a number from 0 to 0.05 |  | from the digits | how exact positions and directions are |
| parameters | a table |  | none | numbers by name, which expressions use |
| units | a table |  | none | texts by the name of a parameter, such as `length = "m"` |

Behind these stand tables: `[[body]]`, `[[joint]]`, `[[driver]]`, `[[force]]`, `[[compliance]]`,
`[[element]]`, `[[visual]]`, and what is expanded into them: `[[cylinder]]`, `[[assembly]]` and `[[use]]`. "ground" is the fixed frame.
Names hold no comma, full stop or quote. All numbers of places and directions are those of the
reference configuration, along the world's axes. Any part has a `name`; motions, shapes, visual shapes,
actuators and controllers have none.

Numbers are varied in sweeps and designs by the same words, `points` as `at` and `rotation` as
`orientation`: `bodies.arm.mass`, `joints.A.at.x`, `parameters.length`. `x` in a unit is that of the
driven coordinate, m or rad. Where the entries of a key have several units, its meaning names them.

`jaxmbs reference --schema --out model.schema.json` writes a JSON Schema. With the line `#:schema` at
the head of a file, editors that have a TOML language server (VS Code: Even Better TOML) complete keys
and mark mistakes.
"""

MOTIONS_TEXT = """Also the `reference` (x: m or rad) and the `command` (x: V, N m or N) of a motor.
"""

ELEMENTS_TEXT = """Inertia that is felt between two bodies: of a rotor behind a gear, which turns with the
joint and faster than it (MJCF: `armature`). They add to the mass matrix, and have no place of their
own.
"""

VISUALS_TEXT = f"""How bodies look in pictures, reports and the viewer. A visual shape has no mass and touches nothing.
Its place is given in the frame of its body (of a rigid body: centre of mass and body axes), for the
ground in the world. A body may have several; one that has none is drawn by its `shape`, or by what
follows from its joints. Colours are `#rrggbb` or one of {", ".join(COLOURS)}. Numbers may be
expressions; they are no numbers that could be varied.
"""

NUMBERS = """## Numbers: expressions and axes of bodies

Wherever a number is admitted there may stand a text, an expression of parameters:

```toml
schema = 1
dimension = 2

[parameters]
length = 0.4                       # m
width = "length / 10"
tip = ["length", 0.0]              # parameters may be vectors

[[body]]
name = "crank"
mass = "7850 * length * width**2"
inertia = 0.02
position = "tip / 2"

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "crank"]
at = { body = "crank", point = ["-length / 2", 0.0] }
```

- Operations are `+ - * / **`, parentheses, `[a, b]` and `a[0]`; the constant is `pi`; the functions are
  sqrt, exp, log, sin, cos, tan, asin, acos, atan, atan2, hypot, radians, degrees, abs, min, max, and of
  vectors norm, unit, dot, cross and across (the unit vector across a direction: n1 below). Nothing
  else of any programming language is known, and nothing is run.
- Names are parameters of the file and, in an assembly, also its own. They are words of letters,
  digits and underscores.
- A table `[units]` gives parameters a unit, `length = "m"`: a text of at most 20 characters, which
  sweeps and designs show with the parameter. Nothing is computed with it: numbers stay those of SI.
- Points, directions and orientations may be given in the axes of a body, whose origin is its centre
  of mass: `{ body = "crank", point = [..] }`, and with `direction`, `orientation`, `rotation` or
  `angle` in place of `point` where the key is one of these. Of two points each may be so. They follow
  the body, also where its position is varied.
- A sweep or a design names a parameter `parameters.length`; everything that is an expression of it
  follows, inside of the compiled program and with derivatives. A number that is named itself wins
  over its expression, and keeps its value from then on.
- Reading a file and writing it keeps parameters, expressions, shapes, assemblies, cylinders and uses.
  `jaxmbs.vary(model, {"parameters.length": 0.5})` is the model with other numbers, which is written
  in the same way.
"""

PRECISION = """## Precision: how exact the numbers are

Ranks hang on numbers that are exact: with 1.5708 for pi / 2 redundant joints seem to be independent,
by forces that are a million times too large. So a model knows how exact its positions and directions
are, lengths relative to the characteristic length and angles in rad. Joints count as closed within
that, ranks and verdicts are those within it, and a redundancy that the numbers as they stand do not
have is told as `not unique at the precision of the numbers`, with both ranks. `precision` states it;
0 says that all numbers are exact. Without that key the digits of the file tell it:

- lengths, components of vectors and angles of five digits or more are rounded at their last one. Whole
  numbers, fractions of a power of two and numbers of fifteen digits are exact;
- the coarsest of these counts. Expressions such as `pi / 2` are exact, the numbers of parameters in
  them are looked at likewise;
- shorter numbers may be rounded: those that do not end in 5 or 0, vectors whose length is 1 to within
  their last digit and not exactly (0.707, 0.707, 0), 1.57 and other multiples of pi / 12. Ranks are then
  those of the numbers as they stand, and one that would be another within such a digit is doubtful.

Only joints, uses and cylinders are looked at: no rank depends on masses and their centres. A
mechanism without loops has its full rank whatever its numbers. What is exact and has five digits or
more, says `precision = 0`.
"""

SHAPES_TEXT = """A body has `mass` and `inertia`, or a `shape` in place of the inertia; then its mass is given,
or follows from the shape's `density`. Its centre of mass is the centre of the shape. Numbers of shapes
are varied as `bodies.NAME.shape.radius`.
"""

ASSEMBLIES = """An `[[assembly]]` declares parts once, and every `[[use]]` of it makes them anew. Besides the
keys below it has tables of parts and uses of other assemblies: `[[assembly.body]]`,
`[[assembly.joint]]`, `[[assembly.cylinder]]`, `[[assembly.use]]` and so on.

- The part "shank" of the use "left leg" is called "left leg shank": that is its name in reports, in
  `bodies` of other tables, and in sweeps (`bodies.left leg shank.mass`).
- Names in an assembly are those of its own parts, of the ground, and its `outer` names, for which
  each use names bodies.
- Places and directions in an assembly are along its own axes, which a use puts where it wants them.
  What is given in the axes of a body is not moved, nor is what is measured along a joint's marker.
- Parameters of a use are varied as `uses.left leg.parameters.height`, its place as
  `uses.left leg.position.x`.
- Rows come in this order: the file's own parts, its cylinders, its uses; within a use the same.
- An assembly that uses itself is refused, as are uses more than 16 deep or of more than 100,000 parts, where
  uses and parameters count as well.
- A rolling disk stays on the world's plane z = 0: a use of it may be turned about z alone.
"""

CYLINDERS = """A hydraulic cylinder or linear actuator: "NAME barrel" and "NAME rod", the joint "NAME slide"
between them (translational; its coordinate is the extension from the reference configuration), the
joints "NAME foot" (first body and barrel) and "NAME head" (rod and second body), and where they are
asked for the driver "NAME drive" and the forces "NAME barrel thrust", "NAME rod thrust" and
"NAME spring". The barrel begins at the first point, the rod ends at the second. A universal end has
the axes n1 and n2 across the line.

The rod goes into the barrel (into its bore, where it is a tube), and both together are at least as
long as the distance of the points. It has a motion or a force, not both; spring and damper go with
either.
"""

ROWS = """## Names and order of rows

Rows stand in the order of joints in the file, then of drivers. A joint or driver of one row has its
bare name for it; otherwise a suffix is added, in the order of this table. These are the names of
`--drop`, `removable_rows` and `combinations`.

| suffix | rows | of |
|---|---|---|
| `.x .y .z` | points coincide, along the world's axes at all times | revolute, spherical, universal, fixed, rolling_disk |
| `.n`, or `.n1 .n2` | across an axis | translational, cylindrical, screw, point_on_line; planar: along its normal |
| `.n`, or `.n1 .n2` | across a curve, carried by the first body | point_on_curve, cam |
| `.a1 .a2`, or `.a` | axes stay parallel (universal, perpendicular_axes: perpendicular) | revolute, cylindrical, planar, screw, parallel_axes, universal |
| `.r`, or `.rx .ry .rz` | no relative rotation, about the reference configuration's world axes | translational, fixed |
| `.s` | advance goes with rotation | screw |
| `.1 .2 ...` | rows as written | pfaffian with several rows |

Directions are carried by the second body: n1 is the world axis least aligned with the joint's axis (the
first of x, y, z on a tie), made normal to it and of unit length; n2 = axis x n1, in the reference
configuration. A knife edge's row is the velocity at its point along `direction` turned by +90 degrees.
The row of a curve is along its normal to the left of its direction, that of a cam along its outward normal;
in space n1 is the axis of the first body (world axes of the reference configuration) least aligned with
the tangent, made normal to it, and n2 = tangent x n1.
"""

REFUSALS = """## What is refused

With one sentence that names the table, the key and the value, exit status 2, and nothing on standard
output: an unknown key or type, a missing key, a name used twice or never declared; a mass that is not
greater than zero, an inertia that is not positive definite or breaks the triangle inequality (equality,
of a thin plate or rod, is fine), a rotation that is not orthogonal; a number that is not finite, a vector
of wrong length, an axis of zero length; a joint of a body with itself, a driver of a coordinate that
its joint does not have, times that do not increase; a name in an expression that is no parameter, a
parameter that depends on itself, a division by zero. A reference configuration is closed when every
residual is at most 1e-8 (lengths relative to the characteristic length); one that is not is refused by
`analyze`, `simulate` and `kinematics`, which say which joint is off by how much, and `--assemble` moves
to the nearest closed one. Initial velocities must satisfy the constraints in `simulate` alone.
"""

COMMANDS = """## What the command line prints

`MODEL` is a `.toml` file or the name of a built-in mechanism (`jaxmbs list`). With `--json` a command
prints one JSON document and nothing else; it never holds NaN or Infinity. Exit status: 0 done, 1 the
analysis itself failed (it did not converge, constraints contradict each other), 2 bad input.

`jaxmbs analyze MODEL`: which reactions are unique.

| key | meaning |
|---|---|
| `coordinates`, `constraints`, `rank`, `redundancy`, `mobility` | velocity unknowns (3 for each planar body, 6 for each spatial one), rows, rank of C, rows less rank, unknowns less rank |
| `rank_geometric`, `rank_velocity` | rank of the rows that restrict positions, and of those that restrict velocities |
| `precision` | of a model whose numbers are not exact: `relative`, the part of the first pivot below which one counts as zero; `rank_as_written`, by the numbers as they stand; `redundant_at_precision`; `not_unique_at_precision`, the joints that are unique by the numbers as they stand alone |
| `rank_gap` | last kept over first dropped pivot or singular value; null where none is dropped |
| `configuration` | of each body, as analysed |
| `joints` | in row order, drivers among them: `unique` says of the generalized reaction, `multipliers_unique` of each of its multipliers, `measure` is what decides (unique at most 1e-6) |
| `bodies` | `bodies[b][j]`: is the resultant force, and torque about the centre of mass, of joint j on body b unique |
| `subsets`, `combinations` | of several joints together, and of multipliers, where asked for |
| `removable_rows` | each row whose removal alone keeps the rank |
| `complete_removal` | a set of rows whose removal leaves full row rank |
| `dependent_sets` | smallest sets of joints whose rows together are dependent |
| `real_mobility` | with `--mobility`, and where geometric rows are redundant and something moves (null above 300 coordinates, where it is computed with `--mobility` alone): `mobility`, the degrees of freedom in truth (null where not decided), and `first_order`; `order` of the derivatives that decide; `shaky`: are there fewer motions than first order allows; `branches` that meet here, each with `degrees_of_freedom`, `first_order` along it, `one_way` (a cusp), `cone`, and `tangent`, velocities in the order of the coordinates; `doubts` |
| `sharing` | all joints that share loads: those that dependent sets connect |
| `singularity`, `releases` | where asked for: the rank nearby, whether this configuration is singular or isolated, and joints whose release makes all reactions unique |

`jaxmbs simulate MODEL --end T`: the final state (`bodies`), `reactions` with `unique`, `energy` and
`constraint_error`; a joint's `force` and `torque` are what it exerts on its second body (its only one),
in world axes, about the joint's point. `--out` writes the whole motion (`.csv`, `.npz`, `.nc`, `.zarr`):
columns `time`, `BODY.position.x` ..., `BODY.angle` or `BODY.orientation.w` ..., `BODY.velocity.x` ...,
`BODY.angular_velocity` ..., `JOINT.force.x` ..., `JOINT.torque` ..., `JOINT.unique`, `error.position` and
`error.velocity`.

`jaxmbs kinematics MODEL --end T --every DT`: `times`, and of each body `position`, `angle` or
`orientation`, `velocity`, `angular_velocity`, `acceleration`, `angular_acceleration`. Every mobility
must be driven. Of this and of `simulate`: `passages`, times of singular configurations on the way, and
`singular`, what is not determined there (`not_unique`: joints; `free`: motions).

`jaxmbs sweep MODEL --over NAME=LO:HI:COUNT --out STORE`, `jaxmbs design STUDY`: NAME is a driver or a
number, such as `bodies.arm.mass` or `parameters.length`. `jaxmbs export NAME`: a built-in mechanism as a
model file. `jaxmbs COMMAND --help` says all options.
"""


# --------------------------------------------------------------------------------------------------
# The reference of model files, from what the fields of parts declare.
# --------------------------------------------------------------------------------------------------


def reference() -> str:
    """All that a model file may hold, as Markdown: for each key its admissible values, unit,
    default and meaning, with an example of every table; names of rows, refusals, and the output of
    commands. The page `REFERENCE.md` is this text."""
    bodies = {f"dimension {dimension}": cls for dimension, cls in BODIES.items()}
    bodies |= dict(TYPED_BODIES[3])
    uses = {f"dimension {dimension}": cls for dimension, cls in USES.items()}
    return "\n".join(
        [
            HEAD,
            NUMBERS,
            PRECISION,
            _section("`[[body]]`", bodies, _of_dimensions("body", _examples.BODIES)),
            _section("`shape` of a body", SHAPES, _shapes(), SHAPES_TEXT),
            *(_joints(dimension) for dimension in JOINTS),
            _section("`[[driver]]`", {"all": Driver}, tables_text("driver", [_examples.DRIVER])),
            _section(
                "`motion` of a driver", MOTIONS, _inner("motion", _examples.MOTIONS), MOTIONS_TEXT
            ),
            _section(
                "`[[force]]`",
                FORCES,
                _typed("force", "F", dict(_examples.ALL_FORCES)),
            ),
            _section(
                "`first` and `second` of a contact",
                CONTACT_SHAPES,
                _inner("first", _examples.CONTACT_SHAPES),
            ),
            _section("`actuator` of a motor", ACTUATORS, _inner("actuator", _examples.ACTUATORS)),
            _section(
                "`controller` of a motor", CONTROLLERS, _inner("controller", _examples.CONTROLLERS)
            ),
            _section("`[[compliance]]`", COMPLIANCES, _typed("compliance", "C", _compliances())),
            _section(
                "`[[element]]`, dimension 3",
                ELEMENTS[3],
                _typed("element", "E", _examples.ELEMENTS),
                ELEMENTS_TEXT,
            ),
            _section("`[[visual]]`", VISUALS, _looks(), VISUALS_TEXT),
            _assemblies(uses),
            _section(
                "`[[cylinder]]`",
                {"all": Cylinder},
                _of_dimensions("cylinder", {d: (x,) for d, x in _examples.CYLINDERS.items()}),
                CYLINDERS,
            ),
            ROWS,
            REFUSALS,
            COMMANDS,
        ]
    )


def _section(title: str, parts: Mapping[str, type[Any]], examples: str, text: str = "") -> str:
    rows = [line for word, cls in parts.items() for line in _rows(word, cls)]
    head = ["| type | key | admits | unit | default | meaning |", "|---|---|---|---|---|---|"]
    shown = ["```toml", examples.strip(), "```"]
    return "\n".join([f"## {title}", "", *([text] if text else []), *head, *rows, "", *shown, ""])


def _rows(word: str, cls: type[Any]) -> list[str]:
    cells = [
        (key, own.said.admits, own.said.unit, _default(own), own.said.meaning)
        for key, own in keys_of(cls).items()
        if key != "name"
    ]
    if cls in FOLLOWS.values():
        first = next(iter(FOLLOWS))
        cells.append(("follows", " or ".join(FOLLOWS), "", first, "whose axes the numbers are in"))
    return [f"| {word} | {' | '.join(row)} |".format(driven="x") for row in cells]


def _default(key: Key) -> str:
    if key.needed:
        return f"this or `{key.instead}`" if key.instead else "required"
    if key.default is None:
        return key.said.left_out or f"`{key.instead}`"
    if isinstance(key.default, bool):
        return "true" if key.default else "false"
    return str(list(key.default) if isinstance(key.default, tuple) else key.default)


# ---------------------------------------------------------------------------------------------
# Examples
# ---------------------------------------------------------------------------------------------


def _joints(dimension: int) -> str:
    examples = _typed("joint", "J", _examples.JOINTS[dimension])
    return _section(f"`[[joint]]`, dimension {dimension}", JOINTS[dimension], examples)


def _typed(kind: str, letter: str, examples: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Tables of every type in turn."""
    entries = [(word, entry) for word, several in examples.items() for entry in several]
    return tables_text(
        kind,
        [
            {"name": f"{letter}{k}", "type": word, **entry}
            for k, (word, entry) in enumerate(entries, start=1)
        ],
    )


def _looks() -> str:
    entries: list[Mapping[str, Any]] = [
        {"type": word, **entry} for word, several in _examples.VISUALS.items() for entry in several
    ]
    return "\n\n".join(
        f"# dimension = {dimension}\n{tables_text('visual', own).strip()}"
        for dimension in (3, 2)
        if (own := [x for x in entries if len(x["at"]) == dimension])
    )


def _compliances() -> dict[str, tuple[dict[str, Any], ...]]:
    return {word: (entry,) for word, entry in _examples.COMPLIANCES.items()}


def _inner(
    key: str, examples: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]]
) -> str:
    """Tables within another one, under this key of it."""
    entries = [
        {"type": word, **entry}
        for word, own in examples.items()
        for entry in ([own] if isinstance(own, Mapping) else own)
    ]
    lines = [tables_text("driver", [{key: entry}]).splitlines()[-1] for entry in entries]
    return "\n".join(f"{'' if k == 0 else '# '}{line}" for k, line in enumerate(lines))


def _shapes() -> str:
    lines = [
        tables_text("body", [{"shape": {"type": word, **own}}]).splitlines()[-1]
        for word, own in _examples.SHAPES.items()
    ]
    return "\n".join(f"{'' if k == 0 else '# '}{line}" for k, line in enumerate(lines))


def _of_dimensions(kind: str, examples: Mapping[int, Sequence[Mapping[str, Any]]]) -> str:
    parts = [
        f"# dimension = {dimension}\n{tables_text(kind, list(entries)).strip()}"
        for dimension, entries in examples.items()
    ]
    return "\n\n".join(parts)


def _assemblies(uses: Mapping[str, type[Any]]) -> str:
    examples = "\n\n".join(
        f"# dimension = {dimension}\n"
        + tables_text("assembly", [_examples.ASSEMBLIES[dimension]]).strip()
        + "\n\n"
        + tables_text("use", list(_examples.USES[dimension])).strip()
        for dimension in USES
    )
    return _section(
        "`[[assembly]]` and `[[use]]`", {"assembly": Assembly, **uses}, examples, ASSEMBLIES
    )
