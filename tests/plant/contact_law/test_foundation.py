"""The elastic foundation of a volume against the sum over its columns, computed here by brute force."""

import numpy as np
import pytest
from numpy.typing import NDArray

from plant.contact_law.foundation import foundation_force
from plant.contact_law.model import FoundationForce, new_foundation_force

K, LOSS, MU, SLOW = 3e8, 0.4, 0.3, 1e-6
Vector = NDArray[np.float64]
UP = np.array([0.0, 0, 1])


class Cap:
    """A ball pressed into a plane: volume, inertia about the centroid, patch; columns from the axis, their volumes."""

    def __init__(self, radius: float = 0.1, depth: float = 0.002, count: int = 400) -> None:
        edge = np.sqrt(2 * radius * depth - depth**2)
        grid = (np.arange(count) + 0.5) / count * 2 * edge - edge
        x, y = (a.ravel() for a in np.meshgrid(grid, grid))
        length = np.sqrt(np.maximum(radius**2 - x * x - y * y, 0)) - (radius - depth)
        keep = length > 0
        self.x, self.y, length = x[keep], y[keep], length[keep]
        cell = (grid[1] - grid[0]) ** 2
        self.columns = length * cell
        self.volume = float(self.columns.sum())
        middle = float((length * self.columns).sum()) / 2 / self.volume
        high = float((length**2 * self.columns).sum()) / 3 - self.volume * middle**2
        xx = float((self.x**2 * self.columns).sum())
        self.inertia = np.diag([xx + high, xx + high, 2 * xx])
        self.area = np.pi * edge**2
        self.patch = np.pi * edge**4 / 4 * np.diag([1.0, 1.0, 2.0])


def act(
    cap: Cap,
    velocity: Vector,
    spin: Vector,
    turn: Vector | None = None,
    height: float = 0.0,
    lever: Vector | None = None,
) -> FoundationForce:
    """The answer for a cap whose axis is turned."""
    out, turn = new_foundation_force(), np.eye(3) if turn is None else turn
    out.way[1] = turn[:, 0]
    tensors = (np.ascontiguousarray(turn @ j @ turn.T) for j in (cap.inertia, cap.patch))
    lever = np.zeros(3) if lever is None else lever
    n = np.ascontiguousarray(turn[:, 2])
    foundation_force(K, LOSS, MU, SLOW, cap.volume, cap.area, n, *tensors, lever, height, velocity, spin, out)
    return out


def sums(out: FoundationForce) -> tuple[Vector, Vector]:
    """Force and torque."""
    return out.force[:3] @ out.way[:3], out.force[3:] @ out.way[3:]


def test_normal_force_of_a_ball_is_stiffness_times_the_volume_of_the_cap() -> None:
    cap = Cap()
    assert cap.volume == pytest.approx(np.pi * 0.002**2 * (0.3 - 0.002) / 3, rel=1e-4)
    force, torque = sums(act(cap, np.array([0, 0, -0.5]), np.zeros(3)))
    assert force == pytest.approx([0, 0, K * cap.volume * (1 + LOSS * 0.5)])
    assert torque == pytest.approx(np.zeros(3))
    assert sums(act(cap, np.array([0, 0, 10.0]), np.zeros(3)))[0] == pytest.approx(np.zeros(3))


def test_rolling_is_resisted_as_by_the_sum_over_the_columns() -> None:
    """Columns in front of a rolling ball approach and push more, those behind less."""
    cap, spin = Cap(), np.array([0.7, -0.4, 0])
    rate = -(spin[0] * cap.y - spin[1] * cap.x)
    push = K * cap.columns * (1 + LOSS * rate)
    truth = np.array([(cap.y * push).sum(), (-cap.x * push).sum(), 0])
    seen = sums(act(cap, np.zeros(3), spin))[1]
    assert seen == pytest.approx(truth, rel=1e-9)
    assert seen @ spin < 0


def test_spinning_is_resisted_over_the_radius_of_gyration() -> None:
    cap = Cap()
    force, torque = sums(act(cap, np.zeros(3), np.array([0, 0, 5.0])))
    assert force[:2] == pytest.approx(np.zeros(2))
    assert torque == pytest.approx([0, 0, -MU * K * cap.volume * np.sqrt(cap.inertia[2, 2] / cap.volume)], rel=1e-4)


def test_sliding_alone_is_coulomb_and_a_spin_eases_it() -> None:
    cap, slide = Cap(), np.array([0.3, 0.4, 0])
    friction = sums(act(cap, slide, np.zeros(3)))[0] - K * cap.volume * UP
    assert friction == pytest.approx(-MU * K * cap.volume * slide / 0.5)
    eased = sums(act(cap, slide, np.array([0, 0, 100.0])))[0] - K * cap.volume * UP
    assert np.linalg.norm(eased) < 0.8 * np.linalg.norm(friction)


def test_nothing_of_it_adds_energy_whichever_way_the_overlap_leans() -> None:
    rng = np.random.default_rng(5)
    cap = Cap(count=100)
    skew = np.diag(rng.uniform(0.5, 2, 3)) @ np.array([[1, 0.3, 0.4], [0, 1, -0.5], [0, 0, 1]])
    moments = skew @ np.diag(0.5 * np.trace(cap.inertia) - np.diag(cap.inertia)) @ skew.T
    cap.inertia = np.trace(moments) * np.eye(3) - moments
    for _ in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        velocity, spin = rng.normal(size=3), rng.normal(size=3)
        velocity -= turn[:, 2] * (turn[:, 2] @ velocity)
        force, torque = sums(act(cap, velocity, spin, turn))
        assert force @ velocity + torque @ spin < 0


def test_a_force_beside_the_middle_of_the_patch_is_given_with_its_torque() -> None:
    lever = np.array([0.003, -0.002, 0])
    out = act(Cap(), np.zeros(3), np.zeros(3), lever=lever)
    force, torque = sums(out)
    assert torque == pytest.approx(np.cross(lever, force))


def test_slopes_are_those_of_the_sum_over_the_columns() -> None:
    """Pressed by x, the cap grows by its area; turned by q about its middle, columns grow by their distance times q."""
    cap = Cap()
    out = act(cap, np.zeros(3), np.zeros(3))
    lean = (cap.x**2).sum() * cap.area / cap.x.size  # second moment of the area
    assert out.stiffness[0] == pytest.approx(K * cap.area)
    assert out.stiffness[4:] == pytest.approx(K * lean, rel=1e-3)
    assert out.damping[0] == pytest.approx(K * cap.volume * LOSS)
    assert out.damping[4:] == pytest.approx(K * LOSS * (cap.x**2 * cap.columns).sum(), rel=1e-6)


def test_nothing_holds_a_ball_against_rolling() -> None:
    """The centre of its pressure stays under its own centre: the height of that takes away what the patch gives."""
    cap = Cap()
    held, free = (act(cap, np.zeros(3), np.zeros(3), height=h).stiffness[4:] for h in (0.0, 0.1))
    assert free == pytest.approx(np.zeros(2), abs=0.02 * held.max())
