"""The soil's arrays: its parameters, the bucket that digs it, and the places in which soil is kept.

Every cubic metre is in exactly one of these places, and moves between them by the kernels of this folder:

    bank     soil as it grew, in the samples of a patch below their loose layer
    heap     the loose layer on top of the samples
    POOL     cut, but not yet through the mouth of the bucket
    BUCKET   in the bucket
    PUSH     cut, and pushed aside: about to be laid down before the lip
    POUR     out of the bucket, about to fly
    parcels  flying
    REST     what rounding has left over, laid down with the next parcel
    GONE     fallen where there is no ground

All of them count bank volume, which is mass over bank density; loose soil takes `bulking` times as much room. Heights
and loose layers are whole numbers of quanta of 2^-36 m, so that adding and taking away is exact in floating point, and
sums over a patch are kept as integers. The other places add up with the error of each addition kept (Neumaier).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilnode.core.jit import inline
from hilnode.core.struct import F1, F2, I1, U1, viewer

QUANTA = float(2**36)  # in a metre
QUANTUM = 1.0 / QUANTA  # [m]

BUCKET, POOL, PLACE, PUSH, POUR, REST, GONE, WORK = range(8)
"""Accounts: all bank volumes [m^3] but PLACE, the room that the pool took where it lay [m^3], and WORK [J]."""
ACCOUNTS = 8

SCENERY, BED, SOIL = 0, 1, 2
"""What may be dug of a patch: nothing, the loose layer on it, all of it."""

FULL_EVENTS, STRIKES, PATCHES, LANDINGS = range(4)
"""Counters: bucket filled to its capacity, pipes struck, patches laid, parcels landed."""
COUNTERS = 4

OUT = (
    ("bucket.volume", "m^3", "bank volume in the bucket"),
    ("bucket.mass", "kg", "mass in the bucket"),
    ("bucket.fill", "1", "loose volume in the bucket over its struck capacity"),
    ("bucket.capacity", "m^3", "bank volume that the bucket can hold as it is turned"),
    ("bucket.load_x", "m", "centre of the load from the centre of mass, in the bucket's frame"),
    ("bucket.load_y", "m", ""),
    ("bucket.load_z", "m", ""),
    ("dig.force_x", "N", "digging force on the bucket in world axes"),
    ("dig.force_y", "N", ""),
    ("dig.force_z", "N", ""),
    ("dig.depth", "m", "how far the lip is below the surface before it, mean over the width"),
    ("dig.work", "J", "work done against the digging force"),
    ("soil.bank", "m^3", "soil that grew there, against the start"),
    ("soil.heap", "m^3", "loose soil on all patches, in bank volume"),
    ("soil.cut", "m^3", "cut and not yet in the bucket or laid down"),
    ("soil.air", "m^3", "flying"),
    ("soil.gone", "m^3", "fallen where there is no ground"),
    ("pipe.speed", "m/s", "speed at which a pipe was first struck last"),
)
"""What the soil tells of itself: name, unit, meaning of each entry of `State.out`."""

(
    O_VOLUME,
    O_MASS,
    O_FILL,
    O_CAPACITY,
    O_LOAD_X,
    O_LOAD_Y,
    O_LOAD_Z,
    O_FORCE_X,
    O_FORCE_Y,
    O_FORCE_Z,
    O_DEPTH,
    O_WORK,
    O_BANK,
    O_HEAP,
    O_CUT,
    O_AIR,
    O_GONE,
    O_PIPE,
) = range(len(OUT))


class Kind(NamedTuple):
    """Constants of the soil, see `plant.soil.kind.SoilKind`."""

    density: float  # [kg/m^3] bank
    bulking: float  # loose volume / bank volume
    repose: float  # tangent of the slope at which sliding ends
    slide: float  # tangent of the slope at which it begins
    wall: float  # tangent of the slope at which bank soil breaks
    mu_dig: float
    sigma_1: float
    sigma_2: float
    power_m: float
    power_n: float
    mu_cp: float
    flow_time: float  # [s]
    spread: float  # [m] sigma of a landing parcel
    rays: int  # n_r
    gravity: float  # [m/s^2]


class Tool(NamedTuple):
    """Constants of the bucket, in its frame and measured from its centre of mass; see `plant.soil.bucket.Bucket`."""

    lip: F2  # [2, 3] left and right end of the cutting edge
    axis: F2  # [3, 3] rows: along the lip to the right, along the mouth to the hinge, through the mouth inwards
    edge: F1  # [3] where the cutting plate points: the direction of excavation
    plane: F2  # [f, 4] hull: outward normal and distance
    empty_centre: F1  # [3] of the first soil in it
    full_centre: F1  # [3]
    reach: float  # [m] length 2r of the mouth from lip to hinge
    width: float  # [m]
    radius: float  # [m] of the hull about the centre of mass
    struck: float  # [m^3]
    heaped: float  # [m^3]
    lip_begin: float  # [rad] tilt over the lip at which soil begins to leave, and at which all has left
    lip_end: float
    hinge_begin: float
    hinge_end: float
    slices: int
    lip_mass: float  # [kg] no force may stop more than this within a step
    weigh: int  # 1 = the weight of the load is part of the wrench


class Land(NamedTuple):
    """The patches of the ground as soil."""

    diggable: I1  # [p] SCENERY, BED or SOIL
    reserve: I1  # [p] 1 = laid down where soil lands on scenery
    low: F1  # [p] least and greatest height above `ground.at` that a sample may have [m]
    high: F1
    area: F1  # [p] of a sample [m^2]
    loose: F1  # [h] height of the loose layer of each sample of `field.height` [m]
    bank: I1  # [p] sum of the heights below the loose layers, against the start [quanta]
    heap: I1  # [p] sum of the loose layers [quanta]
    cell: float  # [m] widest spacing of a patch that may be dug
    bottom: float  # [m] below all ground


class Queue(NamedTuple):
    """Samples whose slope is to be looked at, first come first served; each stands in it once at most."""

    item: I1  # [n + 1] patch x stride + sample
    queued: I1  # [h] 1 = it stands in the queue
    ends: I1  # [2] next to take, next to fill
    stride: int
    budget: int  # samples looked at in a step


class Parcels(NamedTuple):
    """Soil in flight, a ring; volume 0 = a free place."""

    volume: F1  # [n] bank [m^3]
    start: F2  # [n, 3]
    speed: F2  # [n, 3] at the start
    time: F1  # [n] since then [s]
    ends: I1  # [2] oldest, next to fill
    since: F1  # [1] time since the last launch [s]


class Pipes(NamedTuple):
    """Capsules in the ground that must not be struck."""

    a: F2  # [k, 3] ends of the axis [m]
    b: F2
    radius: F1  # [k]
    strength: F1  # [k] force with which it resists [N]
    struck: I1  # [k] latched
    speed: F1  # [k] at the first touch [m/s]
    place: F2  # [k, 3] of the first touch


class State(NamedTuple):
    """What changes each step."""

    account: F1  # [ACCOUNTS]
    error: F1  # [ACCOUNTS] of the additions so far, to be added
    lip: F2  # [2, 3] ends of the lip in the world, of the last step
    lip_now: F2  # [2, 3] of this step
    known: I1  # [1] 1 = there was a last step
    frame: F2  # [3, 3] the rows of `Tool.axis` in the world
    ahead: F1  # [2] level direction before the lip; zero if the bucket lies on its side
    at: F2  # [n, 3] middle of each slice of the lip
    vel: F2  # [n, 3]
    depth: F1  # [n] below the uncut surface, at right angles to it [m]
    fill: F1  # [n] d_fill [m]
    inflow: F1  # [n] speed of soil through the mouth at d_fill / 2 [m/s]
    force: F1  # [3] of digging
    capacity: F1  # [1] as it is turned now, bank [m^3]
    full: I1  # [1] 1 = has been counted as full
    laying: I1  # [2] patch that is being laid, -1 = none, and its next sample
    counter: I1  # [COUNTERS]
    random: U1  # [1] counter of the generator
    out: F1  # as in OUT


class Start(NamedTuple):
    """As it was in the beginning."""

    height: F1
    loose: F1
    heap: I1
    on: I1
    at: F2
    seed: U1


class Soil(NamedTuple):
    """All of it."""

    kind: Kind
    tool: Tool
    land: Land
    queue: Queue
    parcel: Parcels
    pipe: Pipes
    state: State
    start: Start


view_soil = viewer(Soil)


@inline
def book(soil, k, amount):
    """Add to an account, and keep what the addition has lost."""
    a, e = soil.state.account, soil.state.error
    s = a[k] + amount
    if abs(a[k]) >= abs(amount):
        e[k] += (a[k] - s) + amount
    else:
        e[k] += (amount - s) + a[k]
    a[k] = s


@inline
def held(soil, k):
    """What an account holds."""
    return soil.state.account[k] + soil.state.error[k]


@inline
def clear(soil, k):
    """Take all of an account."""
    amount = soil.state.account[k] + soil.state.error[k]
    soil.state.account[k] = 0.0
    soil.state.error[k] = 0.0
    return amount


def new_state(slices: int, seed: int) -> State:
    """Nothing dug yet."""
    return State(
        account=np.zeros(ACCOUNTS),
        error=np.zeros(ACCOUNTS),
        lip=np.zeros((2, 3)),
        lip_now=np.zeros((2, 3)),
        known=np.zeros(1, np.int64),
        frame=np.eye(3),
        ahead=np.zeros(2),
        at=np.zeros((slices, 3)),
        vel=np.zeros((slices, 3)),
        depth=np.zeros(slices),
        fill=np.zeros(slices),
        inflow=np.zeros(slices),
        force=np.zeros(3),
        capacity=np.zeros(1),
        full=np.zeros(1, np.int64),
        laying=np.array([-1, 0]),
        counter=np.zeros(COUNTERS, np.int64),
        random=np.array([seed], np.uint64),
        out=np.zeros(len(OUT)),
    )
