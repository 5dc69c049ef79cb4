"""Every kind of joint: what it locks stays locked under any load, and what it leaves free offers no resistance."""

from collections.abc import Callable

import numpy as np
import pytest
from worlds import about, advance, attitude, compiled, direction, point, push, spin, velocity

from plant.engine.compile import Engine
from plant.world.rotations import conjugate, product
from plant.world.world import World

AT = np.array([0.2, -0.1, 0.3])
X, Y, Z = np.eye(3)
Build = Callable[[World, str | None, str | None], str]

KINDS: dict[str, tuple[Build, tuple[int, ...], tuple[int, ...]]] = {
    # locked and free axes of the joint frame, 0..2 linear and 3..5 turns; in this test its z is the world's z at first
    "hinge": (lambda w, a, b: w.hinge("j", a, b, at=AT, axis=Z), (0, 1, 2, 3, 4), (5,)),
    "ball": (lambda w, a, b: w.ball("j", a, b, at=AT), (0, 1, 2), (3, 4, 5)),
    "prismatic": (lambda w, a, b: w.prismatic("j", a, b, at=AT, axis=Z), (0, 1, 3, 4, 5), (2,)),
    "cylindrical": (lambda w, a, b: w.cylindrical("j", a, b, at=AT, axis=Z), (0, 1, 3, 4), (2, 5)),
    "fixed": (lambda w, a, b: w.fixed("j", a, b, at=AT), (0, 1, 2, 3, 4, 5), ()),
    "planar": (lambda w, a, b: w.planar("j", a, b, at=AT, axis=Z), (2, 3, 4), (0, 1, 5)),
    "point_line": (lambda w, a, b: w.point_line("j", a, b, at=AT, axis=Z), (0, 1), (2, 3, 4, 5)),
    # the frame's z is perpendicular to both axes; x is the axis of a, y that of b
    "universal": (lambda w, a, b: w.universal("j", a, b, at=AT, axis_a=X, axis_b=Y), (0, 1, 2, 5), (3, 4)),
}


def machine(kind: str, *, ground: bool, dt: float = 1e-3, at: tuple[float, ...] = (0, 0, 0)) -> Engine:
    """A body on the ground or on another one, away from the origin and not aligned with the world axes."""
    world = World(gravity=(0, 0, 0))
    if not ground:
        world.body("a", mass=3, inertia=(0.4, 0.5, 0.6), pos=AT - (0.3, 0.1, 0.2), quat=(0.7, 0.1, -0.5, 0.2))
    world.body("b", mass=2, inertia=(0.2, 0.3, 0.25), pos=at, quat=(0.9, 0.3, 0.1, -0.2))
    KINDS[kind][0](world, None if ground else "a", "b")
    return compiled(world, dt)


def anchor_and_frames(engine: Engine) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Anchors of a and b, and the axes of both joint frames as columns, from the poses alone."""
    j, s = engine.content.model.joint, engine.content.data.state
    anchors, frames = [], []
    for body, p, q in ((j.a[0], j.pa[0], j.qa[0]), (j.b[0], j.pb[0], j.qb[0])):
        if body < 0:
            anchors.append(p)
            frames.append(matrix(q))
        else:
            anchors.append(s.pos[body] + matrix(s.quat[body]) @ p)
            frames.append(matrix(product(s.quat[body], q)))
    return anchors[0], anchors[1], frames[0], frames[1]


def matrix(q: np.ndarray) -> np.ndarray:
    w, v = q[0], q[1:]
    skew = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * skew + 2 * skew @ skew


def violations(engine: Engine, kind: str) -> tuple[float, float]:
    """Largest gap [m] and largest misalignment [rad] of what is locked."""
    pa, pb, fa, fb = anchor_and_frames(engine)
    locked = KINDS[kind][1]
    slide = fa.T @ (pb - pa)
    gap = max([abs(slide[k]) for k in locked if k < 3], default=0.0)
    turn = fa.T @ fb
    wrong = {
        "hinge": abs(turn[:2, 2]).max(),
        "cylindrical": abs(turn[:2, 2]).max(),
        "planar": abs(turn[:2, 2]).max(),
        "prismatic": abs(turn - np.eye(3)).max(),
        "fixed": abs(turn - np.eye(3)).max(),
        "universal": abs(turn[0, 1]),
    }.get(kind, 0.0)
    return float(gap), float(wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ground", [True, False])
def test_what_is_locked_stays_locked_under_random_loads(kind: str, ground: bool) -> None:
    """Half a second of forces of about 30 N and torques of about 5 N m that change every 10 ms."""
    engine = machine(kind, ground=ground)
    rng = np.random.default_rng(7)
    worst = np.zeros(2)
    for _ in range(50):
        for body in engine.names:
            push(engine, body, tuple(rng.normal(size=3) * 30), tuple(rng.normal(size=3) * 5))
        advance(engine, 0.01)
        worst = np.maximum(worst, violations(engine, kind))
    assert worst[0] < 2e-5
    assert worst[1] < 2e-4
    if kind != "fixed" or not ground:
        assert max(np.linalg.norm(spin(engine, "b")), np.linalg.norm(velocity(engine, "b"))) > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_momentum_of_two_jointed_bodies_is_kept(kind: str) -> None:
    """Joints are internal: linear momentum to rounding; angular momentum about the origin to the order of the step."""
    engine = machine(kind, ground=False, at=tuple(AT + np.array([0.1, 0.2, -0.1])))
    rng = np.random.default_rng(3)
    s, m = engine.content.data.state, engine.content.model.body
    for body in engine.names:
        push(engine, body, tuple(rng.normal(size=3) * 30), tuple(rng.normal(size=3) * 5))
    advance(engine, 0.1)
    s.wrench[:] = 0

    def momenta() -> tuple[np.ndarray, np.ndarray]:
        linear, angular = np.zeros(3), np.zeros(3)
        for b in range(2):
            r = matrix(s.quat[b])
            linear += m.mass[b] * s.vel[b, :3]
            angular += r @ m.inertia[b] @ r.T @ s.vel[b, 3:] + m.mass[b] * np.cross(s.pos[b], s.vel[b, :3])
        return linear, angular

    linear, angular = momenta()
    advance(engine, 0.5)
    assert momenta()[0] == pytest.approx(linear, rel=1e-9, abs=1e-9)
    assert momenta()[1] == pytest.approx(angular, rel=5e-5, abs=5e-5)


@pytest.mark.parametrize(
    ("kind", "axis"), [(kind, axis) for kind, (_, _, free) in KINDS.items() for axis in free if axis < 3]
)
def test_a_free_slide_offers_no_resistance(kind: str, axis: int) -> None:
    """Pushed through the centre of mass along the free axis, the body moves as if alone: x = F t^2 / 2 m."""
    engine = machine(kind, ground=True, at=tuple(AT))
    force = np.zeros(3)
    force[axis] = 5.0
    push(engine, "b", tuple(force))
    advance(engine, 0.4)
    assert velocity(engine, "b") == pytest.approx(force / 2 * 0.4, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "axis"), [(kind, axis) for kind, (_, _, free) in KINDS.items() for axis in free if axis >= 3]
)
def test_a_free_turn_offers_no_resistance(kind: str, axis: int) -> None:
    """A body whose centre lies in the joint and whose inertia is round gains torque times time over inertia."""
    world = World(gravity=(0, 0, 0))
    world.body("b", mass=2, inertia=(0.3, 0.3, 0.3), pos=AT, quat=(0.9, 0.3, 0.1, -0.2))
    KINDS[kind][0](world, None, "b")
    engine = compiled(world)
    torque = np.zeros(3)
    torque[axis - 3] = 0.2
    push(engine, "b", torque=tuple(torque))
    advance(engine, 0.4)
    assert spin(engine, "b") == pytest.approx(torque / 0.3 * 0.4, abs=1e-9)


@pytest.mark.parametrize(("kind", "axis"), [(kind, axis) for kind, (_, locked, _) in KINDS.items() for axis in locked])
def test_a_locked_axis_holds(kind: str, axis: int) -> None:
    """The same push along a locked axis moves nothing."""
    world = World(gravity=(0, 0, 0))
    world.body("b", mass=2, inertia=(0.3, 0.3, 0.3), pos=AT, quat=(0.9, 0.3, 0.1, -0.2))
    KINDS[kind][0](world, None, "b")
    engine = compiled(world)
    load = np.zeros(6)
    load[axis] = 5.0
    push(engine, "b", tuple(load[:3]), tuple(load[3:]))
    before = attitude(engine, "b")
    advance(engine, 0.4)
    assert engine.position("b") == pytest.approx(AT, abs=1e-8)
    assert attitude(engine, "b") == pytest.approx(before, abs=1e-8)


def test_universal_joint_passes_speed_on_with_cardan_error() -> None:
    """Two shafts at an angle d: tan(out) = tan(in) cos(d), the driving yoke's pin being perpendicular to the shafts'
    plane at in = 0.
    """
    bend = np.radians(35)
    world = World(gravity=(0, 0, 0))
    out = np.array([np.cos(bend), np.sin(bend), 0.0])
    world.body("in", mass=1, inertia=(0.02, 0.05, 0.05), pos=(-0.3, 0, 0), spin=(3.0, 0, 0))
    world.body("out", mass=1, inertia=(0.02, 0.05, 0.05), pos=0.3 * out, quat=about((0, 0, 1), bend))
    world.hinge("bearing in", None, "in", at=(-0.5, 0, 0), axis=X)
    world.hinge("bearing out", None, "out", at=0.5 * out, axis=out)
    # pin of `in` along z: perpendicular to both shafts; pin of `out` perpendicular to it and to the out shaft
    world.universal("cross", "in", "out", at=(0, 0, 0), axis_a=Z, axis_b=np.cross(Z, out))
    world.motor("drive", "bearing in", speed=3.0)
    engine = compiled(world, 5e-4)
    for _ in range(40):
        advance(engine, 0.05)
        pin = direction(engine, "in", (0, 0, 1))
        turn_in = np.arctan2(-pin[1], pin[2])
        other = direction(engine, "out", (0, 0, 1))
        turn_out = np.arctan2(-other @ np.cross(Z, out), other[2])
        expected = np.arctan2(np.sin(turn_in) * np.cos(bend), np.cos(turn_in))
        assert np.angle(np.exp(1j * (turn_out - expected))) == pytest.approx(0, abs=1e-4)


def test_a_point_stays_on_the_line_of_a_moving_body() -> None:
    """The line turns with a: a bead is thrown out along a rod that turns at constant speed: r = r0 cosh(w t)."""
    world = World(gravity=(0, 0, 0))
    rate, r0 = 3.0, 0.1
    world.body("rod", kind="kinematic", spin=(0, 0, rate))
    world.body("bead", mass=0.5, inertia=(1e-4,) * 3, pos=(r0, 0, 0), vel=(0, rate * r0, 0))
    world.point_line("on", "rod", "bead", at=(r0, 0, 0), axis=X)
    engine = advance(compiled(world, 2e-4), 0.7)
    where = point(engine, "bead", (0, 0, 0))
    assert np.linalg.norm(where) == pytest.approx(r0 * np.cosh(rate * 0.7), rel=2e-3)
    assert where @ direction(engine, "rod", (0, 1, 0)) == pytest.approx(0, abs=1e-5)


def test_relative_attitude_of_a_fixed_joint_is_kept_over_full_turns() -> None:
    """Two bodies welded tumble together: the sign of the quaternion may change, the joint must not notice."""
    world = World(gravity=(0, 0, 0))
    world.body("a", mass=1, inertia=(0.1, 0.2, 0.25), spin=(9, 5, -7))
    world.body(
        "b", mass=1, inertia=(0.1, 0.2, 0.25), pos=(0.2, 0, 0), vel=np.cross((9, 5, -7), (0.2, 0, 0)), spin=(9, 5, -7)
    )
    world.fixed("weld", "a", "b", at=(0.1, 0, 0))
    engine = advance(compiled(world), 5.0)
    apart = product(conjugate(attitude(engine, "a")), attitude(engine, "b"))
    assert abs(apart[0]) == pytest.approx(1, abs=1e-7)
    assert engine.gap() < 1e-5
