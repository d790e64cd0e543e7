"""An example of every table of a model file, for the reference. The tests read them all."""

from collections.abc import Mapping
from typing import Any


_HINGED: Mapping[str, Any] = {"bodies": ["ground", "bar"]}
_BETWEEN: Mapping[str, Any] = {"bodies": ["bar", "rod"]}

# What the examples are added to: two bodies, and joints that forces and drivers name.
BASES: Mapping[int, Mapping[str, Any]] = {
    2: {
        "schema": 1,
        "dimension": 2,
        "parameters": {"length": 1.0},
        "body": [
            {"name": "bar", "mass": 1.0, "inertia": 0.1, "position": [0.5, 0.0]},
            {"name": "rod", "mass": 2.0, "inertia": 0.2, "position": [1.5, 0.0]},
        ],
        "joint": [
            {"name": "A", "type": "revolute", **_HINGED, "at": [0.0, 0.0]},
            {"name": "B", "type": "translational", **_BETWEEN, "at": [1.0, 0.0], "axis": [1, 0]},
        ],
    },
    3: {
        "schema": 1,
        "dimension": 3,
        "parameters": {"length": 1.0},
        "body": [
            {"name": "bar", "mass": 1.0, "inertia": [0.1, 0.2, 0.2], "position": [0.5, 0, 0]},
            {"name": "rod", "mass": 2.0, "inertia": [0.1, 0.2, 0.2], "position": [1.5, 0, 0]},
        ],
        "joint": [{"name": "A", "type": "revolute", **_HINGED, "at": [0, 0, 0], "axis": [0, 0, 1]}],
    },
}

BODIES: Mapping[int, tuple[dict[str, Any], ...]] = {
    2: (
        {
            "name": "crank",
            "mass": 1.2,
            "inertia": 0.01,
            "position": [0.1, 0.0],
            "angle": 0.5,
            "velocity": [0.0, 0.2],
            "angular_velocity": 2.0,
        },
        {
            "name": "plate",
            "shape": {"type": "box", "size": ["length", 0.1, 0.02], "density": 7850.0},
            "position": ["length / 2", 0.0],
        },
    ),
    3: (
        {
            "name": "crank",
            "mass": 1.2,
            "inertia": [0.01, 0.02, 0.02],
            "position": [0.1, 0.0, 0.0],
            "orientation": [0.8, 0.0, 0.0, 0.6],
            "velocity": [0.0, 0.2, 0.0],
            "angular_velocity": [0.0, 0.0, 2.0],
        },
        {
            "name": "frame",
            "mass": 3.0,
            "inertia": [[0.3, 0.01, 0.0], [0.01, 0.4, 0.0], [0.0, 0.0, 0.5]],
            "position": [0.0, 0.0, 0.3],
            "rotation": [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        },
        {
            "name": "post",
            "mass": 4.0,
            "shape": {"type": "cylinder", "radius": 0.05, "length": "length"},
            "position": [0.0, 0.0, "length / 2"],
        },
        {
            "name": "fork",
            "type": "massless",
            "position": [1.0, 0.0, 0.0],
            "orientation": [1.0, 0.0, 0.0, 0.0],
        },
        {
            "name": "cross",
            "type": "massless",
            "position": [1.2, 0.0, 0.0],
            "rotation": [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
            "velocity": [0.0, 0.0, 0.0],
            "angular_velocity": [0.0, 0.0, 0.0],
        },
        {
            "name": "thin rod",
            "type": "slender",
            "mass": 0.5,
            "inertia": [0.01, 0.01, 0.0],
            "position": [1.4, 0.0, 0.0],
            "orientation": [1.0, 0.0, 0.0, 0.0],
        },
        {
            "name": "point",
            "type": "slender",
            "mass": 0.2,
            "inertia": [0.0, 0.0, 0.0],
            "position": [1.6, 0.0, 0.0],
            "rotation": [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
            "velocity": [0.0, 0.0, 0.0],
            "angular_velocity": [0.0, 0.0, 0.0],
        },
    ),
}

SHAPES: Mapping[str, dict[str, Any]] = {
    "box": {"size": ["length", 0.1, 0.02], "density": 7850.0},
    "cylinder": {"radius": 0.02, "length": "length", "axis": [1, 0, 0], "mass": 2.0},
    "tube": {
        "radius": 0.03,
        "inner_radius": 0.025,
        "length": 0.5,
        "axis": [0, 0, 1],
        "density": 2700.0,
    },
    "sphere": {"radius": 0.1, "density": 7850.0},
}

JOINTS: Mapping[int, Mapping[str, tuple[dict[str, Any], ...]]] = {
    2: {
        "revolute": (
            {**_HINGED, "at": [0.0, 0.0]},
            {**_BETWEEN, "points": [[1.0, 0.0], [1.001, 0.0]]},
        ),
        "translational": (
            {**_BETWEEN, "at": [1.0, 0.0], "axis": [1.0, 0.0]},
            {**_BETWEEN, "points": [[1.0, 0.0], [1.2, 0.0]], "axis": [1.0, 0.0]},
        ),
        "fixed": (
            {**_BETWEEN, "at": [1.0, 0.0]},
            {**_BETWEEN, "points": [[1.0, 0.0], [1.0, 0.0]]},
        ),
        "point_on_line": (
            {**_BETWEEN, "at": [1.0, 0.0], "axis": [0.0, 1.0]},
            {**_BETWEEN, "points": [[1.0, 0.2], [1.0, 0.0]], "axis": [0.0, 1.0]},
        ),
        "point_on_curve": (
            {
                **_BETWEEN,
                "at": [1.0, 0.0],
                "curve": [[0.8, -0.1], [0.9, -0.03], [1.0, 0.0], [1.1, -0.03], [1.2, -0.1]],
                "closed": False,
            },
        ),
        "cam": (
            {
                **_BETWEEN,
                "at": [1.3, 0.0],
                "profile": [[1.25, 0], [1.1, 0.2], [0.9, 0.2], [0.75, 0], [0.9, -0.2], [1.1, -0.2]],
                "radius": 0.05,
                "pitch_curve": False,
            },
            {
                **_BETWEEN,
                "at": [1.25, 0.0],
                "radii": [0.25, 0.24, 0.22, 0.21, 0.22, 0.24],
                "centre": [1.0, 0.0],
                "face": [0.0, 1.0],
            },
        ),
        "distance": ({**_BETWEEN, "points": [[0.5, 0.2], [1.5, 0.2]], "length": 1.0},),
        "path_tendon": (
            {
                "bodies": ["ground", "bar", "rod"],
                "points": [[0.5, 2.0], [0.5, 0.2], [1.5, 1.0]],
                "radii": [0.0, 0.1, 0.0],
                "senses": [0.0, 1.0, 0.0],
            },
        ),
        "gear": ({**_BETWEEN, "ratio": -2.0, "carrier": "ground"},),
        "rope": (
            {
                "bodies": ["ground", "bar", "rod"],
                "points": [[0.5, 2.0], [0.5, 0.2], [1.5, 1.0]],
                "radii": [0.0, 0.1, 0.0],
                "senses": [0.0, 1.0, 0.0],
                "length": 4.0,
            },
        ),
        "belt": (
            {
                **_BETWEEN,
                "points": [[0.5, 0.0], [1.5, 0.0]],
                "radii": [0.1, 0.2],
                "senses": [1.0, -1.0],
                "length": 2.6,
                "carrier": "ground",
            },
        ),
        "gear_pair": (
            {
                **_BETWEEN,
                "points": [[0.0, 0.0], [1.5, 0.0]],
                "teeth": [40, 20],
                "carrier": "ground",
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "rack_and_pinion": (
            {
                **_BETWEEN,
                "points": [[0.0, 0.0], [0.0, 0.1]],
                "carrier": "ground",
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "knife_edge": ({"bodies": ["rod"], "at": [1.5, 0.0], "direction": [1.0, 0.0]},),
        "pfaffian": ({"bodies": ["bar"], "coefficients": [0.0, 1.0, -0.5]},),
    },
    3: {
        "revolute": (
            {**_HINGED, "at": [0, 0, 0], "axis": [0, 0, 1]},
            {**_HINGED, "points": [[0, 0, 0], [0, 0, 0.001]], "axis": [0, 0, 1]},
        ),
        "translational": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [1, 0, 0]},
            {**_BETWEEN, "points": [[1, 0, 0], [1.2, 0, 0]], "axis": [1, 0, 0]},
        ),
        "fixed": (
            {**_BETWEEN, "at": [1, 0, 0]},
            {**_BETWEEN, "points": [[1, 0, 0], [1, 0, 0]]},
        ),
        "spherical": (
            {**_BETWEEN, "at": {"body": "bar", "point": [0.5, 0, 0]}},
            {**_BETWEEN, "points": [[1, 0, 0], [1, 0, 0]]},
        ),
        "cylindrical": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [1, 0, 0]},
            {**_BETWEEN, "points": [[1, 0, 0], [1.2, 0, 0]], "axis": [1, 0, 0]},
        ),
        "universal": (
            {**_BETWEEN, "at": [1, 0, 0], "axes": [[0, 1, 0], [0, 0, 1]]},
            {**_BETWEEN, "points": [[1, 0, 0], [1, 0, 0]], "axes": [[0, 1, 0], [0, 0, 1]]},
        ),
        "planar": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [0, 0, 1]},
            {**_BETWEEN, "points": [[1, 0, 0], [1, 0.1, 0]], "axis": [0, 0, 1]},
        ),
        "screw": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [1, 0, 0], "pitch": 0.005},
            {**_BETWEEN, "points": [[1, 0, 0], [1.2, 0, 0]], "axis": [1, 0, 0], "pitch": 0.005},
        ),
        "point_on_line": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [1, 0, 0]},
            {**_BETWEEN, "points": [[1.2, 0, 0], [1, 0, 0]], "axis": [1, 0, 0]},
        ),
        "point_on_curve": (
            {
                **_BETWEEN,
                "at": [1, 0, 0],
                "curve": [[0.8, 0, 0], [0.9, 0, 0.01], [1, 0, 0], [1.1, 0.02, 0], [1.2, 0.05, 0]],
                "closed": False,
            },
        ),
        "point_on_plane": (
            {**_BETWEEN, "at": [1, 0, 0], "axis": [0, 0, 1]},
            {**_BETWEEN, "points": [[1.2, 0, 0], [1, 0, 0]], "axis": [0, 0, 1]},
        ),
        "parallel_axes": ({**_BETWEEN, "axes": [[1, 0, 0], [1, 0, 0]]},),
        "perpendicular_axes": ({**_BETWEEN, "axes": [[1, 0, 0], [0, 0, 1]]},),
        "distance": ({**_BETWEEN, "points": [[0.5, 0, 0.2], [1.5, 0, 0.2]], "length": 1.0},),
        "rope": (
            {
                "bodies": ["ground", "bar", "rod"],
                "points": [[0.5, 0, 2.0], [0.5, 0, 0.2], [1.5, 0, 1.0]],
                "radii": [0.0, 0.1, 0.0],
                "senses": [0.0, -1.0, 0.0],
                "axes": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
                "length": 4.0,
            },
        ),
        "path_tendon": (
            {
                "bodies": ["ground", "bar", "rod"],
                "points": [[0.5, 0, 2.0], [0.5, 0, 0.2], [1.5, 0, 1.0]],
                "radii": [0.0, 0.1, 0.0],
                "senses": [0.0, -1.0, 0.0],
                "axes": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
            },
        ),
        "joint_tendon": (
            {
                "bodies": ["ground", "bar", "bar", "rod"],
                "measures": ["rotation", "rotation"],
                "points": [[0, 0, 0], [1, 0, 0]],
                "axes": [[0, 0, 1], [0, 0, 1]],
                "ratios": [0.02, 0.015],
            },
        ),
        "coupling": (
            {
                "bodies": ["ground", "bar", "bar", "rod"],
                "measures": ["rotation", "rotation"],
                "points": [[0, 0, 0], [1, 0, 0]],
                "axes": [[0, 0, 1], [0, 0, 1]],
                "coefficients": [0.0, -2.0],
            },
        ),
        "gear_pair": (
            {
                **_BETWEEN,
                "points": [[0, 0, 0], [1.5, 0, 0]],
                "axis": [0, 0, 1],
                "teeth": [40, 20],
                "carrier": "ground",
                "helix_angle": 0.26,
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "bevel_pair": (
            {
                **_BETWEEN,
                "apex": [0, 0, 0],
                "axes": [[1, 0, 0], [0, 1, 0]],
                "teeth": [20, 40],
                "radius": 0.05,
                "carrier": "ground",
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "worm_pair": (
            {
                **_BETWEEN,
                "points": [[0, 0, 0], [0, 0, 0.1]],
                "axes": [[1, 0, 0], [0, 1, 0]],
                "teeth": [2, 40],
                "lead_angle": 0.2,
                "carrier": "ground",
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "rack_and_pinion": (
            {
                **_BETWEEN,
                "points": [[0, 0, 0], [0, 0.1, 0]],
                "axis": [0, 0, 1],
                "carrier": "ground",
                "helix_angle": 0.26,
                "pressure_angle": 0.349,
                "flank": -1,
            },
        ),
        "rolling_disk": ({"bodies": ["rod"], "axis": [0, 1, 0], "radius": 0.3},),
        "pfaffian": ({"bodies": ["bar"], "coefficients": [0, 1, 0, 0, 0, -0.5]},),
    },
}

MOTIONS: Mapping[str, dict[str, Any]] = {
    "sine": {"amplitude": 0.05, "frequency": 0.5, "offset": 0.0, "phase": 0.0},
    "linear": {"rate": 2.0, "offset": 0.1},
    "polynomial": {"coefficients": [0.0, 0.5, -0.1]},
    "table": {"times": [0.0, 1.0, 2.0, 3.0], "values": [0.0, 0.2, 0.1, 0.0]},
    "step": {"times": [0.0, 1.0], "values": [0.0, 0.2]},
}

DRIVER: dict[str, Any] = {
    "name": "motor",
    "joint": "A",
    "coordinate": "rotation",
    "motion": {"type": "linear", "rate": 2.0},
    "time_constant": 0.1,
    "limit": 50.0,
}

# In the plane; a lone torque or misfit is a vector in space.
FORCES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "applied": (
        {"body": "bar", "at": [1.0, 0.0], "force": [0.0, -5.0], "torque": 0.1, "follows": "body"},
    ),
    "bushing": (
        {**_BETWEEN, "at": [1.0, 0.0], "stiffness": [1e4, 1e4, 50.0], "damping": [10, 10, 0.1]},
        {**_BETWEEN, "points": [[1.0, 0.0], [1.0, 0.0]], "stiffness": [1e4, 1e4, 50.0]},
    ),
    "spring_damper": (
        {
            **_BETWEEN,
            "points": [[0.5, 0.0], [1.5, 0.0]],
            "stiffness": 100.0,
            "damping": 1.0,
            "length": 0.8,
        },
    ),
    "elastic_rope": (
        {
            "bodies": ["ground", "bar", "rod"],
            "points": [[0.5, 2.0], [0.5, 0.2], [1.5, 1.0]],
            "stiffness": 1e4,
            "damping": 10.0,
            "radii": [0.0, 0.1, 0.0],
            "senses": [0.0, 1.0, 0.0],
            "length": 3.0,
        },
    ),
    "torsion_spring": (
        {"joint": "A", "stiffness": 5.0, "damping": 0.1, "rest": 0.2, "torque": 0.033},
    ),
    "axial_spring": ({"joint": "B", "stiffness": 5.0, "damping": 0.1, "rest": 0.2, "force": 1.0},),
    "coulomb_friction": (
        {"joint": "A", "coefficient": 0.1, "velocity": 0.001, "radius": 0.01},
        {
            "joint": "B",
            "coefficient": 0.1,
            "velocity": 0.001,
            "length": 0.2,
            "bearing": "second",
        },
        {
            "joint": "*",
            "joint_kind": "revolute",
            "coefficient": 0.1,
            "velocity": 0.001,
            "radius": 0.01,
        },
        {"joint": "B", "coefficient": 0.1, "presliding": 1e-5, "relaxation_time": 0.001},
    ),
    "joint_friction": (
        {
            "joint": "A",
            "coordinate": "rotation",
            "sliding": 0.2,
            "viscous": 0.01,
            "breakaway": 0.3,
            "stribeck_speed": 0.1,
            "velocity": 0.001,
        },
        {"joint": "*", "joint_kind": "revolute", "sliding": 0.2, "velocity": 0.001},
        {"joint": "A", "sliding": 0.2, "presliding": 0.001, "relaxation_time": 0.002},
    ),
    "contact": (
        {
            **_BETWEEN,
            "first": {"type": "sphere", "radius": 0.05, "at": [1.0, 0.3]},
            "second": {"type": "capsule", "radius": 0.05, "points": [[1.2, 0.0], [1.8, 0.0]]},
            "stiffness": 1e6,
            "exponent": 1.5,
            "damping": 0.2,
            "friction": 0.5,
            "tangential_stiffness": 1e5,
            "tangential_damping": 10.0,
            "relaxation_time": 0.001,
        },
        {
            "bodies": ["rod", "ground"],
            "first": {"type": "box", "size": [0.4, 0.1], "at": [1.5, 0.0], "angle": 0.1},
            "second": {"type": "half_space", "normal": [0.0, 1.0], "at": [0.0, -1.0]},
            "stiffness": 1e6,
            "restitution": 0.8,
            "impact_speed": 1.0,
            "friction": 0.5,
            "transition_speed": 0.001,
            "rolling_resistance": 0.001,
            "rolling_speed": 0.01,
        },
    ),
    "motor": (
        {
            "joint": "A",
            "coordinate": "rotation",
            "actuator": {"type": "dc_motor", "torque_constant": 0.05, "resistance": 0.4},
            "controller": {"type": "pid", "proportional": 40.0, "integral": 20.0},
            "reference": {"type": "step", "times": [0.0, 0.5], "values": [0.0, 1.0]},
            "limits": 24.0,
            "ratio": 50.0,
            "efficiency": 0.8,
            "backward_efficiency": 0.6,
            "transition_speed": 0.01,
        },
        {
            "joint": "B",
            "coordinate": "translation",
            "actuator": {"type": "ideal"},
            "command": {"type": "linear", "rate": 2.0, "offset": 0.1},
            "limits": [-5.0, 15.0],
            "ratio": 1.0,
        },
    ),
    "joint_stop": (
        {
            "joint": "A",
            "coordinate": "rotation",
            "lower": -0.5,
            "upper": 1.2,
            "stiffness": 2e3,
            "exponent": 1.5,
            "restitution": 0.6,
            "impact_speed": 1.0,
        },
        {"joint": "B", "coordinate": "translation", "upper": 0.4, "stiffness": 1e5, "damping": 0.5},
    ),
}

# Tables within that of a contact, in the plane; a box of space has an orientation.
CONTACT_SHAPES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "sphere": ({"radius": 0.1, "at": [1.0, 0.0]},),
    "capsule": ({"radius": 0.1, "points": [[0.0, 0.0], [1.0, 0.0]]},),
    "box": (
        {"size": [0.4, 0.1], "at": [1.0, 0.0], "angle": 0.1},
        {"size": [0.4, 0.1, 0.2], "at": [1.0, 0.0, 0.0], "orientation": [0.8, 0.0, 0.0, 0.6]},
    ),
    "polytope": (
        {"vertices": [[0.8, 0.0], [1.2, 0.0], [1.0, 0.3]]},
        {"vertices": [[0.8, 0, 0], [1.2, 0, 0], [1, 0.3, 0], [1, 0.1, 0.2]]},
    ),
    "half_space": ({"normal": [0.0, 1.0], "at": [0.0, 0.0]},),
}

# Tables within that of a motor.
ACTUATORS: Mapping[str, dict[str, Any]] = {
    "ideal": {},
    "dc_motor": {"torque_constant": 0.05, "resistance": 0.4, "current_limit": 30.0},
    "torque_speed": {"speeds": [0.0, 200.0, 300.0], "torques": [1.5, 1.2, 0.0]},
}
CONTROLLERS: Mapping[str, dict[str, Any]] = {
    "pid": {
        "proportional": 40.0,
        "integral": 20.0,
        "derivative": 2.0,
        "filter_time": 0.01,
        "derivative_weight": 1.0,
        "tracking_time": 0.2,
    },
}

# Of space alone.
SPATIAL_FORCES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "elastic_rope": (
        {
            "bodies": ["ground", "bar", "rod"],
            "points": [[0.5, 0, 2.0], [0.5, 0, 0.2], [1.5, 0, 1.0]],
            "stiffness": 1e4,
            "radii": [0.0, 0.1, 0.0],
            "senses": [0.0, -1.0, 0.0],
            "axes": [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
        },
    ),
    "ball_spring": ({**_BETWEEN, "stiffness": 5.0, "damping": 0.1, "rest": [0.0, 0.0, 0.1]},),
}

# Of both dimensions.
ALL_FORCES: Mapping[str, tuple[dict[str, Any], ...]] = {
    word: (*FORCES.get(word, ()), *SPATIAL_FORCES.get(word, ()))
    for word in dict.fromkeys((*FORCES, *SPATIAL_FORCES))
}

ELEMENTS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "reflected_inertia": ({**_BETWEEN, "axis": [0, 0, 1], "inertia": 0.02},),
    "reflected_mass": (
        {**_BETWEEN, "at": [1, 0, 0], "axis": [1, 0, 0], "mass": 0.5},
        {**_BETWEEN, "points": [[1, 0, 0], [1.2, 0, 0]], "axis": [1, 0, 0], "mass": 0.5},
    ),
    "ball_inertia": ({**_BETWEEN, "inertia": 0.01},),
}

COMPLIANCES: Mapping[str, dict[str, Any]] = {
    "rod": {"body": "bar", "points": [[0.0, 0.0], [1.0, 0.0]], "stiffness": 1e7, "misfit": 1e-4},
    "joint": {
        "joint": "A",
        "compliance": [1e-8, 1e-8],
        "tilt_compliance": 0.0,
        "misfit": [1e-4, 0.0],
        "tilt_misfit": 0.0,
    },
}

_TURNED_LOOK: dict[str, Any] = {"orientation": [0.8, 0.0, 0.0, 0.6], "color": "#4682b4"}

# Of space, but for what lies in the plane.
VISUALS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "box": (
        {"body": "bar", "size": [1.0, 0.1, 0.05], "at": [0.1, 0.0, 0.0], **_TURNED_LOOK},
        {"body": "bar", "size": [1.0, 0.1, 0.05], "at": [0.1, 0.0], "angle": 0.1},
    ),
    "cylinder": (
        {
            "body": "rod",
            "radius": 0.05,
            "length": 0.4,
            "at": [0.1, 0.0, 0.0],
            "axis": [1, 0, 0],
            "color": "#4682b4",
        },
    ),
    "capsule": (
        {
            "body": "rod",
            "radius": 0.05,
            "length": 0.4,
            "at": [0.1, 0.0, 0.0],
            "axis": [1, 0, 0],
            "color": "#d62728",
        },
    ),
    "sphere": ({"body": "rod", "radius": 0.1, "at": [0.3, 0.0, 0.0], "color": "#d4a72c"},),
    "tube": (
        {
            "body": "rod",
            "radius": 0.06,
            "inner_radius": 0.04,
            "length": 0.4,
            "at": [-0.1, 0.0, 0.0],
            "axis": [1, 0, 0],
            "color": "#8a8f98",
        },
    ),
    "polygon": (
        {
            "body": "bar",
            "outline": [[-0.5, 0.0], [0.5, 0.0], [0.0, 0.3]],
            "height": 0.02,
            "at": [0.0, 0.0, 0.1],
            **_TURNED_LOOK,
        },
        {
            "body": "bar",
            "outline": [[-0.5, 0.0], [0.5, 0.0], [0.0, 0.3]],
            "height": 0.02,
            "at": [0.0, 0.1],
            "angle": 0.1,
        },
    ),
    "mesh": (
        {
            "body": "ground",
            "file": "meshes/frame.stl",
            "at": [0.0, 0.0, -0.1],
            "scale": [0.001, 0.001, 0.001],
            **_TURNED_LOOK,
        },
        {"body": "ground", "file": "meshes/frame.stl", "at": [0.0, -0.1], "angle": 0.1},
    ),
}

USES: Mapping[int, tuple[dict[str, Any], ...]] = {
    2: (
        {
            "name": "left leg",
            "assembly": "leg",
            "position": [-0.5, 0.0],
            "angle": 0.1,
            "bodies": {"top": "bar"},
            "parameters": {"height": "length / 2"},
        },
        {
            "name": "right leg",
            "assembly": "leg",
            "direction": [0, 1],
            "bodies": {"top": "bar"},
            "parameters": {"height": 0.3, "weight": 1.5},
        },
    ),
    3: (
        {
            "name": "left leg",
            "assembly": "leg",
            "position": [-0.5, 0, 0],
            "orientation": [1, 0, 0, 0],
            "bodies": {"top": "bar"},
            "parameters": {"height": "length / 2"},
        },
        {
            "name": "right leg",
            "assembly": "leg",
            "position": {"body": "rod", "point": [0, 0, 0.1]},
            "direction": [0, 1, 1],
            "bodies": {"top": "bar"},
            "parameters": {"height": 0.3, "weight": 1.5},
        },
        {
            "name": "third leg",
            "assembly": "leg",
            "rotation": [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
            "bodies": {"top": "bar"},
            "parameters": {"height": 0.4},
        },
    ),
}

ASSEMBLIES: Mapping[int, dict[str, Any]] = {
    2: {
        "name": "leg",
        "outer": ["top"],
        "required": ["height"],
        "parameters": {"weight": 1.0},
        "body": [{"name": "shank", "mass": "weight", "inertia": 0.02, "position": ["height", 0]}],
        "joint": [
            {"name": "knee", "type": "revolute", "bodies": ["top", "shank"], "at": ["height", 0]}
        ],
    },
    3: {
        "name": "leg",
        "outer": ["top"],
        "required": ["height"],
        "parameters": {"weight": 1.0},
        "body": [
            {
                "name": "shank",
                "mass": "weight",
                "inertia": [0.02, 0.02, 0.01],
                "position": [0, 0, "height / 2"],
            }
        ],
        "joint": [
            {
                "name": "knee",
                "type": "spherical",
                "bodies": ["top", "shank"],
                "at": [0, 0, "height"],
            }
        ],
    },
}

CYLINDERS: Mapping[int, dict[str, Any]] = {
    2: {
        "name": "lift",
        "bodies": ["ground", "bar"],
        "points": [[0.5, -1.0], {"body": "bar", "point": [0, 0]}],
        "barrel": {
            "type": "tube",
            "length": 0.6,
            "radius": 0.05,
            "inner_radius": 0.04,
            "density": 7850.0,
        },
        "rod": {"type": "cylinder", "length": 0.6, "radius": 0.02, "mass": 5.0},
        "ends": ["revolute", "revolute"],
        "force": 2000.0,
        "stiffness": 1e5,
        "damping": 100.0,
        "length": 0.9,
    },
    3: {
        "name": "lift",
        "bodies": ["ground", "bar"],
        "points": [[0.5, 0, -1.0], {"body": "bar", "point": [0, 0, 0]}],
        "barrel": {"type": "cylinder", "length": 0.6, "radius": 0.05, "mass": 20.0},
        "rod": {"type": "cylinder", "length": 0.6, "radius": 0.02, "mass": 5.0},
        "ends": ["revolute", "spherical"],
        "axis": [0, 1, 0],
        "motion": {"type": "sine", "amplitude": 0.05, "frequency": 0.5},
    },
}
