"""The broad phase against every two shapes tried by numpy, while everything moves, comes, goes and sleeps."""

import numpy as np
import pytest
from broadphase_scenes import Scene, make_shapes, random_scene
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from plant.collision.broadphase.pairs import exclude
from plant.collision.model import Kind

DT = 1e-3


def balls(pos: np.ndarray, radius: float = 0.1, **options: object) -> Scene:
    """One ball on each body."""
    n = len(pos)
    made = make_shapes(np.full(n, Kind.SPHERE), np.arange(n), np.full((n, 4), radius))
    return Scene(made, np.zeros(n, np.int64), np.array(pos, float), np.tile(np.eye(3), (n, 1, 1)), **options)  # type: ignore[arg-type]


def check(scene: Scene) -> None:
    assert scene.step() == 0
    np.testing.assert_array_equal(scene.found(), scene.expected())


def drift(scene: Scene, rng: np.random.Generator, dt: float = DT) -> None:
    """Move all but static bodies by their velocity and turn them a little."""
    free = scene.body_kind != 2
    scene.pos[free] += scene.vel[free, :3] * dt
    turn = Rotation.from_rotvec(rng.normal(size=(len(scene.pos), 3)) * 0.01).as_matrix()
    scene.rot[free] = (turn @ scene.rot)[free]


def live(seed: int, scenery: str, bodies: int, steps: int) -> int:
    """Steps in which anything may happen; returns how many pairs were compared."""
    rng, scene, compared = np.random.default_rng(seed + 1000), random_scene(seed, bodies, scenery), 0
    scene.vel[:, :3] = rng.normal(size=(bodies, 3)) * 4.0
    for step in range(steps):
        drift(scene, rng, dt=0.005)
        scene.pos[:, 2] = np.abs(scene.pos[:, 2])
        if step % 5 == 0:
            s = rng.integers(0, len(scene.shapes.kind), 5)
            scene.shapes.enabled[s] = 1 - scene.shapes.enabled[s]
        if step % 7 == 0:
            b = rng.integers(0, bodies, 8)
            scene.asleep[b] = 1 - scene.asleep[b]
        if step % 11 == 0:  # the velocity given is only a hint: a lie must cost no pair
            scene.vel[:, :3] = rng.normal(size=(bodies, 3)) * 4.0
            b = rng.integers(0, bodies, 3)
            b = b[scene.body_kind[b] != 2]
            scene.pos[b] = rng.uniform(0, 4, (len(b), 3))
        check(scene)
        compared += len(scene.found())
    return compared


@pytest.mark.parametrize(("seed", "scenery"), [(1, "kdtree"), (2, "octree"), (3, "tree"), (4, "kdtree")])
def test_every_pair_is_found_in_order_whatever_happens(seed, scenery):
    assert live(seed, scenery, bodies=100, steps=60) > 3000


@pytest.mark.slow
def test_every_pair_is_found_over_many_scenes():
    compared = 0
    for seed in range(100, 120):
        compared += live(seed, ("kdtree", "octree", "tree")[seed % 3], bodies=150, steps=120)
    assert compared > 250_000


@pytest.mark.parametrize("speed", [0.0, 0.5, 30.0])
def test_balls_within_reach_of_each_other_are_among_the_pairs(speed):
    """scipy finds who touches by distance; the boxes of these must have been found."""
    rng = np.random.default_rng(5)
    scene = balls(rng.uniform(0, 3, (600, 3)), margin=0.0)
    scene.vel[:, :3] = rng.normal(size=(600, 3)) * speed
    for _ in range(30):
        drift(scene, rng)
        assert scene.step() == 0
        touching = cKDTree(scene.pos).query_pairs(0.2)
        assert touching <= {tuple(p) for p in scene.found().tolist()}


def test_a_row_of_balls_knows_its_neighbours_only():
    scene = balls(np.c_[np.arange(50) * 0.205, np.zeros((50, 2))], margin=0.01)
    check(scene)
    np.testing.assert_array_equal(scene.found(), np.c_[np.arange(49), np.arange(1, 50)])
    scene = balls(np.c_[np.arange(50) * 0.215, np.zeros((50, 2))], margin=0.01)
    check(scene)
    assert len(scene.found()) == 0


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_ball_that_creeps_up_is_found_within_the_margin_and_not_before(axis, sign):
    """Unannounced, at 1 mm a step, from 0.33 m to a block of the ground: the pair comes at a gap of 0.05 m."""
    made = make_shapes(np.array([Kind.SPHERE, Kind.BOX]), np.array([0, -1]), np.full((2, 4), 0.1))
    scene = Scene(made, np.zeros(1, np.int64), np.zeros((1, 3)), np.eye(3)[None], margin=0.05)
    for gap in np.arange(0.3305, 0.0, -0.001):
        scene.pos[0, axis] = sign * (0.2 + gap)
        check(scene)
        assert len(scene.found()) == (gap < 0.05)


def test_sleepers_are_found_by_the_awake_alone():
    made = make_shapes(np.full(5, Kind.SPHERE), np.array([0, 1, 2, 3, -1]), np.full((5, 4), 0.1))
    made.at[4] = 0.3, 0, 0
    scene = Scene(
        made, np.zeros(4, np.int64), np.c_[np.arange(4) * 0.1, np.zeros((4, 2))], np.tile(np.eye(3), (4, 1, 1))
    )
    scene.asleep[:3] = 1
    check(scene)
    assert {3} == set.intersection(*[set(p) for p in scene.found().tolist()])
    scene.asleep[:] = 1
    check(scene)
    assert len(scene.found()) == 0
    scene.asleep[0] = 0
    check(scene)
    assert {0} == set.intersection(*[set(p) for p in scene.found().tolist()])


def test_neighbours_in_a_long_chain_are_left_out():
    """Ten thousand links, each overlapping the next two: only the next but one is left."""
    n = 10_000
    joints = [(k, k + 1) for k in range(n - 1)]
    scene = balls(np.c_[np.arange(n) * 0.09, np.zeros((n, 2))], margin=0.001, excluded=joints)
    assert scene.broad.excluded.nbytes < 100_000
    assert scene.step() == 0
    np.testing.assert_array_equal(scene.found(), np.c_[np.arange(n - 2), np.arange(2, n)])


def test_a_body_excluded_from_the_ground_passes_through_it():
    made = make_shapes(np.array([Kind.BOX, Kind.SPHERE, Kind.SPHERE]), np.array([-1, 0, 1]), np.full((3, 4), 0.1))
    options = {"body_kind": np.zeros(2, np.int64), "pos": np.zeros((2, 3)), "rot": np.tile(np.eye(3), (2, 1, 1))}
    scene = Scene(made, excluded=[(0, -1)], **options)
    check(scene)
    assert scene.found().tolist() == [[1, 2], [2, 0]]


def test_an_excluded_body_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"bodies -1 to 7; there are -1 to 3"):
        exclude(4, [(-1, 2), (3, 7)])


def test_changed_masks_count_after_a_reset():
    scene = balls(np.zeros((3, 3)))
    check(scene)
    scene.shapes.mask[0] = 0
    scene.forget()
    check(scene)
    assert scene.found().tolist() == [[1, 2]]


def test_lack_of_room_is_told_and_mended():
    rng = np.random.default_rng(6)
    scene = balls(rng.uniform(0, 0.5, (60, 3)), room=40)
    assert scene.step() > 0
    assert scene.step() > 0
    scene.pos[:] = np.arange(60)[:, None]
    check(scene)
    scene = balls(rng.uniform(0, 0.5, (60, 3)), listed=10)
    needed = len(scene.expected())
    assert scene.step() == needed - 10
    np.testing.assert_array_equal(scene.found(), scene.expected()[:10])


def test_a_body_that_ran_away_takes_nobody_with_it():
    scene = balls(np.zeros((3, 3)))
    check(scene)
    for away in (np.nan, np.inf, 1e200):
        scene.pos[1] = away
        assert scene.step() == 0
        assert scene.found().tolist() == [[0, 2]]
    scene.pos[1], scene.vel[1:] = 0.0, np.nan
    check(scene)
    assert len(scene.found()) == 3


def test_scenery_without_a_place_is_refused():
    made = make_shapes(np.full(3, Kind.BOX), np.array([0, -1, -1]), np.full((3, 4), 0.1))
    made.at[2] = np.nan
    with pytest.raises(ValueError, match=r"static shapes \[2\] have no finite place"):
        Scene(made, np.zeros(1, np.int64), np.zeros((1, 3)), np.eye(3)[None])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_bodies(n):
    scene = balls(np.zeros((n, 3)))
    for _ in range(3):
        scene.pos[:, 0] += 0.5 * np.arange(n)
        check(scene)
    scene.shapes.enabled[:] = 0
    check(scene)
    scene.shapes.enabled[:] = 1
    check(scene)


def test_a_scene_of_ground_alone_has_no_pairs():
    made = make_shapes(np.full(4, Kind.BOX), np.full(4, -1), np.full((4, 4), 0.1))
    scene = Scene(made, np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3, 3)))
    check(scene)
    assert len(scene.found()) == 0


def test_many_bodies_in_one_place_do_not_make_a_list_of_the_tree():
    scene = balls(np.zeros((200, 3)), room=30_000)
    scene.step()
    for k in range(200):  # one by one, as they are inserted into a running tree
        scene.shapes.enabled[k] = 0
        scene.step()
        scene.shapes.enabled[k] = 1
        scene.step()
    check(scene)
    assert len(scene.found()) == 199 * 100
    assert scene.broad.tree.height.max() < 40


def test_pairs_do_not_depend_on_the_past():
    """A scene that has run for long and one that is built where it stands list the same."""
    rng, old = np.random.default_rng(8), random_scene(7, 120)
    old.vel[:, :3] = rng.normal(size=(120, 3)) * 3
    for _ in range(100):
        drift(old, rng)
        old.step()
    new = random_scene(7, 120)
    new.pos[:], new.rot[:] = old.pos, old.rot
    new.step()
    assert len(new.found()) > 50
    np.testing.assert_array_equal(old.found(), new.found())
