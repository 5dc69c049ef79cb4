"""Andrews' squeezer: seven plane bodies, three loops, a motor of constant torque and a stiff spring. Times are a few
hundredths of a second and the motor turns at up to 200 turns a second.

The angles at t = 0.03 s are published. They are also found here from the equations of motion in seven angles and six
loop closures, by a tight integration of the index-1 form.

Ref: Schiehlen, Multibody Systems Handbook, 1990; Hairer and Wanner, Solving ODEs II, VII.7; Mazzia and Magherini, Test
Set for IVP Solvers, problem "andrews", whose names the angles have.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from worlds import about, advance, angle, centre, compiled, orders, push, spin, velocity

from plant.engine.compile import Engine
from plant.world.world import World

Vector = NDArray[np.float64]
MASS = np.array([0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498])  # [kg]
MOMENT = np.array([2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5])  # [kg m^2]
A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])  # [m]
D, DA, E, EA, ZF, FA = 28e-3, 115e-4, 2e-2, 1421e-5, 2e-2, 1421e-5
RR, RA, SS, SA, SB, SC, SD = 7e-3, 92e-5, 35e-3, 1874e-5, 1043e-5, 18e-3, 2e-2
ZT, TA, TB, U, UA, UB = 4e-2, 2308e-5, 916e-5, 4e-2, 1228e-5, 449e-5
STIFFNESS, REST, TORQUE = 4530.0, 0.07785, 0.033  # [N/m] [m] [N m]
SECONDS = 0.03

NAMES = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
START = np.array(
    [
        -0.0617138900142764496358948458001,
        0.0,
        0.455279819163070380255912382449,
        0.222668390165885884674473185609,
        0.487364979543842550225598953530,
        -0.222668390165885884674473185609,
        1.23054744454982119249735015568,
    ]
)
PUBLISHED = np.array([15.81077, -15.75637, 0.04082224, -0.5347301, 0.5244099, 0.5347301, 1.048080])


def along(turn: float) -> Vector:
    """The unit vector at an angle from x."""
    return np.array([np.cos(turn), np.sin(turn)])


def below(turn: float) -> Vector:
    """The same a quarter turn back."""
    return np.array([np.sin(turn), -np.cos(turn)])


def pin(q: Vector) -> Vector:
    """Where crank and coupler meet."""
    return RR * along(q[0])


def knee(q: Vector) -> Vector:
    """Where the coupler meets the three arms."""
    return pin(q) - D * along(q[0] + q[1])


def spring_end(gamma: float) -> Vector:
    return B + SD * along(gamma) + SC * below(gamma)


def poses(q: Vector) -> tuple[Vector, Vector]:
    """Centre of mass [7, 2] and turn [7] of every body."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    places = [
        RA * along(beta),
        pin(q) - DA * along(beta + theta),
        B + SA * below(gamma) + SB * along(gamma),
        A + ZT * along(delta) + (E - EA) * below(phi + delta),
        A + TA * below(delta) + TB * along(delta),
        A + U * below(epsilon) + (ZF - FA) * along(omega + epsilon),
        A + UA * below(epsilon) - UB * along(epsilon),
    ]
    return np.array(places), np.array([beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon])


def closures(q: Vector) -> Vector:
    """The three arms end in the knee: six equations."""
    _, _, gamma, phi, delta, omega, epsilon = q
    arms = (
        B + SS * below(gamma),
        A + ZT * along(delta) + E * below(phi + delta),
        A + U * below(epsilon) + ZF * along(omega + epsilon),
    )
    return np.concatenate([knee(q) - arm for arm in arms])


def mass_matrix(q: Vector) -> Vector:
    """Hairer and Wanner (VII.7.11): written out, not from `poses`."""
    _, theta, _, phi, _, omega, _ = q
    m, i = MASS, MOMENT
    a, f = E - EA, ZF - FA
    out = np.zeros((7, 7))
    out[0, 0] = m[0] * RA**2 + m[1] * (RR**2 - 2 * DA * RR * np.cos(theta) + DA**2) + i[0] + i[1]
    out[1, 0] = out[0, 1] = m[1] * (DA**2 - DA * RR * np.cos(theta)) + i[1]
    out[1, 1] = m[1] * DA**2 + i[1]
    out[2, 2] = m[2] * (SA**2 + SB**2) + i[2]
    out[3, 3] = m[3] * a**2 + i[3]
    out[4, 3] = out[3, 4] = m[3] * (a**2 + ZT * a * np.sin(phi)) + i[3]
    out[4, 4] = m[3] * (ZT**2 + 2 * ZT * a * np.sin(phi) + a**2) + m[4] * (TA**2 + TB**2) + i[3] + i[4]
    out[5, 5] = m[5] * f**2 + i[5]
    out[6, 5] = out[5, 6] = m[5] * (f**2 - U * f * np.sin(omega)) + i[5]
    out[6, 6] = m[5] * (f**2 - 2 * U * f * np.sin(omega) + U**2) + m[6] * (UA**2 + UB**2) + i[5] + i[6]
    return out


def forces(q: Vector, v: Vector) -> Vector:
    """Motor, spring and the terms with squares of speeds (Hairer and Wanner VII.7.12)."""
    (_, theta, gamma, phi, _, omega, _), m = q, MASS
    way = spring_end(gamma) - C
    length = np.linalg.norm(way)
    pull = -STIFFNESS * (length - REST) / length * way
    a, f = E - EA, ZF - FA
    out = np.zeros(7)
    out[0] = TORQUE - m[1] * DA * RR * v[1] * (v[1] + 2 * v[0]) * np.sin(theta)
    out[1] = m[1] * DA * RR * v[0] ** 2 * np.sin(theta)
    out[2] = pull @ (SC * along(gamma) - SD * below(gamma))
    out[3] = m[3] * ZT * a * v[4] ** 2 * np.cos(phi)
    out[4] = -m[3] * ZT * a * v[3] * (v[3] + 2 * v[4]) * np.cos(phi)
    out[5] = -m[5] * U * f * v[6] ** 2 * np.cos(omega)
    out[6] = m[5] * U * f * v[5] * (v[5] + 2 * v[6]) * np.cos(omega)
    return out


def closure_rates(q: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Jacobian of the closures, and its rate times the speeds: turning a vector along or below once differentiates it,
    twice reverses it.
    """
    beta, theta, gamma, phi, delta, omega, epsilon = q
    g, bend = np.zeros((6, 7)), np.zeros(6)
    terms = [
        # length, angle, which coordinates the angle is the sum of, in which pair of equations
        *[(RR, beta, (0,), k) for k in range(3)],
        *[(-D, beta + theta, (0, 1), k) for k in range(3)],
        (-SS, gamma - np.pi / 2, (2,), 0),
        (-ZT, delta, (4,), 1),
        (-E, phi + delta - np.pi / 2, (3, 4), 1),
        (-U, epsilon - np.pi / 2, (6,), 2),
        (-ZF, omega + epsilon, (5, 6), 2),
    ]
    for length, turn, of, k in terms:
        rows = slice(2 * k, 2 * k + 2)
        for c in of:
            g[rows, c] -= length * below(turn)
        bend[rows] -= length * along(turn) * v[list(of)].sum() ** 2
    return g, bend


def rates(_: float, y: Vector) -> Vector:
    q, v = y[:7], y[7:]
    g, bend = closure_rates(q, v)
    matrix = np.block([[mass_matrix(q), g.T], [g, np.zeros((6, 6))]])
    return np.concatenate([v, np.linalg.solve(matrix, np.concatenate([forces(q, v), -bend]))[:7]])


@cache
def reference() -> Vector:
    """Angles and speeds at the end."""
    y = np.concatenate([START, np.zeros(7)])
    return solve_ivp(rates, (0, SECONDS), y, method="DOP853", rtol=1e-10, atol=1e-11).y[:, -1]


def flat(p: Vector) -> tuple[float, float, float]:
    return float(p[0]), float(p[1]), 0.0


def squeezer(dt: float) -> Engine:
    """Ten hinges: fifty constraints on forty-two freedoms, and one freedom is left."""
    world = World(gravity=(0, 0, 0))
    places, turns = poses(START)
    for k in range(7):  # flat bodies: the moment about z is the sum of the other two
        inertia = (MOMENT[k] / 2, MOMENT[k] / 2, MOMENT[k])
        body = str(k + 1)
        world.body(body, mass=MASS[k], inertia=inertia, pos=flat(places[k]), quat=about((0, 0, 1), turns[k]))
    _, _, gamma, _, delta, _, epsilon = START
    joints = {
        "beta": (None, "1", np.zeros(2)),
        "Theta": ("1", "2", pin(START)),
        "gamma": (None, "3", B),
        "delta": (None, "5", A),
        "Phi": ("5", "4", A + ZT * along(delta)),
        "epsilon": (None, "7", A),
        "Omega": ("7", "6", A + U * below(epsilon)),
        "knee 3": ("2", "3", knee(START)),
        "knee 4": ("2", "4", knee(START)),
        "knee 6": ("2", "6", knee(START)),
    }
    for name, (a, b, at) in joints.items():
        world.hinge(name, a, b, at=flat(at), axis=(0, 0, 1))
    world.spring("spring", None, "3", at_a=flat(C), at_b=flat(spring_end(gamma)), stiffness=STIFFNESS, rest=REST)
    engine = compiled(world, dt)
    push(engine, "1", torque=(0, 0, TORQUE))
    return engine


def angles(engine: Engine) -> Vector:
    return START + [angle(engine, name) for name in NAMES]


@cache
def run(dt: float) -> Engine:
    return advance(squeezer(dt), SECONDS)


def test_the_start_closes_the_loops() -> None:
    """The published initial angles are consistent to sixteen digits."""
    assert np.abs(closures(START)).max() < 1e-16


def test_the_closure_jacobian_is_the_slope_of_the_closures() -> None:
    """Central differences, at a place that is not special, of value and of rate."""
    rng = np.random.default_rng(1)
    q, v, d = rng.normal(size=7), rng.normal(size=7), 1e-6
    g, bend = closure_rates(q, v)
    assert (closures(q + d * v) - closures(q - d * v)) / (2 * d) == pytest.approx(g @ v, abs=1e-10)
    there, back = closure_rates(q + d * v, v)[0], closure_rates(q - d * v, v)[0]
    assert (there - back) @ v / (2 * d) == pytest.approx(bend, abs=1e-9)


def test_the_mass_matrix_of_the_book_is_that_of_the_bodies() -> None:
    """Kinetic energy from the speeds of the seven centres, by central differences, is half of v' M v."""
    rng = np.random.default_rng(2)
    q, v, d = rng.normal(size=7), rng.normal(size=7), 1e-6
    (p1, t1), (p0, t0) = poses(q + d * v), poses(q - d * v)
    speed, rate = (p1 - p0) / (2 * d), (t1 - t0) / (2 * d)
    kinetic = 0.5 * MASS @ (speed**2).sum(axis=1) + 0.5 * MOMENT @ rate**2
    assert 0.5 * v @ mass_matrix(q) @ v == pytest.approx(kinetic, rel=1e-8)


def test_the_tight_integration_gives_the_published_angles() -> None:
    """To the digits that are printed."""
    assert reference()[:7] == pytest.approx(PUBLISHED, rel=1e-6)


STEPS = (2e-5, 1e-5, 5e-6, 2.5e-6)  # [s]


def test_the_squeezer_converges_to_the_published_angles() -> None:
    """With the first order of the step: after two and a half turns of the motor the worst angle is 1.8 mrad off at
    2.5 us, 7 mrad at 10 us.
    """
    errors = [float(np.abs(angles(run(dt)) - reference()[:7]).max()) for dt in STEPS]
    assert errors[-1] < 2e-3
    assert (orders(errors) >= 1.0).all()
    assert np.abs(angles(run(STEPS[-1])) - PUBLISHED).max() < 2e-3


def test_the_limit_of_small_steps_is_the_published_solution() -> None:
    """Extrapolated from the two smallest steps, the first-order error drops out: all angles to 1e-5."""
    limit = 2 * angles(run(STEPS[-1])) - angles(run(STEPS[-2]))
    assert limit == pytest.approx(PUBLISHED, abs=1e-5)


def test_the_speeds_converge_too() -> None:
    """Hinge rates of the crank and of the three bodies on the ground, against the tight integration."""
    exact = reference()[7:][[0, 2, 4, 6]]
    errors = []
    for dt in STEPS:
        got = np.array([spin(run(dt), body)[2] for body in ("1", "3", "5", "7")])
        errors.append(float(np.abs(got - exact).max() / np.abs(exact).max()))
    assert errors[-1] < 2e-3
    assert (orders(errors) > 0.95).all()


def test_the_loops_stay_closed() -> None:
    """Fifteen nanometres at 10 us; angles read from the hinges close the loops as the bodies do."""
    engine = squeezer(1e-5)
    for _ in range(30):
        advance(engine, SECONDS / 30)
        assert engine.gap() < 5e-8
        assert np.abs(closures(angles(engine))).max() < 2e-7


def test_the_mechanism_stays_in_its_plane() -> None:
    """Nothing pushes out of it: redundant hinges must not either."""
    engine = run(1e-5)
    for body in engine.names:
        assert centre(engine, body)[2] == pytest.approx(0, abs=1e-9)
        assert velocity(engine, body)[2] == pytest.approx(0, abs=1e-6)
        assert spin(engine, body)[:2] == pytest.approx([0, 0], abs=1e-4)


def test_the_motor_pays_for_all_energy() -> None:
    """Kinetic energy and what the spring has stored are the torque times the angle: 0.52 J, to 2e-4 of it. Two errors
    of opposite sign meet here, so that the order shows only at the small steps.
    """
    work, errors = TORQUE * (reference()[0] - START[0]), []
    for dt in STEPS:
        engine = run(dt)
        q = angles(engine)
        stored = [0.5 * STIFFNESS * (np.linalg.norm(spring_end(g) - C) - REST) ** 2 for g in (START[2], q[2])]
        errors.append(abs(engine.energy() + stored[1] - stored[0] - TORQUE * (q[0] - START[0])))
    assert max(errors) < 2e-4 * work
    assert errors[-1] < 5e-5 * work
    assert orders(errors)[-1] > 0.8
