"""The peer: a driven slider-crank written by hand in NumPy, and the largest force in its bearing.

Positions in closed form, velocities and accelerations by the chain rule, and the reactions by the
equations of Newton and Euler from the slider to the crank: complex numbers for vectors of the
plane, vectorised over the times of a turn, as a careful NumPy user would.
"""

import numpy as np


# Speed of the motor (rad/s), gravity (m/s^2), the load on the slider (N).
RATE, GRAVITY, LOAD = 40.0, 9.81, -60.0

# Of the smooth maximum.
EXPONENT = 16.0

# Crank pin and slider (m) as drawn, masses (kg) and inertias (kg m^2).
PIN, SLIDER = 0.1 + 0.1j, 0.5
CRANK_MASS, ROD_MASS, SLIDER_MASS = 1.0, 0.8, 0.6
CRANK_INERTIA, ROD_INERTIA = 4e-3, 9e-3

# What is designed, its name in the library and its bounds: where the crank's mass lies, how large
# it is, where the rod's lies, how long the rod is.
PARAMETERS = {
    "bodies.crank.position.x": (-0.08, 0.08),
    "bodies.crank.position.y": (-0.08, 0.08),
    "bodies.crank.mass": (0.5, 2.0),
    "bodies.rod.position.x": (0.15, 0.4),
    "joints.C.at.x": (0.4, 0.7),
}
START = np.array([0.05, 0.05, CRANK_MASS, 0.3, SLIDER])


def turn(count: int) -> np.ndarray:
    """Times (s) of one turn."""
    return np.linspace(0.0, 2 * np.pi / RATE, count, endpoint=False)


def bearing_force(design: np.ndarray, times: np.ndarray) -> np.ndarray:
    """|force| (n,) in the bearing of the crank."""
    crank, mass = complex(design[0], design[1]), design[2]
    rod, long = complex(design[3], PIN.imag / 2) - PIN, design[4] - PIN
    length, weight = abs(long), 1j * GRAVITY
    turned = np.exp(1j * RATE * times)
    pin = PIN * turned
    sine = -pin.imag / length
    cosine = np.sqrt(1 - sine**2)
    along = cosine + 1j * sine
    swing = -RATE * pin.real / (length * cosine)
    slope = (RATE**2 * pin.imag / length + sine * swing**2) / cosine
    change = 1j * slope - swing**2
    centre = rod * along * length / long
    rod_acceleration = -(RATE**2) * pin + change * centre
    slider_acceleration = (-(RATE**2) * pin + change * length * along).real
    # On the slider: along its line by its own motion, across by the rod's turning about the pin.
    across_mass = ROD_MASS * (rod_acceleration + weight)
    moment = ROD_INERTIA * slope + (np.conj(centre) * across_mass).imag
    force = SLIDER_MASS * slider_acceleration - LOAD
    on_slider = force + 1j * (sine * force - moment / length) / cosine
    on_rod = across_mass + on_slider
    return np.abs(mass * (-(RATE**2) * crank * turned + weight) + on_rod)


def largest(design: np.ndarray, times: np.ndarray) -> float:
    """The smooth maximum of the force over the times."""
    force = bearing_force(design, times)
    scale = np.max(force)
    return float(scale * np.mean((force / scale) ** EXPONENT) ** (1 / EXPONENT))
