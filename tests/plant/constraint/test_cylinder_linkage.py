"""The cylinder on a hinge against the law of cosines, virtual work, and its own limits."""

import math

import numpy as np
import pytest

from hilnode.core.jit import kernel
from plant.constraint.cylinder_linkage import LEAST_SLOPE, CylinderLinkage, linkage_of, reach

RNG = np.random.default_rng(4)


@kernel
def _reach(a, b, phase, angle):
    return reach(a, b, phase, angle)


def turned(axis: np.ndarray, angle: float, v: np.ndarray) -> np.ndarray:
    """Rodrigues' rotation, written here."""
    return v * math.cos(angle) + np.cross(axis, v) * math.sin(angle) + axis * (axis @ v) * (1 - math.cos(angle))


def test_length_is_the_distance_of_the_two_pins() -> None:
    """Pins and axis anywhere in space: turn the second pin about the hinge and measure."""
    for _ in range(20):
        hinge, first, second = RNG.normal(size=(3, 3))
        axis = RNG.normal(size=3)
        axis /= np.linalg.norm(axis)
        linkage = linkage_of(hinge, 2.5 * axis, first, second)
        for angle in (-0.7, 0.0, 0.4, 1.3):
            moved = hinge + turned(axis, angle, second - hinge)
            between = moved - first
            flat = between - axis * (axis @ between)  # what lies along the axis is dropped
            assert linkage.length(angle) == pytest.approx(float(np.linalg.norm(flat)), rel=1e-12)


def test_slope_is_the_lever_arm_of_the_cylinder() -> None:
    """Virtual work: a push along the cylinder has the moment push x lever about the hinge."""
    hinge, first, second = np.array([0.3, 0, 0.7]), np.array([0.8, 0, 0.2]), np.array([2.2, 0, 1.5])
    axis = np.array([0.0, -1.0, 0.0])
    linkage = linkage_of(hinge, axis, first, second)
    for angle in (-0.3, 0.0, 0.5):
        arm = turned(axis, angle, second - hinge)
        along = hinge + arm - first
        along /= np.linalg.norm(along)
        lever = float(axis @ np.cross(arm, along))
        assert linkage.slope(angle) == pytest.approx(lever, rel=1e-12)
        h = 1e-6
        assert linkage.slope(angle) == pytest.approx(
            (linkage.length(angle + h) - linkage.length(angle - h)) / (2 * h), 1e-8
        )


def test_angle_undoes_length_on_the_side_where_zero_is() -> None:
    for phase in (-2.0, -0.6, 0.6, 2.0):
        linkage = CylinderLinkage(0.7, 1.9, phase)
        for angle in np.linspace(-0.5, 0.5, 11):
            assert linkage.angle(linkage.length(angle)) == pytest.approx(angle, abs=1e-9)


def test_kernel_and_python_agree() -> None:
    linkage = CylinderLinkage(0.7, 1.9, 0.8)
    for angle in (-0.4, 0.0, 1.1):
        length, slope = _reach(linkage.a, linkage.b, linkage.phase, angle)
        assert (length, slope) == pytest.approx((linkage.length(angle), linkage.slope(angle)), rel=1e-14)


def test_without_a_linkage_the_coordinate_is_the_length() -> None:
    assert _reach(0.0, 0.0, 0.0, 0.37) == (0.37, 1.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_dead_centre_leaves_a_slope_to_divide_by(side: float) -> None:
    """Pin, pin and hinge in one line: the lever is zero, and its sign is kept."""
    _, slope = _reach(1.0, 2.0, side * 1e-9, 0.0)
    assert slope == side * LEAST_SLOPE


def test_a_length_that_closes_no_triangle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"4 m long cannot close its triangle: between 1 and 3 m"):
        CylinderLinkage(1.0, 2.0, 0.5).angle(4.0)


def test_a_pin_on_the_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="lies on the hinge's axis"):
        linkage_of((0, 0, 0), (0, 1, 0), (0, 5, 0), (1, 0, 0))
