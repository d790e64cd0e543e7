"""Planetary gear sets, as parts of a planar model."""

from typing import NamedTuple

import numpy as np

from .. import _checks, _settings, planar
from .._bodies import AbstractBody
from .._constraints import AbstractJoint
from .._custom_types import Numbers, Setting


# Of the tip circle beyond the pitch circle, in modules (ISO 53).
_ADDENDUM = 1.0
# Of a ring's outer circle over its pitch circle.
_RIM = 1.2


class PlanetarySet(NamedTuple):
    """Bodies and joints of a set, to be added to those of a model."""

    bodies: tuple[AbstractBody, ...]
    joints: tuple[AbstractJoint, ...]


def planetary_set(
    name: str,
    *,
    sun: Setting[int],
    planet: Setting[int],
    ring: Setting[int],
    arm: Setting[float],
    planets: Setting[int] = 3,
    ring_turns: Setting[bool] = False,
    centre: Numbers = (0.0, 0.0),
    width: Setting[float] = 0.02,
    density: Setting[float] = 7850.0,
) -> PlanetarySet:
    """A planetary gear set whose teeth press on the pins: sun, carrier and ring turn about `centre`
    on bearings in the ground, planets on pins of the carrier. With the angular velocities w and the
    numbers of teeth z (Willis)

        z_sun w_sun + z_ring w_ring = (z_sun + z_ring) w_carrier.

    Its parts are called "`name` sun", "`name` carrier", "`name` ring" (a body where it turns),
    "`name` planet 1", ...; bearings "... bearing", pins "... pin", meshes "`name` sun mesh 1" and
    "`name` ring mesh 1". Which planet carries how much of the load is not unique (`analyze`).

    **Arguments:** `sun`, `planet`, `ring`: numbers of teeth. `arm`: from the centre to the pins
    (m); `planets`: how many. `ring_turns`: is the ring a body, or part of the ground (default)?
    `centre`: m. `width` (m), `density` (kg/m3): gears and carrier are discs with their pitch
    circles and the arm as radius, the ring reaches from its pitch circle to 1.2 times it.

    **Raises:** `ValueError` for teeth that do not fit (ring = sun + 2 planet), planets that cannot
    be assembled at equal angles ((sun + ring) / planets is no whole number) or that touch each
    other.
    """
    name = _checks.name(name, "a planetary set")
    teeth = {"sun": sun, "planet": planet, "ring": ring}
    for word, count in teeth.items():
        _settings.whole_number(count, word, least=3)
    _settings.whole_number(planets, "planets", least=1)
    ring_turns = _settings.flag(ring_turns, "ring_turns")
    sizes = {"arm": arm, "width": width, "density": density}
    arm, width, density = (_settings.known_number(x, word, above=0) for word, x in sizes.items())
    place = np.asarray(_checks.real(centre, (2,), "centre"))
    _refuse(sun, planet, ring, planets)
    radii = {word: arm * count / (sun + planet) for word, count in teeth.items()}

    def disc(word: str, radius: float, at: np.ndarray, hole: float = 0.0) -> planar.Body:
        mass = density * width * np.pi * (radius**2 - hole**2)
        inertia = mass * (radius**2 + hole**2) / 2
        return planar.Body(f"{name} {word}", mass=mass, inertia=inertia, position=at)

    turns = 2 * np.pi * np.arange(planets) / planets
    pins = place + arm * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    bodies = [disc("sun", radii["sun"], place), disc("carrier", arm, place)]
    if ring_turns:
        bodies.append(disc("ring", _RIM * radii["ring"], place, radii["ring"]))
    joints: list[AbstractJoint] = [
        planar.Revolute(f"{body.name} bearing", ("ground", body.name), place) for body in bodies
    ]
    outer = f"{name} ring" if ring_turns else "ground"
    carrier = f"{name} carrier"
    for k, pin in enumerate(pins, start=1):
        own = f"{name} planet {k}"
        bodies.append(disc(f"planet {k}", radii["planet"], pin))
        joints += [
            planar.Revolute(f"{own} pin", (carrier, own), pin),
            planar.GearPair(
                f"{name} sun mesh {k}",
                (f"{name} sun", own, carrier),
                points=(place, pin),
                teeth=(sun, planet),
            ),
            planar.GearPair(
                f"{name} ring mesh {k}",
                (own, outer, carrier),
                points=(pin, place),
                teeth=(planet, -ring),
                flank=-1,
            ),
        ]
    return PlanetarySet(tuple(bodies), tuple(joints))


def _refuse(sun: int, planet: int, ring: int, planets: int) -> None:
    """**Raises:** `ValueError` for a set that cannot be assembled."""
    if ring != sun + 2 * planet:
        raise ValueError(
            f"ring must be sun + 2 planet = {sun + 2 * planet} teeth, so that sun and ring have "
            f"one centre, got {ring}."
        )
    if (sun + ring) % planets:
        fitting = [n for n in range(1, 13) if (sun + ring) % n == 0]
        raise ValueError(
            f"planets must divide sun + ring = {sun + ring} for equal angles between them, got "
            f"{planets}; {_checks.listed(fitting)} do."
        )
    # In modules: half the distance of neighbouring pins, and the tip radius.
    apart = (sun + planet) / 2 * np.sin(np.pi / planets)
    if planets > 1 and apart <= planet / 2 + _ADDENDUM:
        raise ValueError(
            f"planets must be fewer, as the tip circles of {planets} neighbours overlap; have "
            "fewer planets, or fewer teeth on each."
        )
