import numpy as np

from .. import spatial
from .._system import Model


_SPEED = 4.6  # m/s
_REMARK = "Chosen: where on the steering axis the head lies, which has no effect on the motion."


def whipple_bicycle() -> Model:
    """Whipple's bicycle with the benchmark's numbers: hands off, upright at 4.6 m/s.

    Four bodies, rigid tyres as thin as a knife that do not slip (Meijaard, Papadopoulos, Ruina
    & Schwab 2007, table 1 and section 4: stable from 4.292382536341112 to 6.024262015388375
    m/s). x forward, y to the left, z upwards; the source has y to the right and z downwards.
    """
    wheelbase, trail, tilt = 1.02, 0.08, np.pi / 10
    rear, front = 0.3, 0.35
    axle = np.array([0.0, 1.0, 0.0])
    up = np.array([-np.sin(tilt), 0.0, np.cos(tilt)])
    # The steering axis meets the ground ahead of the front wheel's point of contact.
    head = np.array([wheelbase + trail, 0.0, 0.0]) + 0.9 * up

    def body(name: str, mass: float, moments, product: float, position, spin: float = 0.0):
        xx, yy, zz = moments
        inertia = [[xx, 0.0, -product], [0.0, yy, 0.0], [-product, 0.0, zz]]
        return spatial.Body(
            name,
            mass=mass,
            inertia=inertia,
            position=position,
            velocity=(_SPEED, 0.0, 0.0),
            angular_velocity=spin * axle,
        )

    centres = {"rear wheel": (0.0, 0.0, rear), "front wheel": (wheelbase, 0.0, front)}
    return Model(
        "whipple-bicycle",
        3,
        bodies=[
            body(
                "rear wheel", 2.0, (0.0603, 0.12, 0.0603), 0.0, centres["rear wheel"], _SPEED / rear
            ),
            body("frame", 85.0, (9.2, 11.0, 2.8), 2.4, (0.3, 0.0, 0.9)),
            body("fork", 4.0, (0.05892, 0.06, 0.00708), -0.00756, (0.9, 0.0, 0.7)),
            body(
                "front wheel",
                3.0,
                (0.1405, 0.28, 0.1405),
                0.0,
                centres["front wheel"],
                _SPEED / front,
            ),
        ],
        joints=[
            spatial.Revolute("rear axle", ("frame", "rear wheel"), centres["rear wheel"], axle),
            spatial.Revolute("head", ("frame", "fork"), head, up),
            spatial.Revolute("front axle", ("fork", "front wheel"), centres["front wheel"], axle),
            spatial.RollingDisk("rear tyre", ("rear wheel",), axis=axle, radius=rear),
            spatial.RollingDisk("front tyre", ("front wheel",), axis=axle, radius=front),
        ],
        gravity=(0.0, 0.0, -9.81),
        remark=_REMARK,
    )
