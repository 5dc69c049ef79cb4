"""Closed loops in joint coordinates, against tight integrations of the plane mechanisms in other coordinates, against
the engine that knows no tree, and against the closed forms of linkages that move though they have too many constraints.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from worlds import G, about, rod

from plant.engine.compile import compile_world
from plant.model import Turning
from plant.reduced.compile import Tree, TreeError, compile_tree, run_steps
from plant.world.rotations import rotated
from plant.world.world import World

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
INTEGRATORS = [("euler", 1), ("midpoint", 2), ("rk4", 4)]


# --- plane mechanisms -----------------------------------------------------------------------------


class Plane:
    """A plane mechanism (x, z) in the coordinates x, z, turn of each of its bodies: M a = f + C' force, C a + C' v = 0.

    Pins join a point of one body to a point of another; a rail keeps z and turn of a body. The turn goes from x to z.
    """

    damping = 0.0  # [N m s/rad] in the pin of body 0 on the ground

    def __init__(self, masses: list[float], moments: list[float]) -> None:
        self.mass = np.column_stack([masses, masses, moments]).ravel()
        self.weight = np.column_stack([np.zeros(len(masses)), -G * np.array(masses), np.zeros(len(masses))]).ravel()
        self.pins: list[tuple[int, float, int, float]] = []  # body and place along its x; body -1 is the ground
        self.rails: list[int] = []

    def rates(self, _: float, y: np.ndarray) -> np.ndarray:
        n = self.mass.size
        x, v = y[:n], y[n:]
        rows: list[np.ndarray] = []
        bends: list[np.ndarray] = []
        for a, at_a, b, at_b in self.pins:
            row, bend = np.zeros((2, n)), np.zeros(2)
            for body, at, sign in ((a, at_a, 1.0), (b, at_b, -1.0)):
                if body >= 0:
                    c, s = math.cos(x[3 * body + 2]), math.sin(x[3 * body + 2])
                    row[:, 3 * body : 3 * body + 2] = sign * np.eye(2)
                    row[:, 3 * body + 2] = sign * at * np.array([-s, c])
                    bend -= sign * at * v[3 * body + 2] ** 2 * np.array([c, s])
            rows.append(row)
            bends.append(bend)
        for body in self.rails:
            rows.append(np.eye(n)[3 * body + 1 : 3 * body + 3])
            bends.append(np.zeros(2))
        pull = self.weight - self.damping * v[2] * (np.arange(n) == 2)
        g = np.concatenate(rows)
        k = np.block([[np.diag(self.mass), g.T], [g, np.zeros((len(g), len(g)))]])
        return np.concatenate([v, np.linalg.solve(k, np.concatenate([pull, -np.concatenate(bends)]))[:n]])

    def after(self, seconds: float, poses: np.ndarray) -> np.ndarray:
        """[bodies, 6] x, z, turn and their rates, let go at rest."""
        start = np.concatenate([poses.ravel(), np.zeros(self.mass.size)])
        end = solve_ivp(self.rates, (0, seconds), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
        return np.column_stack([end[: self.mass.size].reshape(-1, 3), end[self.mass.size :].reshape(-1, 3)])


def link_pose(start: np.ndarray, end: np.ndarray) -> list[float]:
    middle, along = (start + end) / 2, end - start
    return [middle[0], middle[1], math.atan2(along[1], along[0])]


def add_link(world: World, name: str, start: np.ndarray, end: np.ndarray, mass: float) -> None:
    x, z, turn = link_pose(start, end)
    world.body(name, **rod(float(np.linalg.norm(end - start)), mass), pos=(x, 0, z), quat=about(Y, -turn))  # type: ignore[arg-type]


def flat(p: np.ndarray) -> tuple[float, float, float]:
    return float(p[0]), 0.0, float(p[1])


def moment(length: float, mass: float) -> float:
    return mass * (length**2 + 0.02**2) / 12


CRANK, CONROD = 0.1, 0.35


def slider_crank(s: float = 2.0) -> tuple[World, Plane, np.ndarray]:
    pin = CRANK * np.array([math.cos(s), math.sin(s)])
    wrist = np.array([pin[0] + math.sqrt(CONROD**2 - pin[1] ** 2), 0.0])
    world = World()
    add_link(world, "crank", np.zeros(2), pin, 1.0)
    add_link(world, "rod", pin, wrist, 0.6)
    world.body("piston", mass=0.8, inertia=(0.01, 0.01, 0.01), pos=flat(wrist))
    world.hinge("main", None, "crank", at=(0, 0, 0), axis=Y)
    world.hinge("big end", "crank", "rod", at=flat(pin), axis=Y)
    world.hinge("small end", "rod", "piston", at=flat(wrist), axis=Y)
    world.prismatic("bore", None, "piston", at=flat(wrist), axis=(1, 0, 0))
    plane = Plane([1.0, 0.6, 0.8], [moment(CRANK, 1.0), moment(CONROD, 0.6), 0.01])
    plane.pins = [(0, -CRANK / 2, -1, 0.0), (0, CRANK / 2, 1, -CONROD / 2), (1, CONROD / 2, 2, 0.0)]
    plane.rails = [2]
    return world, plane, np.array([link_pose(np.zeros(2), pin), link_pose(pin, wrist), [*wrist, 0.0]])


A, B, C, D = 0.2, 0.5, 0.4, 0.45  # crank, coupler, rocker, ground: Grashof, so the crank goes round


def four_bar(s: float = 1.9, order: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[World, Plane, np.ndarray]:
    pin, post = A * np.array([math.cos(s), math.sin(s)]), np.array([D, 0.0])
    apart = post - pin
    size = float(np.linalg.norm(apart))
    along = (B**2 - C**2 + size**2) / (2 * size)
    unit = apart / size
    top = pin + along * unit + math.sqrt(B**2 - along**2) * np.array([-unit[1], unit[0]])
    world = World()
    add_link(world, "crank", np.zeros(2), pin, 1.0)
    add_link(world, "coupler", pin, top, 1.5)
    add_link(world, "rocker", post, top, 1.2)
    hinges = [(None, "crank", (0, 0, 0)), ("crank", "coupler", flat(pin)), ("coupler", "rocker", flat(top))]
    hinges.append((None, "rocker", flat(post)))
    for k in order:
        world.hinge(f"h{k}", *hinges[k][:2], at=hinges[k][2], axis=Y)
    plane = Plane([1.0, 1.5, 1.2], [moment(A, 1.0), moment(B, 1.5), moment(C, 1.2)])
    plane.pins = [(0, -A / 2, -1, 0.0), (0, A / 2, 1, -B / 2), (1, B / 2, 2, C / 2)]
    plane.pins.append((2, -C / 2, -1, 0.0))
    return world, plane, np.array([link_pose(np.zeros(2), pin), link_pose(pin, top), link_pose(post, top)])


def plane_state(tree: Tree) -> np.ndarray:
    """[bodies, 5] x, z and the rates of x, z and turn, as Plane has them."""
    out = tree.refresh()
    return np.column_stack([out.pos[:, [0, 2]], out.vel[:, [0, 2]], -out.vel[:, 4]])


def exact_state(plane: Plane, poses: np.ndarray, seconds: float) -> np.ndarray:
    return plane.after(seconds, poses)[:, [0, 1, 3, 4, 5]]


@pytest.mark.parametrize(("integrator", "order"), INTEGRATORS)
@pytest.mark.parametrize(
    ("build", "steps", "damping"), [(four_bar, 200, 0.0), (four_bar, 200, 0.02), (slider_crank, 400, 0.0)]
)
def test_observed_order_of_convergence(build: Any, steps: int, damping: float, integrator: Any, order: int) -> None:
    """Let go at rest, with damping at the crank or none: all positions and velocities after 0.4 s."""
    world, plane, poses = build()
    plane.damping = damping
    exact = exact_state(plane, poses, 0.4)
    assert np.abs(exact[:, 4]).max() > 5.0  # [rad/s] it does move
    crank = next(iter(world.joints))

    def error(count: int) -> float:
        tree = compile_tree(world, 0.4 / count, integrator=integrator)
        tree.content.motion.damping[tree.dofs(crank)] = damping
        assert tree.step(count) == 0
        return float(np.abs(plane_state(tree) - exact).max())

    count = steps * {1: 4, 2: 2, 4: 1}[order]
    errors = [error(count), error(2 * count)]
    assert order - 0.15 < math.log2(errors[0] / errors[1]) < order + 0.3
    assert errors[1] < {1: 2e-2, 2: 5e-4, 4: 1e-7}[order]


@pytest.mark.parametrize("build", [four_bar, slider_crank])
@pytest.mark.parametrize("method", ["aba", "crba"])
def test_plane_mechanism_follows_dop853(build: Any, method: Any) -> None:
    world, plane, poses = build()
    tree = compile_tree(world, 2.5e-4, integrator="rk4", method=method)
    assert tree.step(1600) == 0
    assert plane_state(tree) == pytest.approx(exact_state(plane, poses, 0.4), abs=2e-9)


@pytest.mark.parametrize(("integrator", "_"), INTEGRATORS)
@pytest.mark.parametrize("build", [four_bar, slider_crank])
def test_loop_does_not_drift_open(build: Any, integrator: Any, _: int) -> None:
    """Five seconds: no row opens at position or velocity level beyond rounding, redundant ones neither."""
    tree = compile_tree(build()[0], 1e-3, integrator=integrator)
    for _step in range(500):
        assert tree.step(10) == 0
        assert tree.gap() < 1e-11
        assert np.abs(tree.content.loop.error).max() < 1e-11
        assert np.abs(tree.content.loop.jacobian @ tree.qd).max() < 1e-10


def test_where_a_loop_is_cut_does_not_matter() -> None:
    """The last declared hinge is the one without coordinates; the motion is the same."""
    ends = []
    for order in ((0, 1, 2, 3), (1, 2, 3, 0), (3, 0, 2, 1), (0, 1, 3, 2)):
        tree = compile_tree(four_bar(order=order)[0], 1e-3, integrator="rk4")
        assert tree.closures == [f"h{order[-1]}"]
        tree.step(400)
        ends.append(plane_state(tree))
    for end in ends[1:]:
        assert end == pytest.approx(ends[0], abs=1e-6)


def test_three_hinged_arch_pushes_outwards() -> None:
    """Two bars of weight W lean on each other: thrust W s / 2 h at each foot, s half the span, h the height."""
    s, h, mass = 1.2, 0.8, 30.0
    world = World()
    add_link(world, "left", np.array([-s, 0]), np.array([0, h]), mass)
    add_link(world, "right", np.array([s, 0]), np.array([0, h]), mass)
    world.hinge("foot", None, "left", at=(-s, 0, 0), axis=Y)
    world.hinge("ridge", "left", "right", at=(0, 0, h), axis=Y)
    world.joint(
        "end",
        None,
        "right",
        at=(s, 0, 0),
        axis=Y,
        reference=(1, 0, 0),
        locked=(0, 1, 2, 3, 4),
        turning=Turning.ONE_FREE,
    )
    tree = compile_tree(world, 1e-3)
    assert np.abs(tree.qdd).max() < 1e-12
    thrust, down = tree.reaction("end")[:2]  # along x and z cross x of the joint's axes
    assert thrust == pytest.approx(-mass * G * s / (2 * h), rel=1e-10)
    assert down == pytest.approx(-mass * G, rel=1e-10)


# --- loops in space -------------------------------------------------------------------------------

KINDS: dict[str, tuple[tuple[int, ...], Turning]] = {
    "hinge": ((0, 1, 2, 3, 4), Turning.ONE_FREE),
    "prismatic": ((0, 1, 3, 4, 5), Turning.NONE_FREE),
    "cylindrical": ((0, 1, 3, 4), Turning.ONE_FREE),
    "universal": ((0, 1, 2, 3), Turning.TWO_FREE),
    "planar": ((2, 3, 4), Turning.ONE_FREE),
    "point_line": ((0, 1), Turning.ALL_FREE),
    "ball": ((0, 1, 2), Turning.ALL_FREE),
    "fixed": ((0, 1, 2, 3, 4, 5), Turning.NONE_FREE),
}


def ring(kinds: tuple[str, ...], last: int, *, grounded: bool = True) -> World:
    """Bodies around a loop with the given joints at its corners, of which the one numbered `last` is declared last."""
    rng = np.random.default_rng(len(kinds))
    count = len(kinds)
    corner = np.array([[math.cos(2 * np.pi * k / count), math.sin(2 * np.pi * k / count), 0] for k in range(count)])
    corner += rng.normal(size=corner.shape) * 0.15
    world = World(gravity=(0, 0, -G if grounded else 0.0))
    names: list[str | None] = [f"b{k}" for k in range(count)]
    for k in range(count):
        if k < count - 1 or not grounded:
            middle = (corner[k] + corner[(k + 1) % count]) / 2 + rng.normal(size=3) * 0.05
            spin = np.zeros(3) if grounded else np.array([0.3, -0.2, 0.5])
            world.body(
                f"b{k}", mass=1.0 + k, inertia=(0.05, 0.07, 0.09), pos=middle, spin=spin, vel=np.cross(spin, middle)
            )
        else:
            names[k] = None
    frames = rng.normal(size=(count, 2, 3))
    for k in [i for i in range(count) if i != last] + [last]:
        locked, turning = KINDS[kinds[k]]
        pair = (names[k - 1], names[k])
        world.joint(
            f"j{k}",
            *(pair[::-1] if k % 2 else pair),
            at=corner[k],
            axis=frames[k, 0],
            reference=frames[k, 1],
            locked=locked,
            turning=turning,
        )
    return world


RINGS = [
    ("hinge", "universal", "ball", "cylindrical"),
    ("hinge", "ball", "prismatic", "universal"),
    ("ball", "planar", "hinge"),
    ("universal", "point_line", "hinge"),
    ("hinge", "universal", "fixed", "ball", "cylindrical"),
]


@pytest.mark.parametrize("kinds", RINGS)
@pytest.mark.parametrize("method", ["aba", "crba"])
def test_every_kind_of_joint_closes_a_loop(kinds: tuple[str, ...], method: Any) -> None:
    """Each joint in turn is the one without coordinates: rows and coordinates of a joint are two ways to say one thing,
    and the bodies move alike. Energy is kept.
    """
    ends = []
    for last in range(len(kinds)):
        tree = compile_tree(ring(kinds, last), 1e-3, integrator="rk4", method=method)
        assert tree.closures == [f"j{last}"]
        energy = tree.energy()
        assert tree.step(300) == 0
        assert tree.energy() == pytest.approx(energy, abs=1e-7)
        assert np.abs(tree.content.loop.error).max() < 1e-11
        ends.append((tree.body.pos.copy(), tree.body.vel.copy()))
    assert np.abs(ends[0][1]).max() > 0.3
    for pos, vel in ends[1:]:
        assert pos == pytest.approx(ends[0][0], abs=1e-8)
        assert vel == pytest.approx(ends[0][1], abs=1e-7)


def test_floating_ring_keeps_momentum_and_energy() -> None:
    """Six hinges and a ball around seven bodies that float and tumble."""
    tree = compile_tree(ring(("hinge",) * 6 + ("ball",), 6, grounded=False), 1e-3, integrator="rk4")
    assert tree.qd.size == 12
    tree.qd[6:] += np.linspace(1.0, -1.0, 6)
    assert tree.assemble() < 1e-11
    energy, momentum = tree.energy(), tree.momentum()
    start = tree.q[tree.places("j1")].copy()
    assert tree.step(2000) == 0
    assert abs(tree.q[tree.places("j1")] - start) > 0.1
    assert tree.energy() == pytest.approx(energy, rel=1e-8)
    assert np.abs(tree.momentum() - momentum).max() <= 1e-8 * np.abs(momentum).max()


def test_a_bob_on_a_rod_without_mass_swings_with_the_elliptic_integrals_period() -> None:
    """A free body held by nothing but a distance, from 2 rad beside the lowest place."""
    length, start = 0.8, 2.0
    world = World()
    world.body("bob", mass=2.0, inertia=(0.1, 0.2, 0.15), pos=(length * math.sin(start), 0, -length * math.cos(start)))
    world.distance("rod", None, "bob", at_a=(0, 0, 0), at_b=world.bodies["bob"].pos)
    period = 4.0 * math.sqrt(length / G) * float(ellipk(math.sin(start / 2) ** 2))
    tree = compile_tree(world, period / 4000, integrator="rk4")
    assert tree.step(2000) == 0
    assert tree.refresh().pos[0] == pytest.approx([-length * math.sin(start), 0, -length * math.cos(start)], abs=1e-8)
    assert tree.gap() < 1e-12


# --- the excavator, two loops ---------------------------------------------------------------------


def excavator(*, bolted: bool) -> World:
    """Chassis, wheels and blade, house, boom, stick and bucket; a cylinder under the boom and a rocker at the bucket
    close two loops. The house swings at first.
    """
    w = World()
    w.body("chassis", mass=6000, inertia=(5000, 9000, 12000), pos=(0, 0, 1.0), kind="static" if bolted else "dynamic")
    for i, (px, py) in enumerate(((1.3, 1.0), (1.3, -1.0), (-1.3, 1.0), (-1.3, -1.0))):
        w.body(f"wheel{i}", mass=200, inertia=(25, 40, 25), pos=(px, py, 0.5))
        w.hinge(f"axle{i}", "chassis", f"wheel{i}", at=(px, py, 0.5), axis=Y)
    w.body("blade", mass=400, inertia=(60, 40, 80), pos=(2.0, 0, 0.6))
    spin = np.array([0, 0, 0.5])
    for name, mass, inertia, pos in (
        ("house", 8000, (6000, 9000, 9000), (-0.5, 0, 2.0)),
        ("boom", 1500, (300, 4000, 4000), (2.0, 0, 3.5)),
        ("stick", 700, (100, 700, 700), (4.5, 0, 3.5)),
        ("bucket", 600, (150, 150, 150), (5.2, 0, 1.8)),
        ("barrel", 150, (10, 50, 50), (1.2, 0, 2.4)),
        ("piston", 100, (8, 40, 40), (1.6, 0, 2.9)),
        ("rocker", 60, (3, 5, 5), (4.7, 0, 2.6)),
        ("link", 50, (3, 5, 5), (5.1, 0, 2.6)),
    ):
        w.body(name, mass=mass, inertia=inertia, pos=pos, spin=spin, vel=np.cross(spin, pos))
    w.hinge("swing", "chassis", "house", at=(0, 0, 1.3), axis=Z)
    w.hinge("barrel_pin", "house", "barrel", at=(0.9, 0, 2.0), axis=Y)
    w.prismatic("cylinder", "barrel", "piston", at=(1.4, 0, 2.65), axis=(0.7, 0, 0.9))
    for name, a, b, at in (
        ("boom_foot", "house", "boom", (0.5, 0, 2.2)),
        ("stick_pin", "boom", "stick", (4.0, 0, 4.2)),
        ("bucket_pin", "stick", "bucket", (5.0, 0, 2.3)),
        ("piston_pin", "piston", "boom", (1.8, 0, 3.2)),
        ("rocker_pin", "stick", "rocker", (4.85, 0, 2.7)),
        ("link_pin", "rocker", "link", (5.0, 0, 2.8)),
        ("link_bucket", "link", "bucket", (5.25, 0, 2.3)),
        ("blade_pin", "chassis", "blade", (1.6, 0, 0.8)),
    ):
        w.hinge(name, a, b, at=at, axis=Y)
    return w


@pytest.mark.parametrize("bolted", [True, False])
def test_excavator_moves_as_in_the_engine_without_a_tree(bolted: bool) -> None:
    """One second of falling and swinging. The other engine is of first order: its two runs are extrapolated."""
    tree = compile_tree(excavator(bolted=bolted), 1e-3, integrator="rk4")
    assert tree.closures == ["piston_pin", "link_bucket"]
    assert tree.step(1000) == 0
    assert tree.gap() < 1e-8
    seen = []
    for count in (1000, 2000):
        engine = compile_world(excavator(bolted=bolted), 1.0 / count)
        assert engine.step(count) == 0
        seen.append(engine.content.data.state.pos.copy())
    moving = [tree.index(n) for n, b in tree.world.bodies.items() if b.kind == "dynamic"]
    pos = tree.refresh().pos
    assert np.abs(pos - seen[0])[moving].max() > 1e-3  # the extrapolation is what agrees
    assert pos[moving] == pytest.approx((2 * seen[1] - seen[0])[moving], abs=1e-5)


@pytest.mark.parametrize("bolted", [True, False])
def test_excavator_keeps_its_energy(bolted: bool) -> None:
    tree = compile_tree(excavator(bolted=bolted), 1e-3, integrator="rk4")
    start, kinetic = tree.energy(), 0.0
    for _ in range(50):
        assert tree.step(100) == 0
        assert tree.gap() < 1e-8
        vel, world = tree.refresh().vel, tree.world.bodies.values()
        kinetic = max(kinetic, sum(0.5 * b.mass * v[:3] @ v[:3] for b, v in zip(world, vel, strict=True)))
        assert abs(tree.energy() - start) < 1e-6 * kinetic


# --- more constraints than needed -----------------------------------------------------------------

ALPHA, BETA = np.pi / 6, np.pi / 3


def bennett_partner(s: float) -> float:
    ratio = np.sin((BETA + ALPHA) / 2) / np.sin((BETA - ALPHA) / 2)
    return float(2 * np.arctan(ratio / np.tan(s / 2)))


def bennett(s: float, order: tuple[int, ...] = (0, 1, 2, 3)) -> World:
    """Four hinges that by Gruebler's count can not move, with a / sin(alpha) = b / sin(beta).

    Links alternate a, b, a, b with twists alpha, beta; angles of consecutive hinges satisfy
    tan(s / 2) tan(t / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) / 2).
    """
    a = 0.3
    b, t = a * np.sin(BETA) / np.sin(ALPHA), bennett_partner(s)
    turn, point, hinges, ends = np.eye(3), np.zeros(3), [], []
    for angle, length, twist in ((s, a, ALPHA), (t, b, BETA), (-s, a, ALPHA), (-t, b, BETA)):
        hinges.append((point, turn[:, 2]))
        turn = turn @ _matrix(about(Z, angle))
        point = point + length * turn[:, 0]
        turn = turn @ _matrix(about((1.0, 0.0, 0.0), twist))
        ends.append(point)
    assert point == pytest.approx(np.zeros(3), abs=1e-9)  # the loop closes
    world = World(gravity=(0, 0, 0))
    for k, name in enumerate(("one", "two", "three")):  # the fourth link is the ground
        world.body(name, mass=1, inertia=(0.01, 0.012, 0.015), pos=(hinges[k][0] + ends[k]) / 2)
    chain = [None, "one", "two", "three", None]
    for k in order:
        world.hinge(f"h{k}", chain[k], chain[k + 1], at=hinges[k][0], axis=hinges[k][1])
    return world


def _matrix(quat: Any) -> np.ndarray:
    return np.column_stack([rotated(np.array(quat), e) for e in np.eye(3)])


@pytest.mark.parametrize("last", [3, 0, 1])
def test_bennett_linkage_goes_round_and_obeys_its_input_output_equation(last: int) -> None:
    """Three of the five rows are redundant wherever the loop is closed. A torque turns the first link: what it does is
    the energy, and the angle of the next hinge follows from the first. Both together are the whole motion.
    """
    start, torque = 1.0, 2.0
    order = (*(k for k in range(4) if k != last), last)
    tree = compile_tree(bennett(start, order), 1e-3, integrator="rk4")
    one, turned = tree.index("one"), 0.0
    tree.content.motion.wrench[one, 5] = torque
    for _ in range(200):
        assert tree.step(10) == 0
        quat = tree.refresh().quat[one]
        turned += (2 * math.atan2(quat[3], quat[0]) - turned + np.pi) % (2 * np.pi) - np.pi
        assert tree.energy() == pytest.approx(torque * turned, abs=1e-5)
        assert np.abs(tree.content.loop.error).max() < 1e-10
        assert np.count_nonzero(tree.content.loop.order >= 0) == 2
        if last != 1:
            angle = bennett_partner(start) + tree.q[tree.places("h1")[0]]
            assert np.angle(np.exp(1j * (angle - bennett_partner(start + turned)))) == pytest.approx(0, abs=1e-10)
    assert turned > 4 * np.pi


@pytest.mark.parametrize(("integrator", "order"), INTEGRATORS)
def test_order_on_bennett_linkage(integrator: Any, order: int) -> None:
    """Against a run of RK4 with small steps, which keeps the balance of energy and the input-output equation above."""
    ends = []
    for count in (100, 200, 3200):
        way: Any = integrator if count < 3200 else "rk4"
        tree = compile_tree(bennett(1.0), 0.4 / count, integrator=way)
        tree.content.motion.wrench[tree.index("one"), 5] = 2.0
        assert tree.step(count) == 0
        ends.append(np.concatenate([tree.q, tree.qd]))
    errors = [np.abs(end - ends[2]).max() for end in ends[:2]]
    assert order - 0.2 < math.log2(errors[0] / errors[1]) < order + 0.5


def door(hinges: int) -> World:
    """A door of 20 kg on a leaning post, turned out of its lowest place."""
    world = World()
    lean = np.array([0.3, 0.0, 1.0]) / np.linalg.norm([0.3, 0.0, 1.0])
    world.body("door", mass=20, inertia=(7.0, 8.0, 1.1), pos=(0, 0.4, 1.0))
    for k in range(hinges):
        world.hinge(f"hinge {k}", None, "door", at=lean * (0.2 + 0.8 * k), axis=lean)
    return world


@pytest.mark.parametrize(("integrator", "_"), INTEGRATORS)
def test_a_door_with_three_hinges_swings_as_one_with_a_single_hinge(integrator: Any, _: int) -> None:
    """All rows of the other hinges are redundant, though one is at the very place of the first."""
    worlds = [door(1), door(3), door(3)]
    worlds[2].joints["hinge 2"].at = worlds[2].joints["hinge 0"].at
    trees = [compile_tree(world, 1e-3, integrator=integrator) for world in worlds]
    for tree in trees:
        assert tree.step(2000) == 0
        assert tree.q == pytest.approx(trees[0].q, abs=1e-12)
        assert tree.gap() < 1e-12
    assert abs(trees[0].q[0]) > 0.1


def test_parallelogram_with_a_third_bar_moves_on() -> None:
    """Two equal cranks and a coupler move on circles; a third crank in between adds rows that say nothing new."""
    world, length = World(), 0.5
    start = np.array([math.sin(0.7), -math.cos(0.7)]) * length
    for k, x in enumerate((0.0, 0.4, 0.8)):
        foot = np.array([x, 0.0])
        add_link(world, f"bar{k}", foot, foot + start, 1.0)
        world.hinge(f"foot{k}", None, f"bar{k}", at=flat(foot), axis=Y)
    add_link(world, "coupler", start, start + np.array([0.8, 0.0]), 2.0)
    for k, x in enumerate((0.0, 0.4, 0.8)):
        world.hinge(f"top{k}", f"bar{k}", "coupler", at=flat(start + np.array([x, 0.0])), axis=Y)
    swing = (3 * (moment(length, 1.0) + 0.25 * length**2) + 2.0 * length**2) / (3 * 0.5 * length + 2.0 * length)
    period = 4.0 * math.sqrt(swing / G) * float(ellipk(math.sin(0.35) ** 2))
    tree = compile_tree(world, period / 4000, integrator="rk4")
    assert tree.closures == ["top1", "top2"]
    assert tree.step(2000) == 0
    assert tree.q[tree.places("foot0")] == pytest.approx([2 * 0.7], abs=1e-8)


# --- assembling, and what is refused --------------------------------------------------------------


def test_a_loop_that_is_drawn_open_closes() -> None:
    """The rocker's anchor on the ground is 2 cm off: the bars turn until they meet it, lengths unchanged."""
    world, _, _ = four_bar(order=(0, 1, 2))
    post = np.array([D + 0.02, 0.0, 0.01])
    world.joint(
        "foot", None, "rocker", at=post, at_b=(D, 0, 0), axis=Y, locked=(0, 1, 2, 3, 4), turning=Turning.ONE_FREE
    )
    tree = compile_tree(world, 1e-3, integrator="rk4")
    assert tree.gap() < 1e-12
    out = tree.body
    foot = out.pos[2] + rotated(out.quat[2], np.array([-C / 2, 0, 0]))
    assert foot == pytest.approx(post, abs=1e-12)
    assert np.linalg.norm(out.pos[0]) == pytest.approx(A / 2, abs=1e-12)
    assert np.abs(tree.q).max() < 0.2
    assert tree.step(1000) == 0


def test_assemble_brings_coordinates_and_velocities_back() -> None:
    tree = compile_tree(four_bar()[0], 1e-3)
    tree.q[:] += (0.3, -0.1, 0.2)
    tree.qd[:] = (1.0, 2.0, -1.0)
    assert tree.assemble() < 1e-12
    assert np.abs(tree.content.loop.jacobian @ tree.qd).max() < 1e-11
    assert tree.q[0] != 0.0
    assert np.abs(tree.qd).max() > 0.1
    assert tree.step(100) == 0


def _far(w: World) -> None:
    w.joint(
        "far", None, "right", at=(3, 0, 0), at_b=(1, 0, 1), axis=Y, locked=(0, 1, 2, 3, 4), turning=Turning.ONE_FREE
    )


def _tilted(w: World) -> None:
    """A ball can not close a plane chain out of its plane."""
    w.joint("tilted", None, "right", at=(1, 0.1, 1), at_b=(1, 0, 1), locked=(0, 1, 2), turning=Turning.ALL_FREE)


def _torn(w: World) -> None:
    w.hinge("torn", None, "right", at=(1, 0, 1), axis=Y)
    w.bodies["left"].spin = np.array([0, 1.0, 0])
    w.bodies["left"].vel = np.array([-1.0, 0, 0])
    w.bodies["right"].vel = np.array([-1.0, 0, -1.0])


def _odd(w: World) -> None:
    w.joint("odd", None, "right", at=(1, 0, 1), locked=(0, 1, 2, 3), turning=Turning.ONE_FREE)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_far, ["far", "left", "right", "the ground", "can not close", " m"]),
        (_tilted, ["tilted", "0.1 m"]),
        (_torn, ["torn", "left", "right", "m/s"]),
        (_odd, ["odd", "ONE_FREE"]),
    ],
)
def test_refused_with_names(spoil: Callable[[World], None], words: list[str]) -> None:
    world = World()
    world.body("left", pos=(-1, 0, 0))
    world.body("right", pos=(1, 0, 0))
    world.hinge("hip", None, "left", at=(-1, 0, 1), axis=Y)
    world.hinge("knee", "left", "right", at=(0, 0, 0), axis=Y)
    spoil(world)
    with pytest.raises(TreeError) as caught:
        compile_tree(world, 1e-3)
    for word in words:
        assert word in str(caught.value)


def test_status_tells_of_a_loop_that_comes_apart() -> None:
    """A rocker thrown round by a radian in one step leaves Newton's method with no way back."""
    tree = compile_tree(four_bar()[0], 0.5)
    tree.qd[:] = (0.0, 30.0, -60.0)
    assert tree.step() == 2


def test_same_input_same_bits_and_no_allocation() -> None:
    def run() -> bytes:
        tree = compile_tree(bennett(1.0), 1e-3, integrator="rk4")
        tree.content.motion.wrench[0, 5] = 1.0
        tree.step(500)
        return tree.q.tobytes() + tree.qd.tobytes()

    assert run() == run()
    for method in ("aba", "crba"):
        tree = compile_tree(four_bar()[0], 1e-3, method=method)  # type: ignore[arg-type]
        tree.step(1)
        _nrt_python.memsys_enable_stats()
        try:
            before = rtsys.get_allocation_stats()
            run_steps(tree.record.address, 20)
            assert rtsys.get_allocation_stats().alloc == before.alloc
        finally:
            _nrt_python.memsys_disable_stats()
