"""Free rotation against the closed forms of Euler's top. The step is of second order here, and keeps momentum to
rounding.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from worlds import advance, angular_momentum, attitude, compiled, orders, spin, watched

from plant.engine.compile import Engine
from plant.world.rotations import conjugate, rotated
from plant.world.world import World

MOMENTS = (1.0, 2.0, 2.5)


def top(spin_at_start: tuple[float, float, float], dt: float, inertia: object = MOMENTS, **more: object) -> Engine:
    world = World(gravity=(0, 0, 0))
    world.body("top", mass=3, inertia=inertia, spin=spin_at_start, **more)  # type: ignore[arg-type]
    return compiled(world, dt)


def kinetic(engine: Engine) -> float:
    return engine.energy()


def test_angular_momentum_is_kept_to_rounding() -> None:
    engine = top((3.0, 7.0, -2.0), 1e-3, quat=(0.5, -0.1, 0.7, 0.3))
    before = angular_momentum(engine, "top")
    advance(engine, 20.0)
    assert angular_momentum(engine, "top") == pytest.approx(before, rel=1e-11)


def test_energy_stays_bounded_and_its_error_falls_with_the_square_of_the_step() -> None:
    worst = []
    for dt in (4e-3, 2e-3, 1e-3):
        seen = watched(top((0.3, 6.0, 0.2), dt), 20.0, kinetic, every=round(0.02 / dt))
        worst.append(float(np.abs(seen / seen[0] - 1).max()))
    assert worst[-1] < 1e-4
    assert (orders(worst) > 1.8).all()


def test_energy_does_not_drift() -> None:
    """The error of the second half of a long run is no larger than that of the first."""
    seen = watched(top((0.3, 6.0, 0.2), 2e-3), 60.0, kinetic, every=10)
    error = np.abs(seen / seen[0] - 1)
    half = len(error) // 2
    assert error[half:].max() < 1.2 * error[:half].max()


def test_dzhanibekov_flips_at_the_period_of_the_jacobi_functions() -> None:
    """Spin about the middle axis, hardly disturbed: w_2 is a Jacobi sn; between two of its zeros lies 2 K(m) over its
    rate.
    """
    one, two, three = MOMENTS
    start = np.array([0.02, 6.0, 0.0])
    twice_energy = float(MOMENTS @ start**2)
    square = float((MOMENTS * start) @ (MOMENTS * start))
    assert square < twice_energy * two  # so axis 1 keeps its sign, and 1 and 3 change places in the formulas
    m = (three - two) * (square - twice_energy * one) / ((two - one) * (twice_energy * three - square))
    rate = np.sqrt((two - one) * (twice_energy * three - square) / (one * two * three))
    half_period = 2 * ellipk(m) / rate

    dt = 5e-4
    engine = top(tuple(start), dt)
    b = engine.index("top")

    def middle(e: Engine) -> float:
        return float(rotated(conjugate(attitude(e, "top")), e.content.data.state.vel[b, 3:])[1])

    seen = watched(engine, 5.2 * half_period, middle, every=2)
    k = np.flatnonzero(seen[:-1] * seen[1:] < 0)
    flips = (k + seen[k] / (seen[k] - seen[k + 1])) * 2 * dt
    assert len(flips) == 5
    assert np.diff(flips) == pytest.approx(half_period, rel=5e-4)
    assert flips[0] == pytest.approx(half_period / 2, rel=5e-4)


def test_symmetric_top_precesses_at_its_closed_form_rate() -> None:
    """Body axes: the spin's transverse part turns at (C - A) / A times the axial spin, and the axial part stays."""
    across, along = 2.0, 3.0
    engine = top((1.0, 0.0, 5.0), 1e-3, (across, across, along))
    seconds = 3.0
    advance(engine, seconds)
    local = rotated(conjugate(attitude(engine, "top")), spin(engine, "top"))
    turn = (along - across) / across * 5.0 * seconds
    assert local == pytest.approx([np.cos(turn), np.sin(turn), 5.0], abs=2e-4)


def test_attitude_converges_with_second_order_to_the_euler_equations() -> None:
    """A full tensor, no symmetry, against a tight integration of momentum and quaternion."""
    r = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    tensor = r @ np.diag([1.0, 1.7, 2.1]) @ r.T
    start = np.array([2.0, -3.0, 4.0])

    def rates(_: float, q: np.ndarray) -> np.ndarray:
        w = np.linalg.solve(tensor, rotated(conjugate(q), tensor @ start))
        return 0.5 * np.concatenate([[-q[1:] @ w], q[0] * w + np.cross(q[1:], w)])

    exact = solve_ivp(rates, (0, 2.0), [1.0, 0, 0, 0], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    errors = []
    for dt in (4e-3, 2e-3, 1e-3):
        q = attitude(advance(top(tuple(start), dt, tensor), 2.0), "top")
        errors.append(float(np.linalg.norm(q * np.sign(q @ exact) - exact)))
    assert errors[-1] < 1e-4
    assert (orders(errors) > 1.8).all()


def test_a_torque_changes_the_momentum_by_its_impulse() -> None:
    """In world axes, whatever the attitude: d L / dt = torque."""
    engine = top((3.0, 7.0, -2.0), 1e-3)
    before = angular_momentum(engine, "top")
    engine.content.data.state.wrench[0, 3:] = 0.4, -1.0, 2.0
    advance(engine, 2.5)
    assert angular_momentum(engine, "top") - before == pytest.approx(2.5 * np.array([0.4, -1.0, 2.0]), rel=1e-10)


def test_a_body_that_tumbles_falls_like_a_point() -> None:
    """v(n h) = g n h and x(n h) = g h^2 n (n + 1) / 2 exactly: the semi-implicit step; the frame's origin is not the
    centre.
    """
    world = World()
    world.body("b", mass=2, inertia=MOMENTS, com=(0.3, -0.2, 0.1), vel=(1, 2, 3), spin=(4, 5, 6))
    engine = compiled(world, 1e-3)
    start = engine.content.data.state.pos[0].copy()
    speed = engine.content.data.state.vel[0, :3].copy()
    assert speed == pytest.approx(np.array([1, 2, 3]) + np.cross([4, 5, 6], [0.3, -0.2, 0.1]))
    n, h = 1500, 1e-3
    assert engine.step(n) == 0
    g = np.array([0, 0, -9.80665])
    assert engine.content.data.state.vel[0, :3] == pytest.approx(speed + g * n * h, rel=1e-11)
    assert engine.content.data.state.pos[0] == pytest.approx(
        start + speed * n * h + g * h * h * n * (n + 1) / 2, rel=1e-11
    )


def test_a_kinematic_body_moves_and_turns_as_told() -> None:
    world = World()
    world.body("k", kind="kinematic", vel=(1, 0, 0), spin=(0, 0, np.pi / 2))
    engine = advance(compiled(world), 1.0)
    assert engine.position("k") == pytest.approx([1, 0, 0], abs=1e-12)
    assert rotated(attitude(engine, "k"), np.array([1.0, 0, 0])) == pytest.approx([0, 1, 0], abs=1e-12)
