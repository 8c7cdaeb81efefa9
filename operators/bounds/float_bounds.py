"""Half-lines of keys under float64 arithmetic, exact to the last bit.

Rounding is monotone: as the key grows, every intermediate result grows (or falls) weakly, so the keys that pass
``program(key) ORDER threshold`` form a half-line. Solving the formula backwards guesses its edge, usually to within one
double. The written test itself, evaluated at the guess and around it, decides. The search runs on the *image* of a key:
int64 numbers in key order. For a double this is its bit pattern, with negative ones mirrored so that the order agrees:

    value   -inf    ...  -5e-324   0.0   5e-324   ...   inf
    image   -0x7ff0..       -1      0       1          0x7ff0..

Where rounding swallows the key (``abs(10.0 - key) <= 10.0`` holds down to key = -8.9e-16, not 0) the edge is many
doubles away from the guess. Doubling strides and a bisection find it in at most about 120 evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from indexes import frozen, kernel
from operators.bounds.float_values import (
    ADD,
    ADD_PROBE,
    DIVIDE,
    FLOATS,
    INTEGERS,
    MULTIPLY,
    FloatValue,
    Program,
)
from operators.bounds.integer_bounds import INT64_MAX, INT64_MIN, Edge, IntegerValue
from operators.query.comparison_operators import Order, is_upper, rounds_up, strict_shift

_INFINITY_IMAGE = 0x7FF0000000000000
_TOP_BIT = np.uint64(2**63)

# Tests by number, for the kernel. The last two also pass a NaN: they bound the keys that a `!=`
# excludes, and a comparison that comes to NaN (inf - inf) never matches.
_TESTS: dict[tuple[Order, bool], int] = {
    ("<=", False): 0, ("<", False): 1, (">=", False): 2, (">", False): 3,
    ("<=", True): 4, (">=", True): 5,
}  # fmt: skip


@dataclass(frozen=True)
class FloatHalfLine:
    """Keys with ``program(key) ORDER threshold``, both in float64.

    addend:    the expression of the probe's key that `ADD_PROBE` adds.
    threshold: a number, or a float or exact integer expression of the probe's key.
    """

    domain: int
    program: Program
    order: Order
    threshold: float | FloatValue | IntegerValue
    addend: FloatValue | None = None
    nan_passes: bool = False

    def edge(self, probe: np.ndarray) -> Edge:
        threshold = self.thresholds(probe)
        if not self.program:
            return _bare_edge(threshold, self.order)
        rising = sum(c < 0.0 for op, c in self.program if op in (MULTIPLY, DIVIDE)) % 2 == 0
        upper = rising == is_upper(self.order)
        addend = np.empty(0) if self.addend is None else self.addend.of(probe)
        images = np.empty(len(probe), dtype=np.int64)
        empty = np.empty(len(probe), dtype=np.bool_)
        lowest, highest = INT64_MIN, INT64_MAX
        if self.domain == FLOATS:
            lowest, highest = -_INFINITY_IMAGE, _INFINITY_IMAGE
        _find_edges(
            np.array([operation for operation, _ in self.program], dtype=np.int64),
            np.array([constant for _, constant in self.program], dtype=np.float64),
            frozen(addend),  # read-only as Arrow's buffers are: one kind, one compilation
            frozen(threshold),
            _TESTS[self.order, self.nan_passes],
            self.domain,
            upper,
            lowest,
            highest,
            images,
            empty,
        )
        bound = _from_images(images) if self.domain == FLOATS else images
        return Edge(upper, bound, empty if empty.any() else None)

    def thresholds(self, probe: np.ndarray) -> np.ndarray:
        if isinstance(self.threshold, FloatValue):
            values = self.threshold.of(probe)
            return values + 0.0 if self.threshold.program else values  # no negative zero
        if isinstance(self.threshold, IntegerValue):
            # A float is at most n when at most the last double up to n, and so on.
            return rounded(self.threshold.of(probe), up=rounds_up(self.order))
        return np.array([self.threshold])


def rounded(exact: np.ndarray | list[int], up: bool) -> np.ndarray:
    """The nearest doubles not below (``up``) or not above the given integers."""
    if not isinstance(exact, np.ndarray):
        return np.array([_rounded_one(one, up) for one in exact], dtype=np.float64)
    nearest = exact.astype(np.float64)
    top = nearest >= 2.0**63  # beyond int64: above every int64
    back = np.where(top, 0.0, nearest).astype(np.int64)
    if up:
        wrong = ~top & (back < exact)
    else:
        wrong = top | (back > exact)
    if wrong.any():
        nearest[wrong] = np.nextafter(nearest[wrong], np.inf if up else -np.inf)
    return nearest


def _rounded_one(exact: int, up: bool) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if nearest < exact and up:
        return math.nextafter(nearest, math.inf)
    if nearest > exact and not up:
        return math.nextafter(nearest, -math.inf)
    return nearest


def _bare_edge(threshold: np.ndarray, order: Order) -> Edge:
    """Bounds of a bare float key: the threshold, or its neighbour when strict."""
    upper = is_upper(order)
    if not strict_shift(order):
        return Edge(upper, threshold)
    # The neighbour in image order, by integer arithmetic: several times faster than nextafter.
    bits = threshold.view(np.int64)
    neighbour = bits >> 63
    neighbour |= 1
    (np.subtract if upper else np.add)(bits, neighbour, out=neighbour)
    zero = bits == 0
    if np.count_nonzero(zero):
        neighbour[zero] = INT64_MIN + 1 if upper else 1
    none = threshold == (-np.inf if upper else np.inf)
    return Edge(upper, neighbour.view(np.float64), none if np.count_nonzero(none) else None)


def _from_images(images: np.ndarray) -> np.ndarray:
    return np.where(images >= 0, images, INT64_MIN - images).view(np.float64)


@kernel
def _passes(image, domain, codes, constants, addend, threshold, test):  # type: ignore[no-untyped-def]
    if domain == FLOATS:
        bits = image if image >= 0 else np.int64(INT64_MIN) - image
        value = np.int64(bits).view(np.float64)
    elif domain == INTEGERS:
        value = np.float64(image)
    else:
        value = np.float64(np.uint64(image) ^ _TOP_BIT)
    for i in range(len(codes)):
        code = codes[i]
        if code == ADD_PROBE:
            value += addend
        elif code == ADD:
            value += constants[i]
        elif code == MULTIPLY:
            value *= constants[i]
        else:
            value /= constants[i]
    if test == 0:
        return value <= threshold
    if test == 1:
        return value < threshold
    if test == 2:
        return value >= threshold
    if test == 3:
        return value > threshold
    if test == 4:
        return not value > threshold
    return not value < threshold


@kernel
def _guess(domain, codes, constants, addend, threshold):  # type: ignore[no-untyped-def]
    """The image where the formula, solved backwards, puts the edge."""
    value = threshold
    for i in range(len(codes) - 1, -1, -1):
        code = codes[i]
        if code == ADD_PROBE:
            value -= addend
        elif code == ADD:
            value -= constants[i]
        elif code == MULTIPLY:
            value /= constants[i]
        else:
            value *= constants[i]
    if np.isnan(value):
        return np.int64(0)
    if domain == FLOATS:
        bits = np.float64(value).view(np.int64)
        return bits if bits >= 0 else np.int64(INT64_MIN) - bits
    if domain != INTEGERS:
        value -= 2.0**63
    if value >= 2.0**63:
        return np.int64(INT64_MAX)
    return np.int64(INT64_MIN) if value <= -(2.0**63) else np.int64(value)


@kernel
def _find_edges(  # type: ignore[no-untyped-def]
    codes, constants, addends, thresholds, test, domain, upper, lowest, highest, images, empty
):
    for row in range(len(images)):
        addend = addends[row] if len(addends) > 0 else 0.0
        threshold = thresholds[row] if len(thresholds) > 1 else thresholds[0]
        start = _guess(domain, codes, constants, addend, threshold)
        # `up` is where the test's answer changes, if at all; `near` answers as the start does,
        # and once the search has turned, `far` does not.
        passed = _passes(start, domain, codes, constants, addend, threshold, test)
        up = passed == upper
        near, far, stride, turned = start, start, np.int64(1), False
        while not turned and far != (highest if up else lowest):
            near = far
            if up:
                far = highest if near > highest - stride else near + stride
            else:
                far = lowest if near < lowest + stride else near - stride
            turned = passed != _passes(far, domain, codes, constants, addend, threshold, test)
            if stride < 2**61:
                stride *= 2
        if not turned:
            # The test never changes: all keys pass, or none.
            images[row] = highest if upper else lowest
            empty[row] = not passed
            continue
        while (far - near if up else near - far) > 1:
            middle = (near & far) + ((near ^ far) >> 1)
            if passed == _passes(middle, domain, codes, constants, addend, threshold, test):
                near = middle
            else:
                far = middle
        images[row] = near if passed else far
        empty[row] = False
