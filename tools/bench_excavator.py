"""What a step of the excavator costs at 1 kHz while it works: digging, contacts, tires, soil and all.

    python tools/bench_excavator.py                 every row
    python tools/bench_excavator.py --seconds 30    shorter cycles

The virtual operator's cycle, as fast as possible, on one CPU and with SCHED_FIFO if the machine allows it, because
other work on the machine is none of the step's. The same cycle is the same work to the bit, so the least of several
runs of a step is what the step itself costs, and what a single run has on top of that is the machine's doing. The
paced row has every step begin with a wake-up and with caches that something else has used for most of a millisecond.
Prints tables; exit code 1 if a row misses its bound.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import numpy as np
from excavator_rig import CYCLE, Rig
from rich.console import Console
from rich.table import Table

from drivers.operator.phases import Phases
from hilnode.core.jit import kernel
from hilnode.core.struct import viewer
from hilnode.shared.clock import now_ns
from hilnode.shared.realtime import choose_cpu, make_thread_hard
from plant.engine.proximity_pool import tend_pool
from plant.machines.excavator.cab import read_cab
from plant.machines.excavator.drives import drive
from plant.machines.excavator.gauges import notice, stand
from plant.machines.excavator.hauling import haul
from plant.machines.excavator.step import Excavator, _carry, _draw_arrows, _lay_heaps, _lean, _press, _show
from plant.model import view_engine
from plant.sensor.imu import read_imus
from plant.soil.model import O_MASS
from plant.soil.step import soil_step
from plant.stages import call_stage
from plant.vehicle.tires.step import tire_wrenches

BOUND = 200.0  # [us] of 99 % of the steps
CROWDED = 1.3  # median with 200 fences far away over the median with none
PRIORITY = 80
TURNS, TURN = 40, 500  # turns of the comparison, and steps of each
PARTS = ("cab and drives", "tires", "soil", "objects, load, truck", "engine", "gauges, sensors, arrows")
console = Console()
_view = viewer(Excavator)


@kernel
def timed_step(self, n, inputs, outputs, poses, took):
    """The stages of `plant.machines.excavator.step.step` with a look at the clock after each: `took` [6] in ns."""
    x = _view(self)
    e = view_engine(x.engine)
    state, h, b = e.data.state, e.model.setup.h, x.gauges.bucket
    t0 = now_ns()
    read_cab(x.cab, inputs)
    drive(e, x.drives, x.cab)
    state.wrench[:] = 0.0
    t1 = now_ns()
    tire_wrenches(x.tires, x.ground, e.scene.field, state.pos, state.quat, state.vel, h, state.wrench)
    t2 = now_ns()
    haul(x.hauling, x.soil, x.ground, e.scene.field, state.pos[b, 0], state.pos[b, 1])
    status = soil_step(
        x.soil, x.ground, e.scene.field, state.pos[b], e.data.frame.rot[b], state.vel[b], h, state.wrench[b]
    )
    t3 = now_ns()
    _lay_heaps(x, e)
    _carry(e, x.load, x.soil.state.out[O_MASS])
    _lean(x.load, x.soil.state.out, state.quat[b], x.gravity, state.wrench[b])
    tend_pool(e, x.proximity_pool)
    t4 = now_ns()
    status += call_stage(e.model.stage.step, x.engine, 1)
    t5 = now_ns()
    _press(e, x.drives)
    stand(e, x.gauges, x.tires)
    notice(e, x.gauges)
    read_imus(x.imus, x.gravity, h, state.quat, state.vel)
    _draw_arrows(x, e)
    _show(x, e, n, outputs, poses)
    t6 = now_ns()
    took[0], took[1], took[2], took[3], took[4], took[5] = t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4, t6 - t5
    return status


class Timed(Rig):
    """A rig whose step is the timed one."""

    def begin(self, steps: int) -> None:
        self.parts = np.zeros((steps, len(PARTS)))
        self.row = 0

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            status = timed_step(self._self, self.steps, self.inputs, self.outputs, self.poses, self.parts[self.row])
            if status != 0:
                raise RuntimeError(f"step {self.steps}: status {status}")
            self.steps += 1
            self.row += 1


def rest(rig: Rig) -> None:
    """Let others run for a moment now and then: Linux stops a thread of SCHED_FIFO that never does, for 50 ms."""
    if rig.steps % 2000 == 0:
        time.sleep(0.02)


def cycle(name: str, seconds: float, table: Table, **options: object) -> bool:
    """The work cycle; a row of the table, and whether it keeps its bound."""
    rig, hands = Rig(**options), Phases.from_file(str(CYCLE))
    rig.work(hands, 2.0)
    rig.took, most, contact = [], 0, rig.engine.content.data.contact

    def look() -> None:
        nonlocal most
        most = max(most, int(contact.count[0]))
        rest(rig)

    rig.work(hands, seconds, look)
    return _row(name, np.array(rig.took) * 1e-3, table, f"{most}")


def alone(seconds: float, table: Table, runs: int = 3) -> bool:
    """Of each step of the same cycle the least of several runs: the work without the machine's disturbances."""
    least = np.full(0, np.inf)
    for _ in range(runs):
        rig, hands = Rig(), Phases.from_file(str(CYCLE))
        rig.work(hands, 2.0)
        rig.took = []
        rig.work(hands, seconds, lambda rig=rig: rest(rig))  # type: ignore[misc]
        took = np.array(rig.took) * 1e-3
        least = np.minimum(least, took) if least.size else took
    return _row(f"the same, least of {runs} runs", least, table)


def fences(table: Table) -> None:
    """Through 200 fences and cones in second gear: no bound, since nobody works like that."""
    rig, most, contact = Rig(objects=200, posture={"blade": 0.0}), 0, 0
    rig.hold(drive=1.0, gear=2.0)
    rig.took = []
    for _ in range(900):
        rig.step(10)
        most = max(most, int(rig["objects"]))
        contact = max(contact, int(rig.engine.content.data.contact.count[0]))
        rest(rig)
    p50, p99, last = np.percentile(np.array(rig.took) * 1e-3, [50, 99, 100])
    name = f"through 200 fences and cones, {most} at a time"
    table.add_row(name, f"{p50:.0f}", f"{p99:.0f}", f"{last:.0f}", "", f"{contact}", "none")


def _row(name: str, took: np.ndarray, table: Table, contacts: str = "") -> bool:
    """Times [us] of all steps as a row, and whether it keeps the bound."""
    p50, p99, last = np.percentile(took, [50, 99, 100])
    good = bool(p99 <= BOUND)
    rtf = f"{1e3 / took.mean():.1f}"
    bound = f"p99 <= {BOUND:.0f}: {'yes' if good else 'NO'}"
    table.add_row(name, f"{p50:.0f}", f"{p99:.0f}", f"{last:.0f}", rtf, contacts, bound)
    return good


def paced(seconds: float, table: Table) -> bool:
    """The same in real time: a step every millisecond, with caches as cold as they are then."""
    rig, hands = Rig(), Phases.from_file(str(CYCLE))
    rig.work(hands, 12.0)
    rig.took = []
    began, periods = time.perf_counter(), 0

    def wait() -> None:
        nonlocal periods
        periods += 1
        time.sleep(max(0.0, began + 1e-3 * periods - time.perf_counter()))

    plain = rig.step

    def step(count: int = 1) -> None:
        for _ in range(count):
            wait()
            plain()

    rig.step = step  # type: ignore[method-assign]
    rig.work(hands, seconds)
    return _row("spook guided, paced at 1 kHz", np.array(rig.took) * 1e-3, table)


def far_objects() -> tuple[float, float]:
    """Medians [us] of a step with no objects, and with 200 far away, in turns."""
    rigs = [Rig(objects=0), Rig(objects=200)]
    pool = rigs[1].plant.owner[1].content.proximity_pool  # type: ignore[index]
    pool.pose[:, :2] += 60.0 * pool.pose[:, :2] / np.linalg.norm(pool.pose[:, :2], axis=1)[:, None]
    took: list[list[int]] = [[], []]
    for rig in rigs:
        rig.hold(parking=1.0)
        rig.run(2.0)
    for _ in range(TURNS):
        for k, rig in enumerate(rigs):
            rig.took = took[k]
            rig.step(TURN)
            rest(rig)
    if rigs[1]["objects"] != 0:
        raise RuntimeError("an object that was put far away takes part")
    return float(np.median(took[0])) * 1e-3, float(np.median(took[1])) * 1e-3


def parts(seconds: float) -> np.ndarray:
    """[steps, parts] us of the parts of a step over the work cycle."""
    steps = round(seconds * 1000)
    rig, hands = Timed(), Phases.from_file(str(CYCLE))
    rig.begin(steps + 2000)
    rig.work(hands, 2.0)
    rig.work(hands, seconds, lambda: rest(rig))
    return np.asarray(rig.parts[2000 : rig.row] * 1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated time of each cycle")
    seconds = parser.parse_args().seconds
    Rig().step()  # what there is to compile is compiled before anything is pinned
    Rig(stepper="ali3p").step()
    warm = Timed()
    warm.begin(1)
    warm.step()
    for line in make_thread_hard(choose_cpu("auto"), PRIORITY):
        console.print(line, markup=False)
    gc.freeze()
    table = Table("step of the whole machine", "p50", "p99", r"most \[us]", "times real time", "contacts", "bound")
    good = cycle("spook, guided cylinders", seconds, table)
    good &= alone(seconds, table)
    good &= cycle("spook, hydraulic cylinders", seconds, table, hydraulics=True)
    good &= cycle("ali3p, guided cylinders", seconds, table, stepper="ali3p")
    good &= paced(min(seconds, 20.0), table)
    fences(table)
    console.print(table)
    none, far = far_objects()
    ratio = far / none
    good &= ratio <= CROWDED
    console.print(
        f"200 fences and cones far away: {far:.1f} us, none: {none:.1f} us, ratio {ratio:.2f} "
        f"(bound {CROWDED}: {'yes' if ratio <= CROWDED else 'NO'})"
    )
    shares = Table("part of a step, spook", "p50", "p99", r"most \[us]")
    took = parts(seconds)
    for name, column in zip((*PARTS, "all"), (*took.T, took.sum(axis=1)), strict=True):
        shares.add_row(name, *(f"{v:.1f}" for v in np.percentile(column, [50, 99, 100])))
    console.print(shares)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
