"""Objects that come and go, in a small world: balls and blocks on a floor, and a ball that rolls past them."""

import hashlib
import math

import numpy as np
import pytest

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.codes import BodyKind
from plant.collision.shape.shapes import Plane, Sphere
from plant.engine.compile import Engine, compile_world
from plant.engine.proximity_pool import AWAY, LOOKS, ProximityPool, build_pool, reset_pool, tend_pool, upright
from plant.model import view_engine
from plant.velocity.reset import Start, restart, start_of
from plant.world.world import World

_view_pool, _view_start = viewer(ProximityPool), viewer(Start)
HALF = 0.25  # [m] radius of all objects
NEAR = 0.5


@kernel
def _tend(engine, pool):
    tend_pool(view_engine(engine), _view_pool(pool))


@kernel
def _reset(engine, pool, start):
    e = view_engine(engine)
    restart(e, _view_start(start))
    reset_pool(e, _view_pool(pool))


class Scene:
    """A floor, a seeker at x = 0 and objects in a row along x from 4 m on, every 2 m, of two kinds in turn."""

    def __init__(self, count: int, spares: tuple[int, int] = (2, 2), near: float = NEAR) -> None:
        world = World()
        world.shape(None, Plane(), material="soil")
        world.body("seeker", mass=40.0, inertia=(2, 2, 2), pos=(0, 0, 0.5))
        world.shape("seeker", Sphere(0.5))
        for kind in range(2):
            for k in range(spares[kind]):
                world.body(f"spare{kind}{k}", mass=2.0, inertia=(0.05,) * 3, com=(0, 0, HALF), pos=(0, 0, -60))
                world.shape(f"spare{kind}{k}", Sphere(HALF), at=(0, 0, HALF))
        self.engine: Engine = compile_world(world, 1e-3, contacts=32)
        self.start = np.array([upright(4.0 + 2.0 * k, 0.0, 0.0, 0.3 * k) for k in range(count)])
        self.pool = build_pool(
            self.engine,
            poses=self.start,
            kinds=[k % 2 for k in range(count)],
            radii=[2 * HALF] * count,
            spares=[(f"spare{kind}{k}", kind) for kind in range(2) for k in range(spares[kind])],
            seekers=[("seeker", 0.5)],
            near=near,
        )
        self.record = Struct(self.pool)
        self.state = self.engine.content.data.state
        self.beginning = Struct(start_of(self.engine.content.data))

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            _tend(self.engine.record.address, self.record.address)
            assert self.engine.step() == 0

    def reset(self) -> None:
        _reset(self.engine.record.address, self.record.address, self.beginning.address)

    def seek(self, x: float, y: float = 0.0, speed: float = 0.0) -> None:
        s = self.state
        s.pos[0], s.vel[0] = (x, y, 0.5), 0.0
        s.vel[0, 0], s.vel[0, 4] = speed, speed / 0.5
        self.engine.content.data.status[3] = 0

    def takes_part(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self.pool.body >= 0)]

    def kinds(self) -> np.ndarray:
        return self.engine.content.model.body.kind[[self.engine.index(n) for n in self.engine.names if n != "seeker"]]


def test_nobody_takes_part_at_first() -> None:
    scene = Scene(6)
    assert (scene.kinds() == BodyKind.ABSENT).all()
    scene.step(5)
    assert scene.takes_part() == []
    assert scene.pool.counts.tolist() == [0, 0]
    assert (scene.pool.pose == scene.start).all()


def test_an_object_enters_where_it_stands_when_a_seeker_is_near() -> None:
    """Gap between the two spheres just above, then just below `near`."""
    scene = Scene(6)
    reach = 0.5 + 2 * HALF + NEAR
    height = 0.5  # of the seeker's middle above the object's frame
    scene.seek(4.0 - math.sqrt(reach**2 - height**2) - 0.01)
    scene.step()
    assert scene.takes_part() == []
    scene.seek(4.0 - math.sqrt(reach**2 - height**2) + 0.01)
    _tend(scene.engine.record.address, scene.record.address)
    assert scene.takes_part() == [0]
    b = scene.pool.body[0]
    assert scene.engine.content.model.body.kind[b] == BodyKind.DYNAMIC
    assert scene.state.pos[b] == pytest.approx(scene.start[0, :3] + (0, 0, HALF))  # its centre of mass
    assert scene.state.quat[b] == pytest.approx(scene.start[0, 3:])
    assert scene.pool.counts[0] == 1
    scene.step(300)
    assert scene.state.pos[b] == pytest.approx(scene.start[0, :3] + (0, 0, HALF), abs=2e-3)  # it stands on the floor


def test_it_leaves_when_far_and_at_rest_and_not_before() -> None:
    scene = Scene(6)
    scene.seek(3.0)
    scene.step(50)
    assert scene.takes_part() == [0]
    b = int(scene.pool.body[0])
    scene.seek(4.0 - 0.5 - 2 * HALF - 1.2 * NEAR)  # beyond `near`, not yet beyond AWAY times near
    assert AWAY > 1.2
    scene.step(50)
    assert scene.takes_part() == [0]
    scene.seek(-5.0)
    scene.state.vel[b, 0] = 1.0  # pushed: far from everybody, but it moves
    scene.step(20)
    assert scene.takes_part() == [0]
    stamp, gone = int(scene.pool.stamp[0]), scene.pool.pose[0, 0]
    assert gone > 4.0  # its pose is told while it moves
    scene.state.vel[b] = 0.0
    scene.step(1)
    assert scene.takes_part() == []
    assert scene.engine.content.model.body.kind[b] == BodyKind.ABSENT
    assert scene.pool.stamp[0] > stamp


def test_its_pose_is_kept_and_it_comes_back_there() -> None:
    scene = Scene(6)
    scene.seek(2.6, speed=1.5)
    scene.step(1200)  # the heavy ball knocks the light one away
    scene.seek(-8.0)
    for b in range(1, 5):
        scene.state.vel[b] = 0.0
    scene.step(2)
    assert scene.takes_part() == []
    left = scene.pool.pose[0].copy()
    assert left[0] > 4.2
    assert np.linalg.norm(left[3:]) == pytest.approx(1.0, abs=1e-9)
    scene.step(100)
    assert (scene.pool.pose[0] == left).all()  # nobody moves it while it is away
    scene.seek(left[0] - 1.0, left[1])
    _tend(scene.engine.record.address, scene.record.address)
    assert 0 in scene.takes_part()
    b = scene.pool.body[0]
    assert np.linalg.norm(scene.state.pos[b] - left[:3]) == pytest.approx(HALF, abs=1e-9)


def test_no_spare_left_is_counted_and_nobody_is_lost() -> None:
    scene = Scene(6, spares=(1, 0), near=20.0)
    scene.step(1)
    assert scene.takes_part() == [0]  # kind 0: objects 0, 2 and 4; kind 1 has no spare at all
    assert scene.pool.counts.tolist() == [1, 5]
    scene.step(1)
    assert scene.pool.counts.tolist() == [1, 10]
    assert (scene.pool.pose[1:] == scene.start[1:]).all()


def test_a_spare_serves_the_next_one() -> None:
    scene = Scene(12, spares=(1, 1))
    served = set()
    for x in np.arange(3.0, 28.0, 0.5):
        scene.seek(float(x), 0.9)  # past them, without touching
        scene.step(3)
        for b in range(1, 3):
            scene.state.vel[b] = 0.0
        scene.step(1)
        served |= set(scene.takes_part())
        assert len(scene.takes_part()) <= 2
    assert served == set(range(12))


def test_only_a_few_are_looked_at_in_a_step() -> None:
    scene = Scene(3 * LOOKS, near=0.01)
    scene.seek(4.0 + 2.0 * (2 * LOOKS + 3), 0.6)
    scene.step(2)
    assert scene.takes_part() == []
    scene.step(1)
    assert scene.takes_part() == [2 * LOOKS + 3]


def fingerprint(scene: Scene, steps: int) -> str:
    digest = hashlib.sha256()
    for _ in range(steps):
        scene.step()
        digest.update(scene.state.pos.tobytes() + scene.state.vel.tobytes() + scene.pool.pose.tobytes())
    return digest.hexdigest()


def test_reset_brings_everything_back_and_the_run_repeats_to_the_bit() -> None:
    scene = Scene(6)
    runs = []
    for _ in range(3):
        scene.seek(2.6, speed=3.0)
        runs.append(fingerprint(scene, 1500))
        assert not (scene.pool.pose == scene.start).all()
        scene.reset()
        assert (scene.pool.pose == scene.start).all()
        assert scene.takes_part() == []
        assert (scene.kinds() == BodyKind.ABSENT).all()
        assert scene.pool.counts.tolist() == [0, 0]
    assert runs[0] == runs[1] == runs[2]
