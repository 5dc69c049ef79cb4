"""Print a SHA-256 of the outputs and poses of reference runs: the same source gives the same table, bit by bit.

    python tools/fingerprint.py                             the table, `case  sha256`, on stdout
    python tools/fingerprint.py --json before.json          ... and into a file
    python tools/fingerprint.py --against before.json       after a change: exit code 1 names the cases that differ
    python tools/fingerprint.py --only 'pair*' --only soil  some cases; patterns are those of a shell
    python tools/fingerprint.py --quick                     what takes less than 20 s once the kernels are compiled

A change that only moves or renames code must leave every hash as it is. A case hashes the raw bytes of the numbers of
every step or every tenth one, so a difference in the last bit of any of them shows. No case depends on another.

Worlds are compiled with numpy, whose BLAS chooses its code, and with it the last bits of masses and inertias, by the
CPU: one choice is asked for here, which any x86-64 CPU with AVX2 can run. Tables of Zen 4 and Zen 5 are then the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench_soil import Site, _cases, _site
from excavator_rig import STEP
from llvmlite.binding import get_host_cpu_name
from scipy.spatial.transform import Rotation

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.abi import Plant
from plant.collision.model import POINTS, Kind
from plant.collision.pairs.table import call_pair, known_pairs, pair_table
from plant.collision.scene import Placement, build_scene, view_scene
from plant.collision.shape.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Field,
    Hull,
    Link,
    Mesh,
    Plane,
    Shape,
    Sphere,
    Torus,
)
from plant.contact_law.material import LAWS as CONTACT_LAWS
from plant.engine.compile import compile_world
from plant.engine.queries import rays
from plant.machines.crane_arm import create as create_crane
from plant.machines.double_pendulum import create as create_pendulum
from plant.machines.excavator.plant import create as create_excavator
from plant.reduced.compile import compile_tree
from plant.soil.model import BUCKET, book
from plant.soil.step import reset_soil, soil_step
from plant.vehicle.tires.laws import LAWS as TIRE_LAWS
from plant.world.world import World

BLAS = {"OPENBLAS_CORETYPE": "Haswell"}  # read when numpy is loaded
H = 1e-3  # [s] step of every case
SECONDS = 10  # of each machine
EVERY = 10  # steps between two looks at a world
PLACES = 2000  # of each pair of shapes
LONG = ("pair *torus*", "pair *link*", "pair mesh-*")  # left out by --quick
WORK: tuple[tuple[float, dict[str, float]], ...] = (  # until [s], and the levers that are not at their defaults
    (1.2, {"drive": 0.8, "steer": 0.5, "right.y": 0.3}),
    (2.2, {"drive": 0.5, "steer": -0.8, "steer_mode": 2.0, "left.x": 0.4, "blade": -0.5}),
    (3.0, {"brake": 0.8, "right.y": 0.6, "left.y": 0.5, "right.x": 0.5}),
    (4.6, {"parking": 1.0, "right.y": 0.6, "right.x": 0.4, "outriggers": -0.6}),
    (6.4, {"parking": 1.0, "left.y": -0.7, "right.x": -0.3}),
    (7.4, {"brake": 1.0, "left.y": -0.3, "right.x": -0.9, "right.y": -0.2}),
    (8.6, {"right.y": -1.0, "left.x": -0.5, "gear": 2.0}),
    (9.3, {"left.x": -1.0, "right.x": 1.0, "pattern": 1.0}),
    (10.0, {"left.x": 0.6, "drive": -0.7, "throttle": 0.6}),
)
MATERIAL = {"foundation": {"modulus": 2e4, "layer": 0.01, "dissipation": 2.0, "slow": 0.05}}  # soft enough for 1 ms
MATERIAL |= {law: {"stiffness": 5e4, "damping": 100.0} for law in ("wang", "kelvin_voigt")}
_view_site = viewer(Site)
Seen = Iterator[Any]  # arrays, one after the other: what a case hashes


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"a step ended with status {status}")


def wave(t: float, period: float, size: float) -> float:
    """A triangle between -size and size."""
    return size * (4.0 * abs((t / period) % 1.0 - 0.5) - 1.0)


def run_plant(plant: Plant, levers: Callable[[float], Mapping[str, float]]) -> Seen:
    """Outputs and poses of each step, and the ground now and then."""
    number = {s.name.partition(".")[2]: k for k, s in enumerate(plant.inputs)}
    params, defaults = (np.array([s.default for s in given] or [0.0]) for given in (plant.parameters, plant.inputs))
    inputs, outputs, poses = defaults.copy(), np.zeros(len(plant.outputs)), np.zeros(7 * len(plant.bodies))
    arrays = [a.ctypes.data for a in (params, inputs, outputs, poses)]
    check(STEP(plant.reset[0])(plant.reset[1], 0, *arrays))
    step, at = STEP(plant.tasks[0].address), plant.tasks[0].self_address
    for n in range(SECONDS * 1000):
        inputs[:] = defaults
        for name, value in levers(n * H).items():
            inputs[number[name]] = value
        check(step(at, n, *arrays))
        yield from (outputs, poses, *(grid.heights for grid in plant.grids if n % 500 == 499))


def excavator(**options: Any) -> Seen:
    """The levers of WORK: drive, steer, brake, dig, lift, swing, dump, drive back."""
    plant = create_excavator(H, **options)
    return run_plant(plant, lambda t: {"parking": 0.0} | next(held for until, held in WORK if t < until))


def swayed(create: Callable[[float], Plant], *drives: tuple[str, float, float]) -> Seen:
    """A plant whose inputs go up and down: name, period [s] and size."""
    return run_plant(create(H), lambda t: {name: wave(t, period, size) for name, period, size in drives})


def run_world(world: World, **options: Any) -> Seen:
    """States, joint forces and contacts of every tenth step; at last what rays from above meet."""
    engine = compile_world(world, H, **{"contacts": 256, **options})
    data, contact = engine.content.data, engine.content.data.contact
    for _ in range(100):
        check(engine.step(EVERY))
        yield from (data.state.pos, data.state.quat, data.state.vel, data.state.angle, data.row.force)
        yield from (a[: contact.count[0]] for a in (contact.body, contact.point, contact.normal, contact.depth))
    beam = np.random.default_rng(3).uniform((-2, -2, 2, -1, -1, -3), (2, 2, 4, 1, 1, -2), (99, 6))
    for hit in rays(engine, beam[:, :3], beam[:, 3:]):
        yield [-1.0] if hit is None else [hit.shape, hit.distance, *hit.normal]


def drop(ground: Shape | None = None, low: float = 0.0, sleep: float = 0.0, **options: Any) -> Seen:
    """One body of each shape falls on ground with posts, close enough to fall over each other."""
    world = World(sleep_after=sleep)
    world.material("default", "default", friction=0.4, stiction=0.6, restitution=0.3, stiffness=2e5)
    world.shape(None, ground or Plane(), at=(0, 0, -low))
    for k, (x, y) in enumerate(product((-1.5, -0.5, 0.5, 1.5), repeat=2)):
        world.shape(None, Box(0.2, 0.2, 0.2 + 0.02 * k), at=(x, y, 0.1))
    for k, kind in enumerate(k for k in Kind if k not in (Kind.PLANE, Kind.FIELD)):
        place = {"pos": (0.17 * k - 0.6, 0.1 * (k % 3), 0.8 + 0.1 * (k % 4)), "quat": (1.0, 0.1 * k, -0.3, 0.2)}
        world.solid(f"body{k}", variants(kind)[1], density=800, vel=(0.2, -0.1 * k, 0), spin=(k, 1, -1), **place)
    return run_world(world, **options)


def stack(law: str = "rigid", **options: Any) -> Seen:
    """Two stacks of boxes on a plane, one of which a ball hits."""
    world = World()
    world.plane()
    world.material("default", "default", law=law, friction=0.4, **MATERIAL.get(law, {"stiffness": 2e5}))
    for k, n in product(range(4), range(2)):
        world.solid(f"box{k}{n}", Box(0.2, 0.2, 0.2), density=125, pos=(n + 0.02 * k, 0, 0.101 + 0.201 * k))
    world.solid("ball", Sphere(0.1), density=600, pos=(-0.6, 0.03, 0.5), vel=(3, 0, 1))
    return run_world(world, **options)


def joints(**options: Any) -> Seen:
    """Joints of several kinds with a motor, a servo, a limit, friction, springs, a gear, and one that breaks."""
    w, y = World(), (0, 1, 0)
    for k, name in enumerate(("hinge", "gear", "slide", "screw", "weak", "cross")):
        w.body(name, mass=2 + k, inertia=(0.2, 0.3, 0.25), pos=(1.5 * k + 0.4, 0.1, -0.2), spin=(0.0, 0.5, 0.0))
    w.hinge("hinge_joint", None, "hinge", at=(0, 0, 0), axis=y)
    w.hinge("gear_joint", None, "gear", at=(1.5, 0, 0), axis=y)
    w.prismatic("slide_joint", None, "slide", at=(3.0, 0, 0), axis=y)
    w.cylindrical("screw_joint", None, "screw", at=(4.5, 0, 0), axis=(0, 0, 1))
    w.ball("weak_joint", "screw", "weak", at=(6.0, 0, 0), strength=150.0)
    w.universal("cross_joint", None, "cross", at=(7.5, 0, 0), axis_a=(1, 0, 0), axis_b=y)
    w.spring_on("torsion", "cross_joint", axis="turn_b", stiffness=20.0, damping=0.5, rest=0.1)
    w.servo("servo", "slide_joint", axis="z", position=0.2, gain=5.0, force=300.0)
    w.motor("motor", "screw_joint", axis="turn", speed=1.0, force=5.0)
    w.friction("friction", "gear_joint", axis="turn", force=0.2)
    w.limit("limit", "screw_joint", axis="z", low=-0.3, high=0.1, restitution=0.3)
    w.spring("rope", "slide", "screw", at_a=(3.4, 0, 0), at_b=(4.9, 0, 0), stiffness=50.0, damping=1.0, rest=1.0)
    w.gear("gears", "hinge_joint", "gear_joint", ratio=-2.0)
    return run_world(w, **options)


def chain(integrator: Any, method: Any, closed: bool) -> Seen:
    """Twelve links in joint coordinates, in an arc on hinges and balls; `closed` ties the last one to the ground."""
    world, above = World(), None
    for k in range(12):
        at, axis = (0.1 * k, 0.0, 0.02 * k * (k - 12)), {"axis": ((0, 1, 0), (0, 0, 1))[k % 2]}
        name = world.body(f"link{k}", mass=0.2, inertia=(2e-4, 3e-4, 2.5e-4), pos=at, com=(0.05, 0, 0))
        make, more = (world.ball, {}) if k % 4 == 3 else (world.hinge, axis)
        make(f"joint{k}", above, name, at=at, **more)
        above = name
    if closed:
        world.ball("end", None, above, at=(1.2, 0.0, 0.0))
    tree = compile_tree(world, H, integrator=integrator, method=method)
    tree.restart()
    for n in range(100):
        tree.content.motion.tau[0] = wave(n * EVERY * H, 0.4, 0.5)
        check(tree.step(EVERY))
        tree.refresh()
        yield from (tree.q, tree.qd, tree.body.pos, tree.body.quat, tree.body.vel)


@kernel
def _dig(site, load, pos, rot, vel, h, wrench):
    """Steps along a path of the bucket, which begins anew with a load unless that is negative."""
    s = _view_site(site)
    if load >= 0.0:
        reset_soil(s.soil, s.ground, s.field)
        book(s.soil, BUCKET, load)
    for k in range(len(pos)):
        soil_step(s.soil, s.ground, s.field, pos[k], rot[k], vel[k], h, wrench[k])


def soil(steps: int = 12_000) -> Seen:
    """The paths of tools/bench_soil.py: wrenches, outputs, volumes and heights."""
    record = _site()
    state, field = record.content.soil.state, record.content.field
    for load, *path in _cases(steps).values():
        for k in range(0, steps, EVERY):
            part, wrench = [np.ascontiguousarray(a[k : k + EVERY]) for a in path], np.zeros((EVERY, 6))
            _dig(record.address, load if k == 0 else -1.0, *part, H, wrench)
            yield from (wrench, state.out, state.account, state.counter, field.height if k % 500 == 0 else 0)


def hills(n: int) -> Field:
    """Ground of n x n samples."""
    return Field(np.random.default_rng(n).uniform(-0.08, 0.08, (n, n)), 0.5)


def rock(size: float, closed: bool = True) -> Mesh:
    """A star of about 48 corners, with a hole unless it is closed."""
    ball = Hull(Rotation.random(48, random_state=48).as_matrix()[:, 0])
    deep = np.where(np.arange(len(ball.vertices)) % 2, 0.5, 0.35)[:, None]
    return Mesh(size * deep * ball.vertices, ball.triangles[0 if closed else 4 :])


@cache
def variants(kind: Kind) -> list[Shape]:
    """Four shapes of a kind."""
    made = []
    for k, (a, b, c) in enumerate(((0.1, 0.15, 0.12), (0.2, 0.3, 0.25), (0.5, 0.3, 0.8), (1.0, 1.5, 0.7))):
        corners = np.random.default_rng(k).uniform(-0.5, 0.5, (6 + 5 * k, 3)) * (a, b, c)
        table: dict[Kind, Any] = {Kind.SPHERE: (Sphere, a / 2), Kind.CAPSULE: (Capsule, a / 2, b), Kind.PLANE: (Plane,)}
        table |= {Kind.CYLINDER: (Cylinder, a / 2, b), Kind.CONE: (Cone, a / 2, b), Kind.BOX: (Box, a, b, c)}
        table |= {Kind.TORUS: (Torus, a / 2, 0.15 * a), Kind.LINK: (Link, b, a / 2, 0.15 * a)}
        table |= {Kind.HULL: (Hull, corners), Kind.MESH: (rock, b, k < 3), Kind.FIELD: (hills, 8 + 3 * k)}
        made.append(table[kind][0](*table[kind][1:]))
    return made


@kernel
def _touch(scene, pos, rot, margin, found):
    """Manifolds of the variants 0 to 3 of one kind and 4 to 7 of another; the last row of `found` has the count."""
    s = view_scene(scene)
    for k in range(len(pos)):
        i, j = k % 4, 4 + k // 4 % 4
        s.placed.pos[i], s.placed.pos[j] = pos[k, 0], pos[k, 1]
        s.placed.rot[i], s.placed.rot[j] = rot[k, 0], rot[k, 1]
        n = call_pair(s.table[s.shape.kind[0], s.shape.kind[4]], scene, i, j, margin)
        found[k, :n, :3], found[k, :n, 3:6] = s.out.point[:n], s.out.normal[:n]
        found[k, :n, 6], found[k, :n, 7], found[k, -1, 0] = s.out.depth[:n], s.out.feature[:n], n


def pair(one: Kind, other: Kind) -> Seen:
    """Manifolds at random places, from one in the middle of the other to far apart; every sixth pair is parallel."""
    shapes, rng, each = variants(one) + variants(other), np.random.default_rng(8), np.arange(PLACES)
    placements = [Placement(s, b, np.zeros(3), np.eye(3), 0) for b, s in enumerate(shapes)]
    rest: Any = {"spare": 0, "joints": 0, "excluded": (), "margin": 0.0, "table": pair_table([(one, other)])}
    still = np.zeros(8, np.int64), np.zeros((8, 3)), np.tile(np.eye(3), (8, 1, 1))
    scene = Struct(build_scene(placements, *still, **rest))
    reach = np.array([s.bound() for s in shapes])[np.stack([each % 4, 4 + each // 4 % 4], 1)]
    rot = Rotation.random(2 * PLACES, random_state=7).as_matrix().reshape(PLACES, 2, 3, 3)
    rot[::6, 0] = rot[::6, 1]
    way, far = rng.uniform(-1, 1, (PLACES, 3)), rng.uniform(0.05, 1.2, PLACES)
    pos = np.repeat(rng.uniform(-1, 1, (PLACES, 1, 3)), 2, axis=1)
    if {one, other} & {Kind.PLANE, Kind.FIELD}:  # over the ground, or a little below it
        ground = 0 if one == Kind.PLANE else 1
        way[:, 2] = (far - 0.2) * reach[:, 1 - ground]
        pos[:, 1 - ground] += (rot[:, ground] * way[:, None]).sum(2)
    else:
        pos[:, 0] += way * (far * reach.sum(1) / np.sqrt((way * way).sum(1)))[:, None]
    found = np.zeros((PLACES, POINTS + 1, 8))
    _touch(scene.address, pos, rot, 0.02, found)
    yield found


def all_cases() -> dict[str, Callable[[], Seen]]:
    """Name of a case to what it runs."""
    slew, lift, reach = ("slew_drive.speed", 3.0, 0.5), ("lift_drive.speed", 2.0, 0.6), ("reach_drive.speed", 5.0, 0.8)
    made: dict[str, Callable[[], Seen]] = {"crane": partial(swayed, create_crane, slew, lift, reach), "soil": soil}
    made["pendulum"] = partial(swayed, create_pendulum, ("shoulder.torque", 1.3, 4.0), ("elbow.torque", 0.7, 2.0))
    made |= {f"excavator {law}": partial(excavator, tires=law) for law in TIRE_LAWS}
    made["excavator hydraulics"] = partial(excavator, hydraulics=True)
    made["excavator ali3p"] = partial(excavator, stepper="ali3p")
    for how in product(("euler", "midpoint", "rk4"), ("aba", "crba"), (False, True)):
        made[f"chain {how[0]} {how[1]}{' closed' * how[2]}"] = partial(chain, *how)
    solvers = product(("solver",), ("direct", "iterative", "gradient", "split"))
    steppers = product(("stepper",), ("linearised", "projected", "ali3p"))
    for run, (option, value) in product((drop, stack, joints), (*solvers, *steppers)):
        made[f"{run.__name__} {value}"] = partial(run, **{option: value})
    made |= {f"drop {s}": partial(drop, scenery=s) for s in ("octree", "kdtree")}
    made |= {"drop field": partial(drop, hills(12)), "drop mesh": partial(drop, rock(9.0), 3.5)}
    made["drop sleep"] = partial(drop, sleep=0.3)
    for law, stepper in product(CONTACT_LAWS, ("spook", "ali3p")):
        made[f"stack {law} {stepper}"] = partial(stack, law, stepper=stepper)
    return made | {f"pair {a.name}-{b.name}".lower(): partial(pair, a, b) for a, b in sorted(known_pairs())}


def digest(case: Callable[[], Seen]) -> str:
    """SHA-256 over the bytes of what a case sees, or why it has none: the others are worth running all the same."""
    sha = hashlib.sha256()
    try:
        for array in map(np.ascontiguousarray, case()):
            if not np.isfinite(array).all():
                return "failed: a number is not finite"
            sha.update(array.tobytes())
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"
    return sha.hexdigest()


def main() -> int:
    if not BLAS.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | BLAS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help='write {"cpu": family, "cases": {case: sha256}}')
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with what --json has written")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases of this name, as 'pair*'")
    parser.add_argument("--quick", action="store_true", help=f"leave out {', '.join(LONG)}")
    given, cpu, known = parser.parse_args(), get_host_cpu_name(), all_cases()
    before = json.loads(given.against.read_text()) if given.against else None

    def is_wanted(name: str) -> bool:
        fits = any(fnmatchcase(name, p) for p in given.only or ["*"])
        return fits and not (given.quick and any(fnmatchcase(name, p) for p in LONG))

    cases = list(filter(is_wanted, known))
    if not cases:
        parser.error(f"no case is called {given.only}; known are {', '.join(known)}")
    found, began = {}, time.perf_counter()
    for k, name in enumerate(cases):
        if (took := time.perf_counter() - began) > 2.0 and k % 10 == 0:
            print(f"{k}/{len(cases)} cases in {took:.0f} s, now {name}", file=sys.stderr, flush=True)
        found[name] = digest(known[name])
        print(f"{name:28}  {found[name]}")
    if given.json:
        given.json.write_text(json.dumps({"cpu": cpu, "cases": found}, indent=1) + "\n")
    wrong = [name for name in cases if found[name].startswith("failed")]
    if before is not None:
        gone = [name for name in before["cases"] if is_wanted(name) and name not in known]
        wrong += gone + [name for name in cases if found[name] != before["cases"].get(name) and name not in wrong]
        if wrong and before["cpu"] != cpu:
            print(f"{given.against} is of a {before['cpu']}, this is a {cpu}: last bits may differ", file=sys.stderr)
    if wrong:
        print(f"{len(wrong)} cases failed, differ, are new or gone: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
