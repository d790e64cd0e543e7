"""A force, a joint and a formulation are added as the architecture page says, to a copy of the
package, and work there: from Python, in model files, in the reference and the schema."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


ROOT = Path(__file__).parent.parent
PAGE = ROOT / "jaxmbs" / "README.md"

# What is written, by the part and the file: a new file or the end of one, or lines each of which
# follows another.
FORCE = {
    "_forces/_drag.py": '''from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._constraints import Frames, Twists
from .._constraints._fields import unturned_frame
from .._custom_types import RealScalarLike, Scalar
from .._fields import not_negative
from .base import AbstractBodyForce, AbstractExternalLoad, FORCE_NAME, ONE_BODY


class DragLoad(AbstractExternalLoad):
    damping: Scalar

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        (frame,), (twist,) = frames, twists
        force = -self.damping * twist.linear
        return (frame.wrench(force, jnp.zeros_like(twist.angular)),)


class Drag(AbstractBodyForce):
    """Against the velocity of a body's centre of mass."""

    kind: ClassVar[str] = "drag"
    strengths: ClassVar[tuple[str, ...]] = ("damping",)
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    damping: Scalar = eqx.field(
        kw_only=True, converter=not_negative("damping", "N s/m", "of the medium")
    )

    def placements(self, references: Frames) -> Frames:
        return unturned_frame(references[0].origin)

    def load(self) -> DragLoad:
        return DragLoad(self.damping)
''',
    "_forces/__init__.py": {
        "    from ._coulomb_friction import": "    from ._drag import Drag as Drag",
        '        "_coulomb_friction": (': '        "_drag": ("Drag",),',
    },
    "forces.py": {
        "    CoulombFriction as": "    Drag as Drag,",
        '    "CoulombFriction",': '    "Drag",',
    },
    "io/_registry.py": {'        "bushing": lambda:': '        "drag": lambda: forces.Drag,'},
    "io/_examples.py": {
        '    "coulomb_friction": (': '    "drag": ({"body": "bar", "damping": 2.0},),'
    },
}
JOINT = {
    "_constraints/_planar.py": '''

class Slot(AbstractJoint):
    """A point of the first body in a slot of the second, along its first axis: one row."""

    kind: ClassVar[str] = "slot"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 2"] = eqx.field(converter=PLANAR_PAIR)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        return planar_frames(self.at, unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnPlanarLine(jnp.asarray(1.0)),)
''',
    "planar.py": {"    Revolute as": "    Slot as Slot,", '    "Revolute",': '    "Slot",'},
    "io/_registry.py": {'"knife_edge": lambda:': '                "slot": lambda: planar.Slot,'},
    "io/_examples.py": {'"knife_edge": (': '        "slot": ({**_BETWEEN, "at": [1.0, 0.0]},),'},
}
FORMULATION = {
    "_formulations/_dense.py": '''from typing import ClassVar

import jax.numpy as jnp

from .._system import Equations
from .base import AbstractFormulation, Accelerations, outcome


class Dense(AbstractFormulation):
    """The equations by a pseudoinverse of the whole matrix."""

    word: ClassVar[str] = "dense"

    def solve(self, equations: Equations) -> Accelerations:
        matrices, force = equations.descriptor, equations.force
        mass, matrix = matrices.mass_matrix(), matrices.constraint_matrix()
        flexibility = matrix @ jnp.linalg.solve(mass, matrix.T)
        right = matrix @ jnp.linalg.solve(mass, force) - equations.offset
        multipliers = jnp.linalg.pinv(flexibility, rtol=1e-9) @ right
        acceleration = jnp.linalg.solve(mass, force - matrix.T @ multipliers)
        return outcome(acceleration, multipliers)
''',
    "_formulations/__init__.py": {
        "from ._minimum_norm import": "from ._dense import Dense as Dense"
    },
    "formulations.py": {
        "        CoordinatePartitioning as": "        Dense as Dense,",
        '            "CoordinatePartitioning",': '            "Dense",',
    },
}

PROGRAM = """
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
import jaxmbs as jm
from jaxmbs import io
from pathlib import Path

print(jm.__file__)
text = '''
schema = 1
dimension = 2
gravity = [0.0, -10.0]

[[body]]
name = "bar"
mass = 2.0
inertia = 0.5
position = [0.0, 0.0]

[[joint]]
name = "S"
type = "slot"
bodies = ["bar", "ground"]
at = [0.0, 0.0]

[[force]]
name = "D"
type = "drag"
body = "bar"
damping = 3.0
'''
Path("part.toml").write_text(text)
model = io.read_model("part.toml")
assert "damping = 3.0" in io.write_model(model)
system = model.system()
assert len(system.structure.rows) == 1
v = np.array([4.0, 0.0, 0.0])
for formulation in (jm.formulations.MinimumNorm(), jm.formulations.Dense()):
    found = formulation.solve(system.equations(system.reference_q, v, 0.0))
    np.testing.assert_allclose(found.acceleration, [-6.0, 0.0, 0.0], atol=1e-12)
assert "drag" in io.reference() and "slot" in io.reference()
assert "drag" in str(io.json_schema())
print("all of it works")
"""


def written(package: Path, edits: dict[str, str | dict[str, str]]) -> None:
    for name, edit in edits.items():
        path = package / name
        if isinstance(edit, str):
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            path.write_text(before + edit, encoding="utf-8")
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        for before, line in edit.items():
            places = [k for k, own in enumerate(lines) if before in own]
            assert places, f"{before} in {name}"
            # Behind the statement that begins there.
            end = next(
                k for k in range(places[0], len(lines)) if balanced(lines[places[0] : k + 1])
            )
            lines.insert(end + 1, line)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def balanced(lines: list[str]) -> bool:
    text = "".join(lines)
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def bullet(part: str) -> str:
    """The paragraph of the page on a part."""
    text = PAGE.read_text(encoding="utf-8").split("## How to add")[1]
    found = re.search(rf"- \*\*{part}\*\*:.*?(?=\n- \*\*|\n## |\Z)", text, re.DOTALL)
    assert found
    return found[0]


@pytest.mark.parametrize(
    ("part", "edits"), [("A force", FORCE), ("A joint", JOINT), ("A formulation", FORMULATION)]
)
def test_page_names_every_place(part, edits):
    told = bullet(part)
    for name in edits:
        new = not (PAGE.parent / name).exists()
        place = f"{name.rsplit('/', 1)[0]}/" if new else name
        assert f"`{place}`" in told.replace("\n  ", " "), place


def test_parts_that_are_added_work(tmp_path):
    package = tmp_path / "jaxmbs"
    shutil.copytree(ROOT / "jaxmbs", package, ignore=shutil.ignore_patterns("__pycache__"))
    for edits in (FORCE, JOINT, FORMULATION):
        written(package, edits)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "make_files.py", tmp_path / "docs")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "JAXMBS_NO_CACHE": "1"}
    for arguments in (["-c", PROGRAM], [str(tmp_path / "docs" / "make_files.py")]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, done.stderr
    text = (package / "io" / "REFERENCE.md").read_text(encoding="utf-8")
    assert "drag" in text
    assert "slot" in text
