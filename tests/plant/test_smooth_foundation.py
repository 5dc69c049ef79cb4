"""The elastic foundation of a volume against the sum over its columns, computed here by brute force."""

import numpy as np
import pytest
from numpy.typing import NDArray

from plant.smooth.foundation import foundation

K, LOSS, MU, SLOW = 3e8, 0.4, 0.3, 1e-6
Vector = NDArray[np.float64]


def cap(radius: float, depth: float, count: int = 400) -> tuple[float, Vector, Vector, Vector]:
    """A ball pressed into a plane: volume, inertia about the centroid; columns (x, y) from the axis, their volumes."""
    edge = np.sqrt(2 * radius * depth - depth**2)
    grid = (np.arange(count) + 0.5) / count * 2 * edge - edge
    x, y = (a.ravel() for a in np.meshgrid(grid, grid))
    length = np.sqrt(np.maximum(radius**2 - x * x - y * y, 0)) - (radius - depth)
    keep = length > 0
    x, y, length = x[keep], y[keep], length[keep]
    cell = (grid[1] - grid[0]) ** 2
    volume = float((length * cell).sum())
    middle = float((length**2 / 2 * cell).sum()) / volume
    high = float((length**3 / 3 * cell).sum()) - volume * middle**2
    xx = float((x * x * length * cell).sum())
    inertia = np.diag([xx + high, xx + high, 2 * xx])
    return volume, inertia, np.stack([x, y]), length * cell


def act(volume: float, inertia: Vector, velocity: Vector, spin: Vector, n: Vector) -> tuple[Vector, Vector, Vector]:
    force, torque, friction = np.zeros(3), np.zeros(3), np.zeros(3)
    foundation(K, LOSS, MU, SLOW, volume, n, inertia, velocity, spin, np.zeros(3), force, torque, friction)
    return force, torque, friction


def test_normal_force_of_a_ball_is_stiffness_times_the_volume_of_the_cap() -> None:
    radius, depth = 0.1, 0.002
    volume, inertia, _, _ = cap(radius, depth)
    assert volume == pytest.approx(np.pi * depth**2 * (3 * radius - depth) / 3, rel=1e-4)
    up = np.array([0.0, 0, 1])
    force, torque, _ = act(volume, inertia, np.array([0, 0, -0.5]), np.zeros(3), up)
    assert force == pytest.approx([0, 0, K * volume * (1 + LOSS * 0.5)])
    assert torque == pytest.approx(np.zeros(3))
    assert act(volume, inertia, np.array([0, 0, 10.0]), np.zeros(3), up)[0] == pytest.approx(np.zeros(3))


def test_rolling_is_resisted_as_by_the_sum_over_the_columns() -> None:
    """Columns in front of a rolling ball approach and push more, those behind less. The height of the overlap, which
    the columns do not feel, adds a few thousandths."""
    volume, inertia, (x, y), columns = cap(0.1, 0.002)
    spin = np.array([0.7, -0.4, 0])
    rate = -(spin[0] * y - spin[1] * x)
    push = K * columns * (1 + LOSS * rate)
    torque = np.array([(y * push).sum(), (-x * push).sum(), 0])
    seen = act(volume, inertia, np.zeros(3), spin, np.array([0.0, 0, 1]))[1]
    assert seen == pytest.approx(torque, rel=4e-3)
    assert seen @ spin < 0


def test_spinning_is_resisted_over_the_radius_of_gyration() -> None:
    volume, inertia, _, _ = cap(0.1, 0.002)
    _, torque, friction = act(volume, inertia, np.zeros(3), np.array([0, 0, 5.0]), np.array([0.0, 0, 1]))
    assert friction == pytest.approx(np.zeros(3))
    assert torque == pytest.approx([0, 0, -MU * K * volume * np.sqrt(inertia[2, 2] / volume)], rel=1e-4)


def test_sliding_alone_is_coulomb_and_a_spin_eases_it() -> None:
    volume, inertia, _, _ = cap(0.1, 0.002)
    up, slide = np.array([0.0, 0, 1]), np.array([0.3, 0.4, 0])
    friction = act(volume, inertia, slide, np.zeros(3), up)[2]
    assert friction == pytest.approx(-MU * K * volume * slide / 0.5)
    eased = act(volume, inertia, slide, np.array([0, 0, 100.0]), up)[2]
    assert np.linalg.norm(eased) < 0.8 * np.linalg.norm(friction)


def test_nothing_of_it_adds_energy() -> None:
    rng = np.random.default_rng(5)
    volume, inertia, _, _ = cap(0.1, 0.002, 100)
    for _ in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        n, velocity, spin = turn[:, 2], rng.normal(size=3), rng.normal(size=3)
        velocity -= n * (n @ velocity)
        force, torque, _ = act(volume, np.ascontiguousarray(turn @ inertia @ turn.T), velocity, spin, n)
        assert force @ velocity + torque @ spin < 0
