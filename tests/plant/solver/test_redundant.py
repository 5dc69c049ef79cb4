"""More supports than statics needs: linkages that move against Gruebler's count, and loads that are shared by
stiffness.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from worlds import G, advance, angle, centre, compiled, orders, push, reaction, rows_of, spin, velocity

from plant.engine.compile import Engine
from plant.model import Bound, Turning
from plant.world.rotations import quaternion
from plant.world.world import World

Vector = NDArray[np.float64]

# Bricard's orthogonal linkage -----------------------------------------------------------------------------------------

LINK = 0.3  # [m] all six alike
TWISTS = (np.pi / 2, -np.pi / 2) * 3
LINKS = ("one", "two", "three", "four", "five")  # the sixth is the ground, between the last hinge and the first
MASS, MOMENTS = 1.2, np.array([0.004, 0.012, 0.015])


def screw_step(turn: float, twist: float) -> Vector:
    """Denavit and Hartenberg: a turn about z, a link along x, a twist about x."""
    c, s, p, q = np.cos(turn), np.sin(turn), np.cos(twist), np.sin(twist)
    return np.array([[c, -s * p, s * q, LINK * c], [s, c * p, -c * q, LINK * s], [0, q, p, 0], [0, 0, 0, 1]])


def bricard_partner(s: float) -> float:
    """Hinges one, three and five turn by s, the other three by t: cos s + cos t + cos s cos t = 0.

    Ref: Bricard 1897; Chen, You and Tarnai, Int. J. Solids Structures 42 (2005) 2287, eq. 8 with twists of a right
    angle.
    """
    return float(np.arccos(-np.cos(s) / (1 + np.cos(s))))


def bricard_frames(s: float) -> list[Vector]:
    """Frames of the six hinges, and the first again."""
    frames, t = [np.eye(4)], bricard_partner(s)
    for k in range(6):
        frames.append(frames[-1] @ screw_step(s if k % 2 == 0 else t, TWISTS[k]))
    return frames


def bricard_poses(s: float) -> list[tuple[Vector, Vector]]:
    """Centre and axes of the five links that move: half-way between their hinges, turned as the hinge at their end."""
    f = bricard_frames(s)
    return [((f[k][:3, 3] + f[k + 1][:3, 3]) / 2, f[k + 1][:3, :3]) for k in range(5)]


def bricard(dt: float, s: float) -> Engine:
    world = World(gravity=(0, 0, 0))
    for name, (place, axes) in zip(LINKS, bricard_poses(s), strict=True):
        world.body(name, mass=MASS, inertia=MOMENTS, pos=place, quat=quaternion(axes))
    chain = [None, *LINKS, None]
    for k, frame in enumerate(bricard_frames(s)[:6]):
        world.hinge(f"hinge {k}", chain[k], chain[k + 1], at=frame[:3, 3], axis=frame[:3, 2])
    return compiled(world, dt)


def bricard_inertia(s: float, d: float = 1e-4) -> float:
    """Twice the kinetic energy over the square of the rate of s."""
    total = 0.0
    for (p0, r0), (p1, r1), (_, r) in zip(bricard_poses(s - d), bricard_poses(s + d), bricard_poses(s), strict=True):
        rate = r.T @ (r1 - r0) / (2 * d)  # skew: angular velocity in body axes
        w = np.array([rate[2, 1] - rate[1, 2], rate[0, 2] - rate[2, 0], rate[1, 0] - rate[0, 1]]) / 2
        total += MASS * float(((p1 - p0) / (2 * d)) @ ((p1 - p0) / (2 * d))) + float(MOMENTS @ w**2)
    return total


def test_bricard_linkage_closes_for_every_angle() -> None:
    """The closed form against the product of the six screws."""
    for s in np.linspace(-2.0, 2.0, 21):
        assert bricard_frames(float(s))[6] == pytest.approx(np.eye(4), abs=1e-12)


def test_bricard_linkage_goes_round_and_obeys_its_closed_form() -> None:
    """Thirty constraints on thirty freedoms, and yet it moves: pushed at its first link, it turns inside out and comes
    round. Three hinges turn alike, the three between them too, and both are bound by one equation.
    """
    start = np.pi / 2
    engine = bricard(1e-3, start)
    rates, swing, gap = [], [], 0.0
    for _ in range(600):
        w = spin(engine, "one")[2]
        push(engine, "one", torque=(0, 0, 0.2 * (1 if w >= 0 else -1) - 0.02 * w))
        advance(engine, 0.02)
        turns = np.array([angle(engine, f"hinge {k}") for k in range(6)]) + start
        s, t = turns[0::2], turns[1::2]
        assert np.ptp(s) < 1e-4
        assert np.ptp(t) < 1e-4
        assert np.cos(s[0]) + np.cos(t[0]) + np.cos(s[0]) * np.cos(t[0]) == pytest.approx(0, abs=1e-4)
        gap = max(gap, engine.gap())
        rates.append(w)
        swing.append(turns[:2])
    assert gap < 1e-5
    assert np.ptp(np.array(swing), axis=0).min() > 4.0  # of 4 pi / 3: both kinds of hinges through their range
    assert min(rates) < -0.5
    assert max(rates) > 0.5


def test_bricard_linkage_has_one_freedom_and_its_inertia() -> None:
    """A torque on the first hinge, against Lagrange's equation for the one coordinate: A s'' + A' s'^2 / 2 = T."""
    start, torque, seconds, d = 1.6, -1.5, 0.5, 1e-3

    def rates(_: float, y: Vector) -> list[float]:
        bend = (bricard_inertia(y[0] + d) - bricard_inertia(y[0] - d)) / (2 * d)
        return [y[1], (torque - 0.5 * bend * y[1] ** 2) / bricard_inertia(y[0])]

    exact = solve_ivp(rates, (0, seconds), [start, 0.0], method="DOP853", rtol=1e-7, atol=1e-8).y[0, -1]
    assert abs(exact - start) > 0.3
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        engine = bricard(dt, start)
        push(engine, "one", torque=(0, 0, torque))
        advance(engine, seconds)
        errors.append(abs(start + angle(engine, "hinge 0") - exact))
    assert errors[-1] < 2e-3
    assert (orders(errors) > 0.85).all()


def test_bricard_linkage_holds_against_forces_that_its_freedom_does_not_know() -> None:
    """Equal turns at rest: pushes along the other directions of its links leave it where it is.

    The generalised force of a load is its power per unit rate of s; what has none moves nothing.
    """
    start, d = 1.2, 1e-5
    engine = bricard(1e-3, start)
    before, after = bricard_poses(start - d)[2][0], bricard_poses(start + d)[2][0]
    way = (after - before) / np.linalg.norm(after - before)
    across = np.cross(way, (0.3, -0.5, 0.8))
    push(engine, "three", tuple(200 * across / np.linalg.norm(across)))
    advance(engine, 1.0)
    assert angle(engine, "hinge 0") == pytest.approx(0, abs=1e-5)
    assert np.abs(velocity(engine, "three")).max() < 1e-4
    assert engine.gap() < 1e-5


# A door ---------------------------------------------------------------------------------------------------------------

DOOR, REACH = 20.0, 0.4  # [kg] [m] centre of mass from the post
HEIGHTS = np.array([0.2, 1.0, 1.8])


def door(kind: str, stiffness: tuple[float, ...]) -> Engine:
    """A door on a plumb post, along y; its centre of mass is as high as its middle hinge."""
    world = World()
    world.body("door", mass=DOOR, inertia=(7.0, 8.0, 1.1), pos=(0, REACH, 1.0))
    for k, (z, soft) in enumerate(zip(HEIGHTS, stiffness, strict=True)):
        options = {} if np.isinf(soft) else {"stiffness": soft, "damping_time": 0.02}
        make = world.ball if kind == "ball" else world.hinge
        more = {} if kind == "ball" else {"axis": (0, 0, 1)}
        make(f"hinge {k}", None, "door", at=(0, 0, z), **more, **options)  # type: ignore[operator]
    return advance(compiled(world), 3.0)


def linear(engine: Engine) -> Vector:
    """Force of each support on the door, world axes [3, 3]."""
    axes = engine.content.data.row.axes
    return np.array([axes[k].T @ reaction(engine, f"hinge {k}")[:3] for k in range(3)])


@pytest.mark.parametrize("soft", [np.inf, 1e6])
def test_a_door_on_three_balls_carries_its_moment_with_the_outer_ones(soft: float) -> None:
    """Equal stiffness: a third of the weight each, and m g b / 1.6 m towards the post above, away from it below."""
    got = linear(door("ball", (soft,) * 3))
    pull = DOOR * G * REACH / (HEIGHTS[2] - HEIGHTS[0])
    assert got[:, 2] == pytest.approx([DOOR * G / 3] * 3, rel=2e-3)
    assert got[:, 1] == pytest.approx([pull, 0, -pull], rel=2e-3, abs=1e-3 * pull)
    assert got[:, 0] == pytest.approx([0, 0, 0], abs=1e-3 * pull)


def test_a_door_on_three_soft_hinges_carries_its_moment_with_forces_and_torques() -> None:
    """Each hinge resists tilt with a moment k per radian besides its force k per metre: a tilt p costs
    k p (sum of z^2 + 3), of which the outer hinges take k p z each by force.
    """
    engine = door("hinge", (1e6,) * 3)
    z = HEIGHTS - HEIGHTS.mean()
    tilt = DOOR * G * REACH / (z @ z + 3)  # times k
    assert linear(engine)[:, 1] == pytest.approx(-tilt * z, rel=2e-3, abs=1e-3 * tilt)
    moments = [np.hypot(*reaction(engine, f"hinge {k}")[3:5]) for k in range(3)]
    assert moments == pytest.approx([tilt] * 3, rel=2e-3)


def test_hinges_of_a_door_that_differ_share_by_their_stiffness() -> None:
    """k = 1 : 2 : 4. The weight by stiffness, the moment as the springs at their heights have it."""
    k = np.array([1e6, 2e6, 4e6])
    got = linear(door("ball", tuple(k)))
    assert got[:, 2] == pytest.approx(DOOR * G * k / k.sum(), rel=2e-3)
    # level: k_i (d + p z_i) with no sum, and a moment of m g b
    z = HEIGHTS - 1.0
    d, p = np.linalg.solve([[k.sum(), k @ z], [k @ z, k @ z**2]], [0.0, -DOOR * G * REACH])
    assert got[:, 1] == pytest.approx(k * (d + p * z), rel=2e-3)


# A table --------------------------------------------------------------------------------------------------------------

TABLE = 30.0  # [kg]
FEET = np.array([[0.6, 0.4], [-0.6, 0.4], [-0.6, -0.4], [0.6, -0.4]])
HEIGHT = 0.7


def table_loads(k: Vector, load: Vector, weight: float) -> Vector:
    """Loads of legs of stiffness k under a stiff top: w = a + b x + c y, forces k w, three equations of balance."""
    shape = np.column_stack([np.ones(len(k)), FEET[: len(k)]])
    right = TABLE * G * np.array([1.0, 0, 0]) + weight * np.array([1.0, *load])
    return k * (shape @ np.linalg.solve(shape.T @ (k[:, None] * shape), right))


def table(kind: str, stiffness: Vector, short: float = 0.0) -> Engine:
    """Its feet are small spheres on the floor, or soft supports that can pull as well; the last leg may be short."""
    world = World()
    world.plane(material="floor")
    world.body("table", mass=TABLE, inertia=(2.0, 4.0, 5.0), pos=(0, 0, HEIGHT))
    for k, (x, y) in enumerate(FEET):
        if kind == "contact":
            world.material(f"leg {k}", "floor", friction=0.6, stiffness=float(stiffness[k]), damping_time=0.01)
            up = short if k == 3 else 0.0
            world.sphere("table", centre=(x, y, 0.01 + up - HEIGHT), radius=0.01, material=f"leg {k}")
        else:
            world.joint(
                f"leg {k}",
                None,
                "table",
                at=(x, y, 0),
                locked=(0, 1, 2) if k == 0 else (2,),
                turning=Turning.ALL_FREE,
                stiffness=float(stiffness[k]),
                damping_time=0.01,
            )
    if kind != "contact":
        world.joint("yaw", None, "table", at=(*FEET[2], 0), locked=(0,), turning=Turning.ALL_FREE)
    return compiled(world)


def loaded(engine: Engine, load: Vector, weight: float) -> Engine:
    push(engine, "table", (0, 0, -weight), (-weight * load[1], weight * load[0], 0))
    return advance(engine, 3.0)


def leg_forces(engine: Engine, kind: str) -> Vector:
    if kind != "contact":
        return np.array([reaction(engine, f"leg {k}")[2 if k == 0 else 0] for k in range(4)])
    d, forces = engine.content.data, np.zeros(4)
    for k in rows_of(engine, Bound.CONTACT):
        foot = np.argmin(np.linalg.norm(FEET - d.contact.point[d.bounded.source[k], :2], axis=1))
        forces[foot] += d.bounded.value[k] / engine.content.model.setup.h
    return forces


@pytest.mark.parametrize("kind", ["contact", "joint"])
@pytest.mark.parametrize("stiffness", [(1e6, 1e6, 1e6, 1e6), (1e6, 2e6, 4e6, 8e6), (1e5, 1e6, 1e5, 1e6)])
@pytest.mark.parametrize("load", [(0.0, 0.0), (0.25, -0.1)])
def test_four_legs_share_a_load_by_their_stiffness(
    kind: str, stiffness: tuple[float, ...], load: tuple[float, float]
) -> None:
    """Statics has three equations for four legs; the fourth comes from the stiff top staying flat."""
    k, where = np.array(stiffness), np.array(load)
    engine = loaded(table(kind, k), where, 200.0)
    expected = table_loads(k, where, 200.0)
    assert expected.min() > 0
    assert leg_forces(engine, kind) == pytest.approx(expected, rel=2e-3)


def test_a_short_leg_carries_nothing_and_the_other_three_stand_by_the_lever() -> None:
    """One leg is 1 mm short; the load lies within the triangle of the others."""
    where = np.array([-0.3, 0.1])
    engine = loaded(table("contact", np.array([1e7] * 4), short=1e-3), where, 200.0)
    shape = np.vstack([np.ones(3), FEET[:3].T])
    expected = np.linalg.solve(shape, TABLE * G * np.array([1.0, 0, 0]) + 200.0 * np.array([1.0, *where]))
    assert expected.min() > 0
    assert leg_forces(engine, "contact") == pytest.approx([*expected, 0.0], rel=2e-3, abs=1e-6)
    assert centre(engine, "table")[:2] == pytest.approx([0, 0], abs=1e-4)


def test_a_table_with_a_short_leg_rocks_over_when_the_load_moves() -> None:
    """With the load beyond the diagonal the table tips until the short leg stands, and the opposite one comes free."""
    engine = table("contact", np.array([1e7] * 4), short=1e-3)
    where = np.array([0.4, -0.2])
    loaded(engine, where, 200.0)
    forces = leg_forces(engine, "contact")
    assert forces[3] > 50.0
    assert forces[1] == pytest.approx(0, abs=1e-6)
    assert forces.sum() == pytest.approx(TABLE * G + 200.0, rel=1e-4)
