"""The solvers of a step: the direct one against the rules of complementarity and bounded least squares of scipy, the
others against the direct one, and all of them against Coulomb's law.

A step finds impulses x of all rows, joints and bounded rows alike, such that

    w = A x - b,   A = G M^-1 G' + S,   b = rhs - G M^-1 p        w = 0 between the bounds, >= 0 at low, <= 0 at high

which is also the minimum of x' A x / 2 - b' x within the bounds. Both are built densely here from what the step left.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from worlds import G, about, advance, box, centre, push, rows_of, velocity

from plant.engine.compile import Engine, compile_world
from plant.model import Bound, Status
from plant.solver.direct import SHARE
from plant.world.world import World

SOLVERS = ["direct", "iterative", "gradient", "split"]
TANGENT, CONTACT = Bound.TANGENT, Bound.CONTACT


class Dense:
    """One step of an engine, and the dense problem that it had to solve."""

    def __init__(self, engine: Engine) -> None:
        m, d = engine.content.model, engine.content.data
        self.h = m.setup.h
        nb = len(engine.names)
        inertia = d.frame.inertia.copy()
        joints = self._joint_rows(engine)
        assert engine.step() == 0
        self.mass = np.zeros((6 * nb, 6 * nb))
        self.momentum = d.frame.momentum.ravel().copy()
        self.velocity = d.state.vel.copy()
        for b in range(nb):
            k = 6 * b
            self.mass[k : k + 3, k : k + 3] = np.eye(3) * m.body.mass[b]
            self.mass[k + 3 : k + 6, k + 3 : k + 6] = inertia[b]
            # the step keeps angular momentum while the body turns: back to what the solve found
            self.velocity[b, 3:] = np.linalg.solve(inertia[b], d.frame.inertia[b] @ d.state.vel[b, 3:])
        rows = d.bounded
        n = int(rows.count[0])
        g = np.zeros((n, nb, 6))
        for k in range(n):
            for body, part in ((rows.a[k], rows.ga[k]), (rows.b[k], rows.gb[k])):
                if body >= 0:
                    g[k, body] += part
        soft = np.array([SHARE if d.graph.strained[i] and rigid else 1.0 for i, rigid in joints[3]])
        self.g = np.concatenate([joints[0], g.reshape(n, -1)])
        self.rhs = np.concatenate([joints[1], rows.rhs[:n]])
        self.sigma = np.concatenate([joints[2] * soft, rows.sigma[:n]])
        free = np.full(len(joints[1]), np.inf)
        self.low, self.high = np.concatenate([-free, rows.low[:n]]), np.concatenate([free, rows.high[:n]])
        self.found = np.concatenate([d.row.force[m.joint.axis >= 0] * self.h, rows.value[:n]])
        self.kind = np.concatenate([np.full(len(free), Bound.LOCK), rows.kind[:n]])
        back = np.linalg.solve(self.mass, self.g.T)
        self.a = self.g @ back + np.diag(self.sigma)
        self.b = self.rhs - back.T @ self.momentum

    @staticmethod
    def _joint_rows(engine: Engine) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[tuple[int, bool]]]:
        """Locked rows as the step before has left them at the poses of now: G, rhs, sigma; island and rigid."""
        m, d, h = engine.content.model, engine.content.data, engine.content.model.setup.h
        rows, right, sigma, flags = [], [], [], []
        for j in range(len(m.joint.a)):
            for i in np.flatnonzero(m.joint.axis[j] >= 0):
                row = np.zeros((len(engine.names), 6))
                for body, g in ((m.joint.a[j], d.row.ga[j, i]), (m.joint.b[j], d.row.gb[j, i])):
                    if body >= 0:
                        row[body] += g
                y, bend = m.joint.upsilon[j, i], 0.5 * h * d.row.g_ddot[j, i]
                right.append(-4 / h * y * d.row.error[j, i] + y * ((row * d.state.vel).sum() - bend) - bend)
                rows.append(row.ravel())
                sigma.append(m.joint.sigma[j, i])
                flags.append((int(d.graph.island[max(m.joint.a[j], m.joint.b[j])]), bool(m.joint.rigid[j])))
        return np.array(rows).reshape(-1, 6 * len(engine.names)), np.array(right), np.array(sigma), flags

    def check(self, tolerance: float, scipys: float | None = None) -> None:
        """All that must hold, as shares of the largest impulse and the largest speed; `scipys` is how exact it is."""
        self.check_rules(tolerance)
        self.check_least_squares(scipys or tolerance)
        v = np.linalg.solve(self.mass, self.momentum + self.g.T @ self.found)
        assert self.velocity.ravel() == pytest.approx(v, rel=0, abs=tolerance * max(1.0, np.abs(v).max()))

    def check_rules(self, tolerance: float) -> None:
        """Impulses within their bounds, and speeds of the right sign at them: the projection of a step along -w, each
        row in its own scale, leads back to where it began.
        """
        w = self.a @ self.found - self.b
        back = np.clip(self.found - w / np.diag(self.a), self.low, self.high)
        assert self.found == pytest.approx(back, rel=0, abs=tolerance * np.abs(self.found).max())

    def check_least_squares(self, tolerance: float) -> None:
        """min |L' x - L^-1 b|^2 for A = L L', by scipy; rows with equal bounds have nothing to find, and locked
        ones are eliminated first.

        Rows that are nearly the same (a motor and a limit of one hinge) share their impulse by rounding, so what is
        compared is the minimum, and the velocities there.
        """
        locked = np.isinf(self.low) & np.isinf(self.high)
        open_ = (self.low < self.high) & ~locked
        x = np.where(open_ | locked, 0.0, self.low)
        b = self.b - self.a @ x
        through = np.linalg.solve(self.a[np.ix_(locked, locked)], self.a[np.ix_(locked, open_)])
        schur = self.a[np.ix_(open_, open_)] - self.a[np.ix_(open_, locked)] @ through
        scale = 1 / np.sqrt(np.diag(schur))
        chol = np.linalg.cholesky(schur * np.outer(scale, scale))
        right = np.linalg.solve(chol, scale * (b[open_] - through.T @ b[locked]))
        bounds = self.low[open_] / scale, self.high[open_] / scale
        best = lsq_linear(chol.T, right, bounds, method="bvls", tol=1e-300, max_iter=5000)  # as far as it gets
        assert best.success
        x[open_] = scale * best.x
        x[locked] = np.linalg.solve(self.a[np.ix_(locked, locked)], b[locked]) - through @ x[open_]
        assert self.potential(self.found) <= self.potential(x) + tolerance * abs(self.potential(x))
        v = np.linalg.solve(self.mass, self.momentum + self.g.T @ x)
        assert self.velocity.ravel() == pytest.approx(v, rel=0, abs=tolerance * max(1.0, np.abs(v).max()))

    def potential(self, x: np.ndarray) -> float:
        return float(0.5 * x @ self.a @ x - self.b @ x)


def ground(**material: float) -> World:
    world = World()
    world.plane()
    world.material("default", "default", **material)
    return world


def stack(**options: object) -> Engine:
    """Three boxes one on the other, not quite centred; the lowest is pushed, so that all of them want to slide."""
    world = ground(friction=0.4)
    for k, x in enumerate((0.0, 0.06, -0.05)):
        box(world, f"box {k}", 0.5, 10 - 3 * k, (x, 0.02 * k, 0.25 + 0.5 * k))
    return compile_world(world, 1e-3, solver="direct", **options)  # type: ignore[arg-type]


def tumbling(seed: int) -> Engine:
    """Four boxes thrown on each other and on the ground."""
    rng = np.random.default_rng(seed)
    world = ground(friction=0.6)
    for k in range(4):
        box(
            world,
            f"box {k}",
            0.4,
            rng.uniform(2, 20),
            (0.15 * k, 0.1 * (k % 2), 0.22 + 0.42 * k),
            vel=rng.normal(size=3) * 0.5,
            spin=rng.normal(size=3),
        )
    return compile_world(world, 1e-3, solver="direct")


def digger() -> Engine:
    """An arm of two links with a motor that is too weak, dry friction, and a limit; its tip scrapes the ground, where
    a box lies in its way.
    """
    world = ground(friction=0.1)
    world.body("upper", mass=20, inertia=(0.1, 1.0, 1.0), pos=(0.5, 0, 1))
    world.body("lower", mass=10, inertia=(0.1, 0.8, 0.8), pos=(1.0, 0, 0.55), quat=about((0, 1, 0), np.pi / 2))
    world.sphere("lower", centre=(0.5, 0, 0), radius=0.05)
    world.hinge("shoulder", None, "upper", at=(0, 0, 1), axis=(0, 1, 0))
    world.hinge("elbow", "upper", "lower", at=(1, 0, 1), axis=(0, 1, 0))
    world.motor("drive", "elbow", speed=-1.0, force=60)
    world.friction("drag", "shoulder", force=2)
    world.limit("stop", "elbow", low=-0.12, high=0.4)
    box(world, "box", 0.3, 4, (1.22, 0.02, 0.15))
    return compile_world(world, 1e-3, solver="direct")


def test_a_stack_at_rest_solves_its_complementarity_problem() -> None:
    """Thirty-six rows, all of them free."""
    engine = stack()
    assert engine.step(20) == 0
    problem = Dense(engine)
    assert np.isin(problem.kind, (CONTACT, TANGENT)).all()
    assert len(problem.found) == 36
    problem.check(1e-9)


@pytest.mark.parametrize("steps", [1, 5, 50, 200])
def test_a_stack_that_is_pushed_solves_its_complementarity_problem(steps: int) -> None:
    """The friction of the lowest box is at its bounds, that of the others follows."""
    engine = advance(stack(), 0.04)
    push(engine, "box 0", (120, 30, 0))
    assert engine.step(steps) == 0
    problem = Dense(engine)
    assert (problem.found[problem.kind == TANGENT] <= problem.low[problem.kind == TANGENT]).sum() >= 4
    problem.check(1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_boxes_that_tumble_over_each_other_solve_their_complementarity_problems(seed: int) -> None:
    """Contacts that open and close, stick and slip."""
    engine = tumbling(seed)
    states = set()
    for _ in range(10):
        assert engine.step(40) == 0
        problem = Dense(engine)
        if (problem.high > 0).any() and np.abs(problem.found).max() > 0:
            problem.check(1e-4)
        states |= set(engine.content.data.bounded.state[: engine.content.data.bounded.count[0]].tolist())
    assert states == {-1, 0, 1}
    assert engine.content.data.status[Status.FALLBACKS] == 0


def test_an_arm_with_motor_limit_and_contacts_solves_its_complementarity_problem() -> None:
    """The motor is at its bound on the way to the limit, then both hold; the tip scrapes over the ground."""
    engine = digger()
    kinds = set()
    for steps in (5, 5, 10, 20, 40, 40, 80, 200):
        assert engine.step(steps) == 0
        problem = Dense(engine)
        problem.check(1e-8, scipys=1e-5)
        kinds |= set(problem.kind.tolist())
    assert kinds == {Bound.MOTOR, Bound.LIMIT, Bound.FRICTION, Bound.LOCK, Bound.CONTACT, Bound.TANGENT}
    assert engine.content.data.status[Status.FALLBACKS] == 0


LOST = "contact rows are eliminated before the bodies: what their stiffness exceeds the masses by costs digits "


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(3, marks=pytest.mark.xfail(strict=True, reason=LOST))])
def test_rubbing_bodies_are_solved_as_exactly_as_a_dense_solve_does(seed: int) -> None:
    """The matrix of the velocities has a condition of some 1e7, so nine digits are there to be had."""
    engine = advance(tumbling(seed), 0.15)
    Dense(engine).check(1e-9)


@pytest.mark.xfail(strict=True, reason=LOST)
def test_bodies_that_rub_on_each_other_in_free_space_keep_their_momentum() -> None:
    """Nothing acts from outside: pressed together by equal forces and twisted by equal torques, two boxes exchange
    impulses, and the sum of their momenta stays zero to rounding.
    """
    engine = pressed_boxes()
    advance(engine, 0.5)
    momentum = 3 * velocity(engine, "one") + 5 * velocity(engine, "other")
    assert np.abs(velocity(engine, "one")).max() > 1e-3
    assert np.abs(momentum).max() < 1e-11


def pressed_boxes() -> Engine:
    world = World(gravity=(0, 0, 0))
    world.material("default", "default", friction=0.3)
    box(world, "one", 0.4, 3, (0, 0, 0.2), vel=(0.5, 0, 0))
    box(world, "other", 0.4, 5, (0.1, 0, 0.6), vel=(-0.3, 0, 0))
    engine = compile_world(world, 1e-3, solver="direct")
    push(engine, "one", (0, 0, 40), (0, 0, 0.8))
    push(engine, "other", (0, 0, -40), (0, 0, -0.8))
    return engine


def sliding(solver: str) -> Engine:
    world = ground(friction=0.4)
    box(world, "box", 0.5, 8, (0, 0, 0.25), vel=(1.2, 0.9, 0))
    return compile_world(world, 1e-3, solver=solver)


def tower(solver: str) -> Engine:
    world = ground(friction=0.4)
    for k in range(3):
        box(world, f"box {k}", 0.5, 5, (0, 0, 0.25 + 0.5 * k))
    return compile_world(world, 1e-3, solver=solver)


def kneeling(solver: str) -> Engine:
    """A horizontal link on the ground and a vertical one hinged to it that stands on its round foot."""
    world = ground(friction=0.5)
    world.body("upper", mass=20, inertia=(0.1, 1.0, 1.0), pos=(0.5, 0, 1))
    world.body("lower", mass=10, inertia=(0.1, 0.8, 0.8), pos=(1.0, 0, 0.55), quat=about((0, 1, 0), np.pi / 2))
    world.sphere("lower", centre=(0.5, 0, 0), radius=0.05)
    world.hinge("shoulder", None, "upper", at=(0, 0, 1), axis=(0, 1, 0))
    world.hinge("elbow", "upper", "lower", at=(1, 0, 1), axis=(0, 1, 0))
    return compile_world(world, 1e-3, solver=solver, sweeps=500)


def normal_force(engine: Engine) -> float:
    rows, h = engine.content.data.bounded, engine.content.model.setup.h
    return float(sum(rows.value[k] for k in rows_of(engine, CONTACT)) / h)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sliding_box_slows_down_by_coulombs_law(solver: str) -> None:
    """1.5 m/s along (4, 3) / 5, then mu g for 0.3 s; it stops after v^2 / (2 mu g), less half a step of travel."""
    engine = advance(sliding(solver), 0.3)
    speed = 1.5 - 0.4 * G * 0.3
    assert velocity(engine, "box")[:2] == pytest.approx([0.8 * speed, 0.6 * speed], rel=2e-4)
    advance(engine, 0.3)
    way = 1.5**2 / (2 * 0.4 * G)
    assert np.abs(velocity(engine, "box")).max() < 1e-6
    assert centre(engine, "box")[:2] == pytest.approx([0.8 * way, 0.6 * way], abs=1.5 * 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tower_stands_and_bears_its_weights(solver: str) -> None:
    """Three boxes of 5 kg for a second: the lowest joint bears three weights, the next two, the last one."""
    engine = advance(tower(solver), 1.0)
    rows, h = engine.content.data.bounded, engine.content.model.setup.h
    borne = np.zeros(3)
    for k in rows_of(engine, CONTACT):
        a, b = rows.a[k], rows.b[k]
        borne[max(a, b)] += rows.value[k] / h
    assert borne == pytest.approx(5 * G * np.array([3, 2, 1]), rel=1e-5)
    for k in range(3):
        assert centre(engine, f"box {k}") == pytest.approx([0, 0, 0.25 + 0.5 * k], abs=2e-6)
        assert np.abs(velocity(engine, f"box {k}")).max() < 1e-7


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kneeling_arm_stands_on_its_foot(solver: str) -> None:
    """Moments about the shoulder and the elbow: the foot bears the lower link and half of the upper one."""
    engine = advance(kneeling(solver), 0.3)
    assert normal_force(engine) == pytest.approx((10 + 20 / 2) * G, rel=1e-4)
    assert np.linalg.norm(engine.reaction("shoulder")[:3]) == pytest.approx(20 / 2 * G, rel=1e-4)
    assert centre(engine, "lower") == pytest.approx([1, 0, 0.55], abs=1e-5)


@pytest.mark.parametrize("solver", SOLVERS[1:])
@pytest.mark.parametrize("world", [sliding, tower, kneeling])
def test_the_other_solvers_agree_with_the_direct_one(world: Callable[[str], Engine], solver: str) -> None:
    """Friction is a box along the slip in one and a disc in the others: the same where a body slides straight."""
    one, other = world("direct"), world(solver)
    for _ in range(10):
        advance(one, 0.03)
        advance(other, 0.03)
        assert other.content.data.state.vel == pytest.approx(one.content.data.state.vel, abs=5e-5)
        assert other.content.data.state.pos == pytest.approx(one.content.data.state.pos, abs=1e-5)


@pytest.mark.parametrize("build", [stack, digger, lambda: tumbling(0), lambda: tower("direct"), pressed_boxes])
def test_the_direct_solver_needs_no_help(build: Callable[[], Engine]) -> None:
    """Block pivoting ends by itself in ordinary scenes, whatever happens in them for a second."""
    engine = advance(build(), 1.0)
    assert engine.content.data.status[Status.FALLBACKS] == 0
    assert (engine.content.data.graph.solver[: engine.content.data.graph.islands[0]] == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("build", [sliding, tower, kneeling])
def test_the_same_world_gives_the_same_bits(build: Callable[[str], Engine], solver: str) -> None:
    def fingerprint() -> bytes:
        d = advance(build(solver), 0.2).content.data
        return b"".join(a.tobytes() for a in (d.state.pos, d.state.quat, d.state.vel, d.bounded.value, d.row.force))

    assert fingerprint() == fingerprint()
