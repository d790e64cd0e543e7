"""The peer: the slider-crank of example 13 by hand in NumPy, and the largest forces of a turn.

Positions in closed form, velocities and accelerations by the chain rule, and the reactions by the
equations of Newton and Euler from the slider to the crank: complex numbers for vectors of the
plane, vectorised over the times of a turn, as a careful NumPy user would.
"""

import numpy as np


# Speed of the motor (rad/s) and gravity (m/s^2).
RATE, GRAVITY = 20 * np.pi, 9.81

# Of the smooth maximum of the force in the main bearing; the force on the pin is limited as it is.
EXPONENT = 30.0

# Masses (kg) and inertias (kg m^2) of crank and rod, mass of the piston.
CRANK_MASS, ROD_MASS, PISTON_MASS = 0.8, 0.5, 0.4
CRANK_INERTIA, ROD_INERTIA = 5e-4, 2e-3

# What is designed, its name in the library and its bounds: where the crank's mass lies, where the
# rod's, the crank pin and the piston's (m), all along x, as drawn.
PARAMETERS = {
    "bodies.crank.position.x": (-0.12, 0.03),
    "bodies.rod.position.x": (0.1, 0.2),
    "joints.B.at.x": (0.04, 0.07),
    "joints.C.at.x": (0.2, 0.3),
}
START = np.array([0.01, 0.15, 0.05, 0.25])

# The least stroke (m).
STROKE = 0.1


def turn(count: int) -> np.ndarray:
    """Times (s) of one turn, with both ends."""
    return np.linspace(0.0, 2 * np.pi / RATE, count)


def forces(design: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|force| (n,) in the bearing of the crank and on the crank pin."""
    crank, rod, radius, slider = design
    length, weight = slider - radius, 1j * GRAVITY
    turned = np.exp(1j * RATE * times)
    pin = radius * turned
    sine = -pin.imag / length
    cosine = np.sqrt(1 - sine**2)
    along = cosine + 1j * sine
    swing = -RATE * pin.real / (length * cosine)
    slope = (RATE**2 * pin.imag / length + sine * swing**2) / cosine
    change = 1j * slope - swing**2
    centre = (rod - radius) * along
    rod_acceleration = -(RATE**2) * pin + change * centre
    force = PISTON_MASS * (-(RATE**2) * pin + change * length * along).real
    # On the piston: along its line by its own motion, across by the rod's turning about the pin.
    across_mass = ROD_MASS * (rod_acceleration + weight)
    moment = ROD_INERTIA * slope + (np.conj(centre) * across_mass).imag
    on_piston = force + 1j * (sine * force - moment / length) / cosine
    on_rod = across_mass + on_piston
    on_crank = CRANK_MASS * (-(RATE**2) * crank * turned + weight) + on_rod
    return np.abs(on_crank), np.abs(on_rod)


def stroke(design: np.ndarray, times: np.ndarray) -> float:
    """Of the piston (m)."""
    pin = design[2] * np.exp(1j * RATE * times)
    places = pin.real + np.sqrt((design[3] - design[2]) ** 2 - pin.imag**2)
    return float(np.max(places) - np.min(places))


def largest(design: np.ndarray, times: np.ndarray) -> float:
    """The smooth maximum of the bearing's force over the times."""
    force, _ = forces(design, times)
    scale = np.max(force)
    return float(scale * np.mean((force / scale) ** EXPONENT) ** (1 / EXPONENT))
