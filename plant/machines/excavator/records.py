"""The structs that the step of one machine on one site works on, built from World, engine and parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plant.constraint.cylinder_linkage import linkage_of
from plant.engine.compile import Engine
from plant.engine.proximity_pool import ProximityPool, build_pool
from plant.machines.excavator.cab import INPUTS, Cab
from plant.machines.excavator.drives import Drives
from plant.machines.excavator.gauges import OUTPUTS, PINS, Gauges
from plant.machines.excavator.hauling import new_hauling
from plant.machines.excavator.mechanism import CYLINDER_JOINT, DRIVES, WHEELS, Machine, bucket_profile, load_centre
from plant.machines.excavator.parameters import Parameters
from plant.machines.excavator.sensing import sensed, sensors_of
from plant.machines.excavator.site import (
    BED_LENGTH,
    BED_WALL,
    BED_WIDTH,
    CONE_SPARES,
    FENCE_SPARES,
    HEAPS,
    PIPE,
    Site,
    objects,
    patches,
)
from plant.machines.excavator.step import Excavator, Load
from plant.sensor.imu import Imu, build_imus
from plant.soil.bucket import Bucket
from plant.soil.build import build_soil
from plant.soil.buried import Pipe
from plant.soil.ground import build_ground
from plant.soil.kind import SoilKind
from plant.vehicle.tires.composite_slip import CompositeSlip
from plant.vehicle.tires.fiala import Fiala
from plant.vehicle.tires.magic_formula import MagicFormula
from plant.vehicle.tires.model import Tire, Wheel, build_tires
from plant.velocity.reset import start_of
from plant.world.rotations import rotated

TIRES = {"magic_formula": MagicFormula, "fiala": Fiala, "composite_slip": CompositeSlip}
CONTACTS, CROWDED = 96, 320  # at a time, at most; with all spare fences and cones lying about
TRUCK_FULL = 0.75  # of the bed's volume up to its walls: a heap over them would spill
TRUCK_CLEAR = 1.5  # [m] from the bed that the bucket's centre of mass must be when the truck drives off
LIP_MASS = 1500.0  # [kg] what the digging force may stop within a step


def build_records(
    engine: Engine,
    machine: Machine,
    p: Parameters,
    site: Site,
    tires: str,
    kind: SoilKind,
    hydraulic: bool,
    sensors: Mapping[str, Any] | None,
    seed: int,
) -> Excavator:
    """Everything that the step works on."""
    scene, names = engine.content.scene, patches(site)
    ground = build_ground(scene, list(names.values()))
    number = {name: k for k, name in enumerate(names)}
    reserve = [number[f"heap{k}"] for k in range(HEAPS)]
    soil = build_soil(
        scene,
        ground,
        kind,
        _bucket(p),
        soil=[number["terrain"]],
        beds=[number["truck"]] if "truck" in number else [],
        reserve=reserve,
        pipes=[Pipe(*PIPE)] if site.pipe else [],
        com=p.point("bucket.com"),
        seed=seed,
    )
    wheels = build_tires([Wheel(engine.index(name), tire_of(p, tires)) for name in WHEELS])
    wheels.grip[:] = p["tire.grip"]
    room = 4 + contacts_of(site) + 1
    load = engine.index("load")
    core = engine.content.model.setup.core
    base = engine.core.content.frame.mass[load].copy() if engine.core is not None else np.zeros((4, 4))
    heap = np.array([engine.index(f"heap{k}") for k in range(HEAPS)], np.int64)
    pool, prop_pose, prop_stamp = _props(engine, _proximity_pool(engine, site), heap)
    return Excavator(
        engine=engine.record.address,
        cab=_cab(),
        drives=_drives(engine, machine, p, hydraulic),
        ground=ground,
        tires=wheels,
        soil=soil,
        hauling=new_hauling(
            number.get("truck", -1), TRUCK_FULL * BED_LENGTH * BED_WIDTH * BED_WALL / kind.bulking, TRUCK_CLEAR
        ),
        proximity_pool=pool,
        gauges=_gauges(engine, machine, p),
        imus=build_imus([Imu(engine.index("uppercarriage"))]),
        sensors=sensors_of(OUTPUTS, sensors, seed),
        gravity=np.array(machine.world.gravity, float),
        load=Load(load, core, base, load_centre(p) - np.array(p.point("bucket.com"))),
        shown=np.array([engine.index(name) for name in parts(engine)], np.int64),
        heap=heap,
        heap_patch=np.array(reserve, np.int64),
        prop_pose=prop_pose,
        prop_stamp=prop_stamp,
        arrow_stamp=np.zeros(1, np.int64),
        arrow_count=np.zeros(1, np.int64),
        arrow_at=np.zeros((room, 3)),
        arrow_force=np.zeros((room, 3)),
        start=start_of(engine.content.data),
    )


def _props(
    engine: Engine, pool: ProximityPool, heap: NDArray[np.int64]
) -> tuple[ProximityPool, NDArray[Any], NDArray[np.int64]]:
    """The pool, and all that displays are told of in one piece: first its objects, which live there, then the heaps."""
    objects, count = len(pool.stamp), len(pool.stamp) + len(heap)
    pose, stamp = np.zeros((count, 7)), np.zeros(count, np.int64)
    pose[:, 3] = 1.0
    pose[:objects] = pool.pose
    pose[objects:, :3] = engine.content.data.state.pos[heap]
    return pool._replace(pose=pose[:objects], stamp=stamp[:objects]), pose, stamp


def pins(engine: Engine) -> tuple[str, ...]:
    """Joints whose force the step finds: none where they are points that two bodies share, which have no multiplier."""
    return PINS if engine.core is None else ()


def contacts_of(site: Site) -> int:
    """Room for contacts: fences and cones bring theirs."""
    return CROWDED if site.spares and site.objects else CONTACTS


def parts(engine: Engine) -> list[str]:
    """The bodies of the machine itself, without what stands about on the site."""
    return [name for name in engine.names if name and not name.startswith(("fence", "cone", "heap"))]


def _bucket(p: Parameters) -> Bucket:
    half, r = p["bucket.width"] / 2, p["bucket.radius"]
    return Bucket(
        hull=[(x, y, z) for x, z in bucket_profile(p) for y in (-half, half)],
        left=(r, half, 0.0),
        right=(r, -half, 0.0),
        hinge=(0.06 * r, 0.0, 0.0),
        struck=p["bucket.struck"],
        heaped=p["bucket.heaped"],
        lip_mass=LIP_MASS,
        weigh=False,
    )


def _cab() -> Cab:
    return Cab(
        range=np.array([(s.low, s.high) for s in INPUTS], float),
        safe=np.array([s.safe for s in INPUTS], float),
        lever=np.array([s.default for s in INPUTS], float),
        ask=np.zeros(4),
        clamped=np.zeros(1),
    )


def tire_of(p: Parameters, law: str) -> Tire:
    """The tire of each wheel."""
    return Tire(
        law=TIRES[law](),
        radius=p["wheel.radius"],
        width=p["wheel.width"],
        stiffness=p["tire.stiffness"],
        damping=p["tire.damping"],
    )


def _drives(engine: Engine, machine: Machine, p: Parameters, hydraulic: bool) -> Drives:
    acts, joints, world = engine.actuator_names, engine.joint_names, machine.world

    def areas(name: str) -> tuple[float, float]:
        bore, rod = p[f"{name}.cylinder.bore"], p[f"{name}.cylinder.rod"]
        return math.pi / 4 * bore**2, math.pi / 4 * (bore**2 - rod**2)

    linkages = []
    for name in DRIVES:
        joint = world.joints[CYLINDER_JOINT[name]]
        linkages.append(linkage_of(joint.at, rotated(joint.quat, np.array([0, 0, 1.0])), *machine.pins[name]))
    corners = [w.removeprefix("wheel_") for w in WHEELS]
    side = p["track"] / 2
    ahead = np.array([p["axle.front" if "front" in c else "axle.rear"] for c in corners])
    starts = {"blade": machine.posture.blade, "outrigger": machine.posture.outriggers}
    return Drives(
        cylinder=np.array([acts.index(f"{name}_cylinder") for name in DRIVES], np.int64),
        joint=np.array([joints.index(CYLINDER_JOINT[name]) for name in DRIVES], np.int64),
        linkage=np.array(linkages),
        length=np.array([p.point(f"{name}.cylinder.lengths") for name in DRIVES]),
        area=np.array([areas(name) for name in DRIVES]),
        speed=np.array([p[f"{name}.speed"] for name in DRIVES]),
        out=np.array([1.0, -1.0, -1.0]),
        lag=p["lever.time"],
        hydraulic=int(hydraulic),
        swing=acts.index("swing_drive"),
        swing_joint=joints.index("swing"),
        swing_speed=p["swing.speed"],
        swing_time=p["swing.time"],
        blade=np.array([acts.index("blade_drive"), joints.index("blade_pin")], np.int64),
        outrigger=np.array(
            [
                *(acts.index(f"outrigger_{s}_drive") for s in ("left", "right")),
                *(joints.index(f"outrigger_{s}_pin") for s in ("left", "right")),
            ],
            np.int64,
        ),
        tool_speed=np.array([p["blade.speed"], p["outrigger.speed"]]),
        tool_range=np.array([np.array(p.point(f"{name}.range")) - starts[name] for name in ("blade", "outrigger")]),
        steer=np.array([acts.index(f"steer_{c}") for c in corners], np.int64),
        ahead=np.array([ahead - p["axle.rear"], ahead - 0.5 * (p["axle.front"] + p["axle.rear"])]),
        right=np.array([-side if "left" in c else side for c in corners]),
        turned=np.zeros(4),
        steer_most=p["steer.most"],
        steer_speed=p["steer.speed"],
        hull=engine.index("undercarriage"),
        wheel=np.array([acts.index(f"drive_{c}") for c in corners], np.int64),
        brake=np.array([acts.index(f"brake_{c}") for c in corners], np.int64),
        radius=p["wheel.radius"],
        gear=np.array(p.point("drive.gears")),
        drive_speed=p["drive.speed"],
        drive_pull=p["drive.pull"],
        brake_torque=p["brake.torque"],
        relief=p["pump.relief"],
        margin=p["pump.margin"],
        flow=p["pump.flow"],
        power=p["engine.power"],
        idle=p["engine.idle"],
        rated=p["engine.rated"],
        goal=np.zeros(len(acts)),
        moving=np.zeros(4),
        steering=np.zeros(1),
        engine=np.array([p["engine.idle"]]),
        stroke=np.ones((3, 2)),
        pressure=np.zeros((3, 2)),
        pump=np.zeros(2),
    )


def _proximity_pool(engine: Engine, site: Site) -> ProximityPool:
    poses, kinds, radii = objects(site)
    spares = []
    if site.spares and site.objects:
        spares = [(f"fence{k}", 0) for k in range(FENCE_SPARES)] + [(f"cone{k}", 1) for k in range(CONE_SPARES)]
    seekers = [
        ("undercarriage", 2.3),
        ("uppercarriage", 2.6),
        ("boom", 3.0),
        ("stick", 1.9),
        ("bucket", 1.2),
        ("blade", 1.4),
    ]
    return build_pool(engine, poses=np.array(poses), kinds=kinds, radii=radii, spares=spares, seekers=seekers, near=0.6)


def _gauges(engine: Engine, machine: Machine, p: Parameters) -> Gauges:
    joints, posture = engine.joint_names, machine.posture
    names = ("boom_pin", "stick_pin", "bucket_pin", "swing", "blade_pin", "outrigger_left_pin", "axle_front_left")
    zero = (posture.boom, posture.stick, posture.bucket, posture.swing, posture.blade, posture.outriggers, 0.0)
    delicate, own = np.zeros((2, len(engine.names)), np.int64)
    for name in parts(engine):
        own[engine.index(name)] = 1
    for name in ("undercarriage", "uppercarriage", "boom", "stick"):
        delicate[engine.index(name)] = 1
    materials, pair = engine.material_names, engine.content.model.material.pair
    collides = np.zeros(int(pair.max()) + 1, np.int64)
    metals = [materials.index(name) for name in ("steel", "cleat")]
    for metal in metals:
        collides[pair[metal, metals]] = collides[pair[metal, materials.index("plastic")]] = 1
    return Gauges(
        joint=np.array([joints.index(name) for name in names], np.int64),
        zero=np.array(zero),
        part=np.array([engine.index(name) for name in parts(engine)], np.int64),
        own=own,
        delicate=delicate,
        pair=collides,
        hull=engine.index("undercarriage"),
        bucket=engine.index("bucket"),
        teeth=np.array([p["bucket.radius"], 0.0, 0.0]) - np.array(p.point("bucket.com")),
        support=np.zeros((24, 3)),
        order=np.zeros(24, np.int64),
        margin=np.zeros(3),
        collisions=np.zeros(1, np.int64),
        pin=np.array([joints.index(name) for name in pins(engine)], np.int64),
        first_pull=len(OUTPUTS) + len(sensed(OUTPUTS)),
    )
