"""Closed loops against tight integrations of their one degree of freedom, and loops with more constraints than
needed.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from worlds import G, about, advance, centre, compiled, direction, orders, reaction, rod, watched

from plant.engine.compile import Engine
from plant.world.world import World

Y = (0.0, 1.0, 0.0)


class Linkage:
    """A plane mechanism (x, z) of one freedom s: where each body is for a given s, and Lagrange's equation from that.

    Kinetic energy is A(s) s'^2 / 2 and potential V(s), so A s'' + A' s'^2 / 2 + V' = 0; A and the slopes come from
    central differences of the poses.
    """

    def __init__(self, poses: Callable[[float], np.ndarray], masses: np.ndarray, moments: np.ndarray) -> None:
        self.poses, self.masses, self.moments = poses, masses, moments

    def slopes(self, s: float, d: float = 1e-5) -> np.ndarray:
        p = self.poses
        return (8 * (p(s + d) - p(s - d)) - (p(s + 2 * d) - p(s - 2 * d))) / (12 * d)

    def inertia(self, s: float) -> float:
        dx, dz, dt = self.slopes(s).T
        return float(self.masses @ (dx**2 + dz**2) + self.moments @ dt**2)

    def rates(self, _: float, y: np.ndarray) -> list[float]:
        s, ds = y
        d = 1e-4
        bend = (self.inertia(s + d) - self.inertia(s - d)) / (2 * d)
        fall = G * float(self.masses @ self.slopes(s)[:, 1])
        return [ds, -(0.5 * bend * ds**2 + fall) / self.inertia(s)]

    def after(self, seconds: float, s: float, ds: float) -> np.ndarray:
        return solve_ivp(self.rates, (0, seconds), [s, ds], method="DOP853", rtol=1e-9, atol=1e-10).y[:, -1]


def link_pose(start: np.ndarray, end: np.ndarray) -> list[float]:
    """Middle x and z, and the turn about y, of a link along x between two points."""
    middle, along = (start + end) / 2, end - start
    return [middle[0], middle[1], -np.arctan2(along[1], along[0])]


def add_link(world: World, name: str, start: np.ndarray, end: np.ndarray, mass: float) -> None:
    x, z, turn = link_pose(start, end)
    length = float(np.linalg.norm(end - start))
    world.body(name, **rod(length, mass), pos=(x, 0, z), quat=about(Y, turn))  # type: ignore[arg-type]


def flat(p: np.ndarray) -> tuple[float, float, float]:
    return float(p[0]), 0.0, float(p[1])


def moment(length: float, mass: float) -> float:
    return mass * (length**2 + 0.02**2) / 12


CRANK, CONROD, PISTON = 0.1, 0.35, 0.8


def crank_points(s: float) -> tuple[np.ndarray, np.ndarray]:
    pin = CRANK * np.array([np.cos(s), np.sin(s)])
    return pin, np.array([pin[0] + np.sqrt(CONROD**2 - pin[1] ** 2), 0.0])


def slider_crank_poses(s: float) -> np.ndarray:
    pin, wrist = crank_points(s)
    return np.array([link_pose(np.zeros(2), pin), link_pose(pin, wrist), [*wrist, 0.0]])


SLIDER_CRANK = Linkage(
    slider_crank_poses, np.array([1.0, 0.6, PISTON]), np.array([moment(CRANK, 1.0), moment(CONROD, 0.6), 0.0])
)


def slider_crank(dt: float, s: float) -> Engine:
    world = World()
    pin, wrist = crank_points(s)
    add_link(world, "crank", np.zeros(2), pin, 1.0)
    add_link(world, "rod", pin, wrist, 0.6)
    world.body("piston", mass=PISTON, inertia=(0.01, 0.01, 0.01), pos=flat(wrist))
    world.hinge("main", None, "crank", at=(0, 0, 0), axis=Y)
    world.hinge("big end", "crank", "rod", at=flat(pin), axis=Y)
    world.hinge("small end", "rod", "piston", at=flat(wrist), axis=Y)
    world.prismatic("bore", None, "piston", at=flat(wrist), axis=(1, 0, 0))
    return compiled(world, dt)


A, B, C, D = 0.2, 0.5, 0.4, 0.45  # crank, coupler, rocker, ground: Grashof, so the crank goes round


def four_bar_points(s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pin = A * np.array([np.cos(s), np.sin(s)])
    post = np.array([D, 0.0])
    apart = post - pin
    size = np.linalg.norm(apart)
    along = (B**2 - C**2 + size**2) / (2 * size)
    up = np.sqrt(B**2 - along**2)
    unit = apart / size
    return pin, pin + along * unit + up * np.array([-unit[1], unit[0]]), post


def four_bar_poses(s: float) -> np.ndarray:
    pin, joint, post = four_bar_points(s)
    return np.array([link_pose(np.zeros(2), pin), link_pose(pin, joint), link_pose(post, joint)])


FOUR_BAR = Linkage(
    four_bar_poses, np.array([1.0, 1.5, 1.2]), np.array([moment(A, 1.0), moment(B, 1.5), moment(C, 1.2)])
)


def four_bar(dt: float, s: float) -> Engine:
    world = World()
    pin, joint, post = four_bar_points(s)
    add_link(world, "crank", np.zeros(2), pin, 1.0)
    add_link(world, "coupler", pin, joint, 1.5)
    add_link(world, "rocker", post, joint, 1.2)
    world.hinge("1", None, "crank", at=(0, 0, 0), axis=Y)
    world.hinge("2", "crank", "coupler", at=flat(pin), axis=Y)
    world.hinge("3", "coupler", "rocker", at=flat(joint), axis=Y)
    world.hinge("4", None, "rocker", at=flat(post), axis=Y)
    return compiled(world, dt)


def crank_angle(engine: Engine) -> float:
    x, _, z = centre(engine, "crank")
    return float(np.arctan2(z, x))


@pytest.mark.parametrize(("build", "linkage", "start"), [(slider_crank, SLIDER_CRANK, 2.0), (four_bar, FOUR_BAR, 1.9)])
def test_mechanism_converges_to_its_equation_of_motion(
    build: Callable[[float, float], Engine], linkage: Linkage, start: float
) -> None:
    """Released at rest, it falls and swings; at a fixed time the crank angle is right to first order in the step."""
    seconds = 0.6
    exact = linkage.after(seconds, start, 0.0)[0]
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        got = crank_angle(advance(build(dt, start), seconds))
        errors.append(abs(np.angle(np.exp(1j * (got - exact)))))
    assert errors[-1] < 2e-3 * max(1.0, abs(exact - start))
    assert (orders(errors) > 0.85).all()


@pytest.mark.parametrize(("build", "start"), [(slider_crank, 2.0), (four_bar, 1.9)])
def test_loop_stays_closed_at_a_millisecond(build: Callable[[float, float], Engine], start: float) -> None:
    gaps = watched(build(1e-3, start), 5.0, Engine.gap)
    assert gaps.max() <= 1e-5


@pytest.mark.parametrize(("build", "linkage", "start"), [(slider_crank, SLIDER_CRANK, 2.0), (four_bar, FOUR_BAR, 1.9)])
def test_bodies_stay_where_the_linkage_puts_them(
    build: Callable[[float, float], Engine], linkage: Linkage, start: float
) -> None:
    """Given the crank's angle, all other bodies follow from geometry alone."""
    engine = build(1e-3, start)
    for _ in range(40):
        advance(engine, 0.05)
        poses = linkage.poses(crank_angle(engine))
        for name, pose in zip(engine.names, poses, strict=True):
            assert centre(engine, name)[[0, 2]] == pytest.approx(pose[:2], abs=2e-5)


def door(hinges: int, dt: float = 1e-3) -> Engine:
    """A door of 20 kg on a leaning post, turned out of its lowest place."""
    world = World()
    lean = np.array([0.3, 0.0, 1.0]) / np.linalg.norm([0.3, 0.0, 1.0])
    world.body("door", mass=20, inertia=(7.0, 8.0, 1.1), pos=(0, 0.4, 1.0))
    for k in range(hinges):
        world.hinge(f"hinge {k}", None, "door", at=lean * (0.2 + 0.8 * k), axis=lean)
    return compiled(world, dt)


def test_a_door_with_three_hinges_swings_as_one_with_a_single_hinge() -> None:
    """Ten of the fifteen constraints are redundant. Same motion, and the hinges share its weight."""
    three, one = door(3), door(1)
    advance(three, 2.0)
    advance(one, 2.0)
    assert np.linalg.norm(centre(three, "door") - np.array([0, 0.4, 1.0])) > 0.1
    assert centre(three, "door") == pytest.approx(centre(one, "door"), abs=1e-5)
    assert three.gap() < 1e-5


def test_the_hinges_of_a_door_share_its_weight_as_equal_springs_do() -> None:
    """On a plumb post nothing moves. Equal stiffness: each carries a third of the weight."""
    world = World()
    world.body("door", mass=20, inertia=(7.0, 8.0, 1.1), pos=(0, 0.4, 1.0))
    for k in range(3):
        world.hinge(f"hinge {k}", None, "door", at=(0, 0, 0.2 + 0.8 * k), axis=(0, 0, 1))
    engine = advance(compiled(world), 2.0)
    up = [reaction(engine, f"hinge {k}")[2] for k in range(3)]
    assert up == pytest.approx([20 * G / 3] * 3, rel=1e-3)
    assert centre(engine, "door") == pytest.approx([0, 0.4, 1.0], abs=1e-6)


def bennett(dt: float, s: float, twist_a: float = np.pi / 6, twist_b: float = np.pi / 3) -> Engine:
    """Bennett's linkage: four hinges that by Gruebler's count can not move; a / sin(alpha) = b / sin(beta).

    Links alternate a, b, a, b with twists alpha, beta; angles of consecutive hinges satisfy
    tan(s / 2) tan(t / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) / 2).
    """
    a = 0.3
    b = a * np.sin(twist_b) / np.sin(twist_a)
    t = bennett_partner(s, twist_a, twist_b)
    world = World(gravity=(0, 0, 0))
    frame = np.eye(4)
    hinges, ends = [], []
    for turn, length, twist in ((s, a, twist_a), (t, b, twist_b), (-s, a, twist_a), (-t, b, twist_b)):
        hinges.append((frame[:3, 3].copy(), frame[:3, 2].copy()))
        frame = frame @ turned(turn, 2) @ shifted(length) @ turned(twist, 0)
        ends.append(frame[:3, 3].copy())
    assert frame == pytest.approx(np.eye(4), abs=1e-9)  # the loop closes
    names = ["one", "two", "three"]  # the fourth link is the ground, between the last hinge and the first
    for k, name in enumerate(names):
        world.body(name, mass=1, inertia=(0.01, 0.012, 0.015), pos=(hinges[k][0] + ends[k]) / 2)
    chain = [None, *names, None]
    for k, (where, axis) in enumerate(hinges):
        world.hinge(f"hinge {k}", chain[k], chain[k + 1], at=where, axis=axis)
    return compiled(world, dt)


def bennett_partner(s: float, twist_a: float, twist_b: float) -> float:
    ratio = np.sin((twist_b + twist_a) / 2) / np.sin((twist_b - twist_a) / 2)
    return float(2 * np.arctan(ratio / np.tan(s / 2)))


def turned(angle: float, axis: int) -> np.ndarray:
    m, (i, j) = np.eye(4), ((1, 2), (2, 0), (0, 1))[axis]
    m[i, i] = m[j, j] = np.cos(angle)
    m[j, i], m[i, j] = np.sin(angle), -np.sin(angle)
    return m


def shifted(length: float) -> np.ndarray:
    m = np.eye(4)
    m[0, 3] = length
    return m


def test_bennett_linkage_moves_and_obeys_its_input_output_equation() -> None:
    """Twenty constraints on eighteen freedoms, and yet it goes round: three of them are redundant."""
    start, alpha, beta = 1.0, np.pi / 6, np.pi / 3
    engine = bennett(1e-3, start)
    t0 = bennett_partner(start, alpha, beta)
    first = direction(engine, "one", (1, 0, 0))
    torque_on = engine.index("one")
    moved = 0.0
    for _ in range(60):
        engine.content.data.state.wrench[torque_on, 3:] = 0, 0, 0.1
        advance(engine, 0.05)
        angles = engine.content.data.state.angle
        moved = max(moved, abs(angles[0, 0]))
        goal = bennett_partner(start + angles[0, 0], alpha, beta)
        assert np.angle(np.exp(1j * (t0 + angles[1, 0] - goal))) == pytest.approx(0, abs=1e-4)
    assert moved > 2.0
    assert not np.allclose(first, direction(engine, "one", (1, 0, 0)), atol=1e-2)
    assert engine.gap() < 1e-5
