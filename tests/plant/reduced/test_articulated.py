"""Joint coordinates against closed forms, conservation laws, DOP853 and MuJoCo."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from plant.model import Turning
from plant.reduced.compile import Tree, TreeError, compile_tree, run_steps
from plant.world.rotations import conjugate, product, rotated
from plant.world.world import World

G = 9.80665
Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def pendulum(mass: float = 2.0, arm: float = 0.7, moment: float = 0.05) -> World:
    world = World()
    world.body("rod", mass=mass, inertia=(moment, moment, 0.01), pos=(0, 0, -arm))
    world.hinge("pivot", None, "rod", at=(0, 0, 0), axis=Y)
    return world


def chain(links: int, length: float = 0.2) -> World:
    world, above = World(), None
    for k in range(links):
        name = world.body(f"link{k}", mass=0.5, inertia=(2e-3, 2e-3, 4e-4), pos=(0, 0, -length * (k + 0.5)))
        world.hinge(f"hinge{k}", above, name, at=(0, 0, -length * k), axis=Y)
        above = name
    return world


def released(world: World, q: Any, qd: Any = 0.0, *, dt: float = 1e-3, **options: Any) -> Tree:
    tree = compile_tree(world, dt, **options)
    tree.q[:], tree.qd[:] = q, qd
    tree.restart()
    return tree


# --- closed forms ---------------------------------------------------------------------------------


def test_pendulum_period_is_the_elliptic_integral() -> None:
    mass, arm, moment, start = 2.0, 0.7, 0.05, 2.0
    period = 4.0 * math.sqrt((moment + mass * arm**2) / (mass * G * arm)) * ellipk(math.sin(start / 2) ** 2)
    tree = released(pendulum(mass, arm, moment), start, dt=period / 4000, integrator="rk4")
    assert tree.step(1000) == 0
    assert tree.q[0] == pytest.approx(0.0, abs=1e-9)
    assert tree.step(3000) == 0
    assert tree.q[0] == pytest.approx(start, abs=1e-9)


def test_slider_falls_along_its_axis() -> None:
    slope, h, steps = math.radians(30), 1e-3, 500
    world = World()
    world.body("sledge", mass=3.0, pos=(1, 2, 3))
    world.prismatic("rail", None, "sledge", at=(1, 2, 3), axis=(math.cos(slope), 0, -math.sin(slope)))
    pull, t = G * math.sin(slope), h * steps
    late = 0.5 * pull * t * h  # semi-implicit Euler is ahead by half a step's speed
    for integrator, extra in (("midpoint", 0.0), ("rk4", 0.0), ("euler", late)):
        expected = 0.5 * pull * t**2 + extra
        tree = compile_tree(world, h, integrator=integrator)  # type: ignore[arg-type]
        tree.step(steps)
        assert tree.q[0] == pytest.approx(expected, rel=1e-12)
        assert tree.refresh().pos[0] == pytest.approx(
            [1 + math.cos(slope) * expected, 2, 3 - math.sin(slope) * expected]
        )


def test_fixed_bodies_are_one_link() -> None:
    """Two rods welded at a right angle swing as one body of their common moment and centre of mass."""
    world = World()
    world.body("long", mass=2.0, inertia=(0.2, 0.2, 0.01), pos=(0, 0, -0.5))
    world.body("cross", mass=1.0, inertia=(0.01, 0.1, 0.1), pos=(0.3, 0, -1.0))
    world.hinge("pivot", None, "long", at=(0, 0, 0), axis=Y)
    world.fixed("weld", "long", "cross", at=(0, 0, -1))
    moment = 0.2 + 2.0 * 0.5**2 + 0.1 + 1.0 * (0.3**2 + 1.0**2)
    tree = compile_tree(world, 1e-3)
    assert tree.q.size == 1
    assert tree.qdd[0] == pytest.approx(1.0 * G * 0.3 / moment, rel=1e-12)  # x falls as y turns


def test_symmetric_top_without_forces_precesses_at_eulers_rate() -> None:
    """The spin across the axis turns in body axes at (I3 - I1) / I1 times the spin along it."""
    world = World(gravity=(0, 0, 0))
    world.body("top", mass=1.0, inertia=(0.2, 0.2, 0.3), spin=(1.0, 0.0, 4.0))
    tree = compile_tree(world, 1e-3, integrator="rk4")
    tree.step(2000)
    turn = (0.3 - 0.2) / 0.2 * 4.0 * 2.0
    assert tree.qd[tree.dofs("top")[3:]] == pytest.approx([math.cos(turn), math.sin(turn), 4.0], abs=1e-9)


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_stiff_damping_is_implicit_with_euler(method: Any) -> None:
    """With damping a hundred times what an explicit step bears, each step divides the speed by 1 + h D / I."""
    h, moment, damping = 1e-3, 0.05 + 2.0 * 0.7**2, 1e5
    world = pendulum()
    world.gravity = (0, 0, 0)
    tree = compile_tree(world, h, integrator="euler", method=method)
    tree.qd[0], tree.content.motion.damping[0] = 1.0, damping
    tree.step(2)
    assert tree.qd[0] == pytest.approx((1 + h * damping / moment) ** -2, rel=1e-10)


def test_applied_torque_and_wrench() -> None:
    tree = compile_tree(pendulum(mass=2.0, arm=0.7, moment=0.05), 1e-3)
    tree.content.motion.tau[0] = 3.0
    tree.content.motion.wrench[0] = (5.0, 0, 0, 0, 1.0, 0)
    assert tree.restart()[0] == pytest.approx((3.0 - 5.0 * 0.7 + 1.0) / (0.05 + 2.0 * 0.7**2), rel=1e-12)


# --- other people's solutions ---------------------------------------------------------------------


M1, M2, L1, A1, A2, I1, I2 = 1.0, 0.6, 0.5, 0.25, 0.2, 0.03, 0.01


def double_pendulum() -> World:
    world = World()
    world.body("upper", mass=M1, inertia=(I1, I1, I1), pos=(0, 0, -A1))
    world.body("lower", mass=M2, inertia=(I2, I2, I2), pos=(0, 0, -L1 - A2))
    world.hinge("shoulder", None, "upper", at=(0, 0, 0), axis=Y)
    world.hinge("elbow", "upper", "lower", at=(0, 0, -L1), axis=Y)
    return world


def double_pendulum_reference(q: NDArray[np.float64], end: float, damping: float = 0.0) -> NDArray[np.float64]:
    """q and qd at `end` by DOP853, from Lagrange's equations in the angles against the vertical."""

    def rates(_: float, s: NDArray[np.float64]) -> list[float]:
        a, b, da, db = s
        c, d = M2 * L1 * A2 * math.cos(a - b), M2 * L1 * A2 * math.sin(a - b)
        mass = [[I1 + M1 * A1**2 + M2 * L1**2, c], [c, I2 + M2 * A2**2]]
        force = [-d * db**2 - (M1 * A1 + M2 * L1) * G * math.sin(a), d * da**2 - M2 * G * A2 * math.sin(b)]
        force = [force[0] - damping * (2 * da - db), force[1] - damping * (db - da)]
        return [da, db, *np.linalg.solve(mass, force)]

    s = solve_ivp(rates, (0, end), [q[0], q[0] + q[1], 0, 0], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return np.array([s[0], s[1] - s[0], s[2], s[3] - s[2]])


def test_double_pendulum_follows_dop853() -> None:
    start = np.array([1.2, -0.8])
    tree = released(double_pendulum(), start, dt=2.5e-4, integrator="rk4")
    tree.step(8000)
    assert np.concatenate([tree.q, tree.qd]) == pytest.approx(double_pendulum_reference(start, 2.0), abs=1e-9)


@pytest.mark.parametrize(("integrator", "order", "steps"), [("euler", 1, 800), ("midpoint", 2, 400), ("rk4", 4, 200)])
@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_observed_order_of_convergence(integrator: Any, order: int, steps: int, damping: float) -> None:
    start, end = np.array([0.9, 0.5]), 1.0
    exact = double_pendulum_reference(start, end, damping)

    def error(count: int) -> float:
        tree = compile_tree(double_pendulum(), end / count, integrator=integrator)
        tree.q[:], tree.content.motion.damping[:] = start, damping
        tree.restart()
        tree.step(count)
        return float(np.linalg.norm(np.concatenate([tree.q, tree.qd]) - exact))

    seen = math.log2(error(steps) / error(2 * steps))
    assert order - 0.15 < seen < order + 0.3


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_order_on_rotations(integrator: Any, order: int) -> None:
    """A tumbling free body, against DOP853 of Euler's equations and of the quaternion."""
    moments, spin, end = np.array([0.1, 0.2, 0.25]), np.array([2.0, 0.3, 3.0]), 1.0

    def rates(_: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
        w = s[4:]
        return np.concatenate([0.5 * product(s[:4], np.array([0.0, *w])), np.cross(moments * w, w) / moments])

    start = np.array([1.0, 0, 0, 0, *spin])
    exact = solve_ivp(rates, (0, end), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    world = World(gravity=(0, 0, 0))
    world.body("box", inertia=moments, spin=spin)

    def error(count: int) -> float:
        tree = compile_tree(world, end / count, integrator=integrator)
        tree.step(count)
        return float(np.linalg.norm(np.concatenate([tree.q[3:], tree.qd[3:]]) - exact))

    seen = math.log2(error(100) / error(200))
    assert order - 0.15 < seen < order + 0.6


class Twin:
    """The same random tree as a World and as MJCF, with the joint names in MuJoCo's order."""

    def __init__(self, seed: int, kinds: list[str], fork: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.world = World()
        self.order: list[str] = []
        children: dict[int, list[int]] = {}
        for k in range(len(kinds)):
            parent = -1 if k == 0 else int(self.rng.integers(k)) if self.rng.random() < fork else k - 1
            children.setdefault(parent, []).append(k)
        self.children, self.kinds = children, kinds
        body = "".join(self._body(k, None, np.zeros(3), np.array([1.0, 0, 0, 0])) for k in children[-1])
        self.mjcf = (
            f'<mujoco><compiler angle="radian"/><option gravity="0 0 {-G}"><flag contact="disable"/></option>'
            f"<worldbody>{body}</worldbody></mujoco>"
        )

    def _body(self, k: int, above: str | None, pos: Any, quat: Any) -> str:
        rng, kind, name = self.rng, self.kinds[k], f"body{k}"
        free = kind == "free"
        step, turn = rng.normal(size=3) * 0.2, _unit(rng.normal(size=4))
        pos, quat = pos + rotated(quat, step), product(quat, turn)
        com = np.zeros(3) if free else rng.normal(size=3) * 0.1
        mass, moments = rng.uniform(0.5, 2.0), np.array([1.0, 1.2, 1.5]) * rng.uniform(0.01, 0.05)
        tilt = _unit(rng.normal(size=4))
        axes = np.column_stack([rotated(tilt, e) for e in np.eye(3)])
        self.world.body(name, mass=mass, inertia=axes @ np.diag(moments) @ axes.T, pos=pos, quat=quat, com=com)
        x, z = _unit(rng.normal(size=3)), rng.normal(size=3)
        z = _unit(z - x * (z @ x))
        if kind == "ball":
            x, z = np.array([1.0, 0, 0]), np.array([0.0, 0, 1])  # so that both use the body's axes
        point = rng.normal(size=3) * 0.1
        joints = self._joint(k, kind, above, name, pos + rotated(quat, point), rotated(quat, x), rotated(quat, z))
        y = np.cross(z, x)
        lines = {"x": x, "y": y, "z": z}
        text = "<freejoint/>" if free else ""
        for what, line in joints:
            text += f'<joint type="{what}" axis="{_text(lines[line])}" pos="{_text(point)}"/>'
        inner = "".join(self._body(c, name, pos, quat) for c in self.children.get(k, []))
        return (
            f'<body pos="{_text(step)}" quat="{_text(turn)}">{text}<inertial pos="{_text(com)}" quat="{_text(tilt)}" '
            f'mass="{mass!r}" diaginertia="{_text(moments)}"/>{inner}</body>'
        )

    def _joint(self, k: int, kind: str, above: str | None, name: str, at: Any, x: Any, z: Any) -> list[tuple[str, str]]:
        """Add the joint to the world; MuJoCo's joints that make it up."""
        add: dict[str, tuple[tuple[int, ...], Turning, list[tuple[str, str]]]] = {
            "hinge": ((0, 1, 2, 3, 4), Turning.ONE_FREE, [("hinge", "z")]),
            "prismatic": ((0, 1, 3, 4, 5), Turning.NONE_FREE, [("slide", "z")]),
            "cylindrical": ((0, 1, 3, 4), Turning.ONE_FREE, [("slide", "z"), ("hinge", "z")]),
            "universal": ((0, 1, 2, 3), Turning.TWO_FREE, [("hinge", "x"), ("hinge", "y")]),
            "planar": ((2, 3, 4), Turning.ONE_FREE, [("slide", "x"), ("slide", "y"), ("hinge", "z")]),
            "ball": ((0, 1, 2), Turning.ALL_FREE, [("ball", "z")]),
            "fixed": ((0, 1, 2, 3, 4, 5), Turning.NONE_FREE, []),
        }
        if kind == "free":
            self.order.append(name)
            return []
        locked, turning, joints = add[kind]
        self.world.joint(f"j{k}", above, name, at=at, axis=z, reference=x, locked=locked, turning=turning)
        self.order.append(f"j{k}")
        return joints


def _unit(v: Any) -> Any:
    return v / np.linalg.norm(v)


def _text(v: Any) -> str:
    return " ".join(repr(float(x)) for x in v)


ALL_KINDS = ["hinge", "prismatic", "ball", "universal", "cylindrical", "planar", "fixed", "hinge"]


@pytest.mark.parametrize(
    ("kinds", "fork"),
    [
        (["hinge"] * 12, 0.0),
        (["hinge"] * 30, 0.0),
        (["free"] + ["hinge"] * 9, 0.4),
        (ALL_KINDS * 2, 0.4),
        (["free", *ALL_KINDS], 0.5),
        (["ball", "ball", "planar"], 0.0),
    ],
)
@pytest.mark.parametrize("method", ["aba", "crba"])
def test_accelerations_are_mujocos(kinds: list[str], fork: float, method: Any) -> None:
    mujoco = pytest.importorskip("mujoco")
    twin = Twin(len(kinds), kinds, fork)
    model = mujoco.MjModel.from_xml_string(twin.mjcf)
    data = mujoco.MjData(model)
    tree = compile_tree(twin.world, 1e-3, method=method)
    rng = np.random.default_rng(7)
    places = [i for name in twin.order for i in tree.places(name)]
    dofs = [i for name in twin.order for i in tree.dofs(name)]
    assert (len(places), len(dofs)) == (model.nq, model.nv)
    for _ in range(5):
        data.qpos[:] = rng.normal(size=model.nq)
        data.qvel[:], data.qfrc_applied[:] = rng.normal(size=model.nv), rng.normal(size=model.nv)
        data.xfrc_applied[1:] = rng.normal(size=(model.nbody - 1, 6))
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        tree.q[places], tree.qd[dofs], tree.content.motion.tau[dofs] = data.qpos, data.qvel, data.qfrc_applied
        preorder = [tree.index(f"body{k}") for k in _preorder(twin.children, -1)]
        tree.content.motion.wrench[preorder] = data.xfrc_applied[1:]
        qdd = tree.restart()[dofs]
        assert np.abs(qdd - data.qacc).max() <= 1e-9 * np.abs(data.qacc).max()
        assert tree.refresh().pos[preorder] == pytest.approx(data.xipos[1:], abs=1e-12)
        same = np.abs((tree.body.quat[preorder] * data.xquat[1:]).sum(axis=1))
        assert same == pytest.approx(1.0, abs=1e-12)
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        assert tree.energy() == pytest.approx(data.energy.sum(), rel=1e-10)


def _preorder(children: dict[int, list[int]], k: int) -> list[int]:
    return [n for c in children.get(k, []) for n in (c, *_preorder(children, c))]


def test_euler_is_mujocos_euler() -> None:
    """A hundred steps of a damped chain: the same integrator with the same implicit damping."""
    mujoco = pytest.importorskip("mujoco")
    twin = Twin(3, ["hinge"] * 6, 0.0)
    text = twin.mjcf.replace("<option ", '<option timestep="0.001" integrator="Euler" ')
    model = mujoco.MjModel.from_xml_string(text)
    model.dof_damping[:] = 0.3
    data = mujoco.MjData(model)
    tree = compile_tree(twin.world, 1e-3, integrator="euler")
    tree.content.motion.damping[:] = 0.3
    mujoco.mj_step(model, data, nstep=100)
    tree.step(100)
    assert tree.q == pytest.approx(data.qpos, abs=1e-10)


# --- conservation ---------------------------------------------------------------------------------


def test_free_top_keeps_energy_and_momentum() -> None:
    world = World(gravity=(0, 0, 0))
    world.body(
        "box", mass=2.0, inertia=(0.1, 0.2, 0.25), pos=(1, 2, 3), quat=(1, 2, 3, 4), vel=(1, 0, -1), spin=(0.1, 5, 0.1)
    )
    tree = compile_tree(world, 1e-3, integrator="rk4")
    energy, momentum = tree.energy(), tree.momentum()
    assert energy == pytest.approx(0.5 * 2.0 * 2.0 + _spin_energy(world), rel=1e-12)
    tree.step(5000)
    assert tree.energy() == pytest.approx(energy, rel=1e-10)
    assert tree.momentum() == pytest.approx(momentum, rel=1e-9)


def _spin_energy(world: World) -> float:
    body = world.bodies["box"]
    spin = rotated(conjugate(body.quat), body.spin)
    return float(0.5 * spin @ body.inertia @ spin)


def test_spherical_pendulum_keeps_energy_and_vertical_momentum() -> None:
    world = World()
    world.body("bob", mass=1.5, inertia=(0.02, 0.03, 0.04), pos=(0.6, 0, -0.8), vel=(0.0, 1.2, 0.0), spin=(0, 0, 2.0))
    world.ball("pivot", None, "bob", at=(0, 0, 0))
    tree = compile_tree(world, 1e-3, integrator="rk4")
    energy, upright = tree.energy(), tree.momentum()[5]
    assert upright == pytest.approx(1.5 * 0.6 * 1.2 + 0.04 * 2.0)
    lowest = 0.0
    for _ in range(50):
        assert tree.step(100) == 0
        assert tree.energy() == pytest.approx(energy, rel=1e-8)
        assert tree.momentum()[5] == pytest.approx(upright, rel=1e-8)
        assert np.linalg.norm(tree.body.pos[0]) == pytest.approx(1.0, abs=1e-13)
        lowest = min(lowest, tree.body.pos[0, 2])
    assert lowest < -0.85  # it does swing


def test_floating_chain_keeps_momentum() -> None:
    world = chain(5)
    del world.joints["hinge0"]
    world.gravity = (0, 0, 0)
    tree = compile_tree(world, 1e-3, integrator="rk4", floating=["link0"])
    tree.qd[:] = np.linspace(-3, 2, tree.qd.size)
    energy, momentum = tree.energy(), tree.momentum()
    tree.step(2000)
    assert tree.energy() == pytest.approx(energy, rel=1e-8)
    assert np.abs(tree.momentum() - momentum).max() <= 1e-8 * np.abs(momentum).max()


def test_ten_links_keep_their_energy_for_ten_seconds() -> None:
    tree = released(chain(10), 0.1, integrator="rk4")
    tree_rest = compile_tree(chain(10), 1e-3)
    start = tree.energy()
    assert tree.step(10_000) == 0
    assert abs(tree.energy() - start) <= 1e-6 * (start - tree_rest.energy())


def test_midpoint_does_not_lose_energy_in_the_long_run() -> None:
    tree = released(pendulum(), 1.0, dt=5e-3)
    start, depth = tree.energy(), 2.0 * G * 0.7 * (1 - math.cos(1.0))
    worst = 0.0
    for _ in range(100):
        tree.step(200)
        worst = max(worst, abs(tree.energy() - start))
    assert worst < 2e-4 * depth


# --- one thing in two ways ------------------------------------------------------------------------


def test_both_methods_agree() -> None:
    twin = Twin(5, ["free", *ALL_KINDS, *["hinge"] * 12], 0.3)
    trees = [compile_tree(twin.world, 1e-3, method=m, integrator="euler") for m in ("aba", "crba")]  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    q, (qd, damping) = rng.normal(size=trees[0].q.size), rng.uniform(0, 1, size=(2, trees[0].qd.size))
    for tree in trees:
        tree.q[:], tree.qd[:], tree.content.motion.damping[:] = q, qd, damping
        tree.restart()
    assert np.abs(trees[0].qdd - trees[1].qdd).max() <= 1e-10 * np.abs(trees[0].qdd).max()
    for tree in trees:
        tree.step(3)
    assert trees[0].q == pytest.approx(trees[1].q, abs=1e-10)


MAKERS: dict[str, Callable[[World, str | None, str | None], str]] = {
    "hinge": lambda w, a, b: w.hinge("j", a, b, at=(0, 0, 1), axis=Y),
    "prismatic": lambda w, a, b: w.prismatic("j", a, b, at=(0, 0, 1), axis=(1, 1, 0)),
    "cylindrical": lambda w, a, b: w.cylindrical("j", a, b, at=(0, 0, 1), axis=(1, 1, 0)),
    "planar": lambda w, a, b: w.planar("j", a, b, at=(0, 0, 1), axis=Y),
    "ball": lambda w, a, b: w.ball("j", a, b, at=(0, 0, 1)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_joint_may_be_declared_either_way(kind: str) -> None:
    """Ground to body or body to ground, the body moves the same; its start speed is one that the joint allows."""
    spin = {"prismatic": 0.0 * np.ones(3), "cylindrical": np.array([0.4, 0.4, 0]), "ball": np.array([0.3, 1, 2])}.get(
        kind, np.array([0, 1.3, 0])
    )
    slide = {"hinge": 0.0, "ball": 0.0}.get(kind, 0.5) * np.array([1.0, 0.0 if kind == "planar" else 1.0, 0])
    ends = []
    for ground_first in (True, False):
        world = World()
        at = np.array([0.4, 0, 0.3])
        vel = slide + np.cross(spin, at - [0, 0, 1])
        world.body("arm", mass=2, inertia=(0.1, 0.2, 0.15), pos=at, spin=spin, vel=vel)
        MAKERS[kind](world, *((None, "arm") if ground_first else ("arm", None)))
        tree = compile_tree(world, 1e-3, integrator="rk4")
        assert tree.refresh().vel[0] == pytest.approx(np.concatenate([vel, spin]))
        assert np.abs(tree.qd).max() > 0.1
        tree.step(300)
        out = tree.refresh()
        ends.append(np.concatenate([out.pos[0], out.quat[0], out.vel[0]]))
        if kind == "hinge":  # the angle is that of b seen from a
            turned = 2 * math.atan2(out.quat[0, 2], out.quat[0, 0])
            assert tree.q[0] == pytest.approx(turned if ground_first else -turned)
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_universal_joint_declared_either_way() -> None:
    ends = []
    for ground_first in (True, False):
        world = World()
        world.body("arm", mass=2, inertia=(0.1, 0.2, 0.15), pos=(0.4, 0.5, 0.3))
        a, b, axes = (None, "arm", ((1, 0, 0), Y)) if ground_first else ("arm", None, (Y, (1, 0, 0)))
        world.universal("j", a, b, at=(0, 0, 1), axis_a=axes[0], axis_b=axes[1])
        tree = compile_tree(world, 1e-3, integrator="rk4")
        tree.step(400)
        ends.append(tree.refresh().pos[0].copy())
    assert np.linalg.norm(ends[0] - [0.4, 0.5, 0.3]) > 0.1
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_coordinates_are_those_of_b_seen_from_a() -> None:
    """A plate that is a of a planar joint with the ground: its pose is the inverse of slide (x, y), then turn."""
    x, y, angle = 0.3, -0.2, 0.7
    world = World()
    world.body("plate")
    world.planar("floor", "plate", None, at=(0, 0, 0), axis=Z)
    tree = compile_tree(world, 1e-3)
    tree.q[tree.places("floor")] = x, y, angle
    c, s = math.cos(angle), math.sin(angle)
    out = tree.refresh()
    assert out.pos[0] == pytest.approx([-(c * x + s * y), -(c * y - s * x), 0])
    assert out.quat[0] == pytest.approx([math.cos(angle / 2), 0, 0, -math.sin(angle / 2)])


def test_sliders_may_start_with_their_anchors_apart() -> None:
    world = World()
    world.body("sledge", pos=(0.5, 0, 0))
    world.joint(
        "rail",
        None,
        "sledge",
        at=(0, 0, 0),
        at_b=(0.5, 0, 0),
        axis=(1, 0, 0),
        locked=(0, 1, 3, 4, 5),
        turning=Turning.NONE_FREE,
    )
    tree = compile_tree(world, 1e-3)
    assert tree.q[0] == pytest.approx(0.5)
    assert tree.body.pos[0] == pytest.approx([0.5, 0, 0])


def test_same_input_same_bits_and_no_allocation() -> None:
    def run() -> bytes:
        tree = released(chain(7), 0.3, integrator="rk4")
        tree.step(500)
        return tree.q.tobytes() + tree.qd.tobytes()

    assert run() == run()
    tree = released(chain(7), 0.3, method="crba")
    tree.step(1)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        run_steps(tree.record.address, 20)
        assert rtsys.get_allocation_stats().alloc == before.alloc
    finally:
        _nrt_python.memsys_disable_stats()


def test_status_tells_of_numbers_that_are_not_finite() -> None:
    tree = compile_tree(pendulum(), 1e-3)
    assert tree.step() == 0
    tree.content.motion.tau[0] = math.nan
    assert tree.step() == 1


# --- what is refused ------------------------------------------------------------------------------


def two_arms() -> World:
    world = World()
    world.body("left", pos=(-1, 0, 0))
    world.body("right", pos=(1, 0, 0))
    world.hinge("hip", None, "left", at=(-1, 0, 1), axis=Y)
    return world


def _bad_mass(w: World) -> None:
    w.bodies["left"].mass = -1.0


def _triangle(w: World) -> None:
    w.bodies["right"].inertia = np.diag([1.0, 1.0, 3.0])


def _kinematic(w: World) -> None:
    w.body("belt", kind="kinematic")


def _apart(w: World) -> None:
    w.joint("gap", "left", "right", at=(0, 0, 0), at_b=(0, 0, 0.1), locked=(0, 1, 2), turning=Turning.ALL_FREE)


def _speed(w: World) -> None:
    w.hinge("knee", "left", "right", at=(0, 0, 0), axis=Y)
    w.bodies["right"].spin = np.array([1.0, 0, 0])


def _weightless(w: World) -> None:
    w.body("point", mass=1.0, inertia=(0, 0, 0), pos=(0, 0, -1))
    w.ball("string", None, "point", at=(0, 0, 0))


def _odd(w: World) -> None:
    w.joint("odd", "left", "right", at=(0, 0, 0), locked=(0, 1, 2, 3), turning=Turning.ONE_FREE)


def _ground_only(w: World) -> None:
    w.body("wall", kind="static")
    w.hinge("stuck", None, "wall", at=(0, 0, 0), axis=Y)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_bad_mass, ["left", "-1.0 kg"]),
        (_triangle, ["right", "triangle"]),
        (_kinematic, ["belt", "kinematic"]),
        (_apart, ["gap", "0.1 m"]),
        (_speed, ["right", "knee", "left"]),
        (_weightless, ["string", "no inertia"]),
        (_odd, ["odd", "ONE_FREE"]),
        (_ground_only, ["stuck"]),
    ],
)
def test_refused_with_names(spoil: Callable[[World], None], words: list[str]) -> None:
    world = two_arms()
    spoil(world)
    with pytest.raises(TreeError) as caught:
        compile_tree(world, 1e-3)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"floating": []}, ["right", "ground"]),
        ({"floating": ["rigth"]}, ["rigth", "left, right"]),
        ({"floating": ["left", "right"]}, ["left", "floating"]),
        ({"integrator": "rk5"}, ["rk5", "rk4"]),
        ({"method": "lagrange"}, ["lagrange", "crba"]),
        ({"dt": 0.0}, ["dt 0.0"]),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(TreeError) as caught:
        compile_tree(two_arms(), **{"dt": 1e-3, **options})
    for word in words:
        assert word in str(caught.value)


def test_loose_bodies_float_by_default() -> None:
    tree = compile_tree(two_arms(), 1e-3)
    assert len(tree.dofs("right")) == 6
    tree.step(100)
    assert tree.refresh().pos[tree.index("right")] == pytest.approx([1, 0, -0.5 * G * 0.1**2], abs=1e-12)
