"""The sizes of numbers that a model admits."""

# Every number of a model is at most LARGEST in size, and what must be greater than zero (masses,
# moments of inertia, lengths) at least SMALLEST. Doubles reach from 2e-308 to 2e308, and no product
# of numbers may leave that, or infinities and zeros stand where forces should. The longest that are
# formed are squares (of residuals, in norms and inner products) of what a force causes once rows
# have been made comparable: a centrifugal force mass * speed * speed / length is four numbers, over
# the square root of a mass half of one more, squared nine; of a rank decision fewer, as rows and
# columns are scaled first. Ten numbers of 1e30 are 1e300. In SI units this reaches from the moment
# of inertia of a nanogram of a micrometre (1e-25 kg m^2) to the mass of a small star.
LARGEST = 1e30
SMALLEST = 1e-30

# How inexact the positions and directions of a model may be at most.
LARGEST_PRECISION = 0.05
