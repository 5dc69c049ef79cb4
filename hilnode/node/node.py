"""The node: puts a plant, its drivers, the tick and the helper processes together, and takes them apart again.

    with Node(load("bench.toml")) as node:      # node.autostart: it arms and runs by itself
        node.start()
        node.force("pendulum.shoulder.torque", 2.0)
        node.wait(5.0)

The only place besides the CLI where the rooms meet.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from drivers import registry as driver_kinds
from drivers.base import Driver, OptionError
from drivers.ecu import Ecu
from drivers.runner import Runner
from drivers.stand_in import StandIn
from drivers.twin import Twin
from hilnode.config.assemble import Buffers, assemble
from hilnode.config.config import Config
from hilnode.config.key_check import check_keys
from hilnode.config.wiring import resolve
from hilnode.core import jit
from hilnode.core.signals import UnknownName, nearest
from hilnode.core.struct import Struct
from hilnode.node.child_specs import bridge_spec, ecu_spec, timing_recorder_spec, watchdog_spec
from hilnode.node.children import LONGEST_WAIT, Child
from hilnode.node.display_copier import DisplayCopier, layout_of
from hilnode.node.operate import Operate
from hilnode.node.ports import PortBusy, PortRefused, check_free
from hilnode.node.recorder_spec import recorder_spec
from hilnode.node.rpc_methods import rpc_methods
from hilnode.node.run_folder import write_run_file
from hilnode.node.stats import Stats, Timing
from hilnode.node.supervisor import Supervisor
from hilnode.node.web_child import web_spec, why_not
from hilnode.shared import realtime
from hilnode.shared.codes import EVENT_WIDTH, Command, ExitCode
from hilnode.shared.command_ring import CommandRing
from hilnode.shared.control import Control, Word
from hilnode.shared.display_state import DisplayState
from hilnode.shared.ecu_link import EcuLinks
from hilnode.shared.events import Happening
from hilnode.shared.health import HEALTH_KIND, HEALTH_WORDS, H, Health, state_of
from hilnode.shared.local_rpc import LocalRpc
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.lockfree.segment import Segment
from hilnode.shared.row import Col, Schema, State
from hilnode.tick.layout import Exit, L
from hilnode.tick.loop import run
from plant import registry as plant_kinds
from plant.abi import Task

log = logging.getLogger("hilnode")

EVENTS = 4096  # kept in the ring
RECORDER_READY_WITHIN = 30.0  # [s] a recording without its first row can not be run again
RECORDER_AWAY = 0.25  # of what the ring holds: a dead recorder is back by then, and finds every row still there
CHILD_ENDS_WITHIN = 10.0  # [s] the recorder may have a file to finish


class StartFailed(RuntimeError):
    """A helper that the node can not do without did not come up."""


class Part(Protocol):
    """Something that must be closed."""

    def close(self) -> None: ...


PartT = TypeVar("PartT", bound=Part)


class Node(Operate):
    """One node, from configuration to the end. Use it as a context manager: leaving it makes the devices safe."""

    def __init__(
        self,
        config: Config,
        *,
        directory: Path | None = None,
        last_tick: int = 0,
        say: Callable[[str], None] = log.info,
        extra_tasks: Sequence[Task] = (),
    ) -> None:
        """Build everything, start nothing.

        `last_tick` ends the loop after that many ticks (0: never); `extra_tasks` run after the plant's own.
        """
        self.config = config
        self.directory = directory
        self.notes: list[str] = []  # what the machine refused, one line each
        self.tripped: Happening | None = None  # the trip that has not been cleared
        self.refused = ""  # why it never ran
        self.stuck = False
        self.ended = threading.Event()
        self._tick_ready = threading.Event()
        self._say = say
        self.began_ns = time.monotonic_ns()
        self.extra_tasks = tuple(extra_tasks)
        self._opened = contextlib.ExitStack()
        try:
            self._build(last_tick)
        except BaseException:
            self._opened.close()
            raise

    # -- putting together -----------------------------------------------------------------------------------------

    def _build(self, last_tick: int) -> None:
        c = self.config
        kind = re.sub(r"\W", "_", c.plant.kind)
        jit.warm_up(f"plant-{kind}", [(f"the plant {c.plant.kind}", self._make_plant)], self._say)
        self.pairs = {n: driver_kinds.create_pair(d.kind, n, d.options, c.source.folder) for n, d in c.drivers.items()}
        self.drivers: dict[str, Driver] = {  # those that are in: the device or its twin
            n: pair[c.drivers[n].twin is not False] for n, pair in self.pairs.items()
        }
        self.stand_ins = {n: twin.actor.kind for n, (_, twin) in self.pairs.items() if isinstance(twin, StandIn)}
        self.ecus = {n: real for n, (real, _) in self.pairs.items() if isinstance(real, Ecu)}
        if not c.bridge.enabled and (alone := [n for n in self.ecus if c.drivers[n].twin is False]):
            raise OptionError(f"drivers.{alone[0]}: an ECU comes in by the bridge: set bridge.enabled = true")
        self.wiring = resolve(
            c,
            plant_inputs=self.plant.inputs,
            plant_outputs=self.plant.outputs,
            plant_parameters=self.plant.parameters,
            device_inputs={n: d.inputs for n, d in self.drivers.items()},
            device_outputs={n: d.outputs for n, d in self.drivers.items()},
        )
        self.schema = Schema(
            c.node.period_ns,
            self.plant.inputs,
            self.plant.outputs,
            tuple(m.signal for m in self.wiring.commands),
            self.plant.bodies,
        )
        self.cpu = realtime.choose_cpu(c.node.cpu)
        self._share_memory()
        if c.log.record and not importlib.util.find_spec("mcap"):
            raise StartFailed("log.record needs the package mcap: pip install 'hilnode[record]'")
        if c.bridge.enabled:
            check_keys(c)
            check_free("bridge.publish", c.bridge.publish)
            check_free("bridge.commands", c.bridge.commands)
            if c.bridge.metrics:
                check_free("bridge.metrics", c.bridge.metrics)
            self.lane_address = self._check_lane(c.bridge.ecu)
        write_run_file(self)
        self.watchdog = self._start_watchdog()
        self.tick = assemble(c, self.wiring, self.schema, self.plant, self._buffers, last_tick=last_tick)
        self._record = Struct(self.tick)
        self.stats = Stats(self._rows)
        self.events = self._events.reader()
        kernels = [("the tick", self._dry_run), ("the status line", self.stats.feed), ("the events", self.events.read)]
        jit.warm_up("node", kernels, self._say)
        self.helpers = self._start_helpers()
        self.runners = {n: self._make_runner(n) for n in self.drivers}
        self._thread = threading.Thread(target=self._tick_thread, name="tick", daemon=True)
        self._supervisor = Supervisor(self, self._say)
        self._rpc = LocalRpc(c.node.name, rpc_methods(self))

    def _check_lane(self, address: str) -> str:
        """Where ECUs are answered; nowhere if the address is taken and there is no seat for one anyway."""
        try:
            check_free("bridge.ecu", address)
        except (PortBusy, PortRefused) as error:
            if self.ecus:
                raise
            self.notes.append(f"{error}; the node runs without it: no driver is an ECU")
            return ""
        return address

    def _make_plant(self) -> None:
        c = self.config
        made = plant_kinds.create(c.plant.kind, c.node.period_ns * 1e-9, c.plant.options)
        self.plant = replace(made, tasks=(*made.tasks, *self.extra_tasks))

    def _share_memory(self) -> None:
        name = self.config.node.name
        self.control = Control.create(name)  # first: this is what refuses a second node of the same name
        self._opened.callback(self.control.close)
        self.control[Word.PID] = os.getpid()
        capacity = max(64, round(self.config.log.ring_seconds * 1e9 / self.config.node.period_ns))
        self._rows = self._owned(
            Ring.create(f"{name}.rows", capacity=capacity, width=self.schema.words, schema=self.schema.hash)
        )
        self._events = self._owned(Ring.create(f"{name}.events", capacity=EVENTS, width=EVENT_WIDTH))
        commands = self._owned(CommandRing(f"{name}.commands"))
        Operate.__init__(self, commands, self.control, self.schema, self.wiring, self.plant.parameters)
        words = HEALTH_WORDS * max(1, len(self.drivers))
        self._health = self._owned(Segment.create(f"{name}.health", kind=HEALTH_KIND, words=words)).words.reshape(
            -1, HEALTH_WORDS
        )
        for record, driver in zip(self._health, self.drivers.values(), strict=False):
            record[H.REAL] = int(not isinstance(driver, Twin))  # before the watchdog starts: it gets ready for these
        driven = {n: sum(m.driver == n for m in self.wiring.commands) for n in self.drivers}
        inboxes = {
            n: self._owned(Mailbox.create(f"{name}.in.{n}", channels=len(d.inputs)))
            for n, d in self.drivers.items()
            if d.inputs
        }
        outboxes = {n: self._owned(Mailbox.create(f"{name}.out.{n}", channels=k)) for n, k in driven.items() if k}
        rings = [self._command_ring.ring]
        if self.ecus:
            self._ecu_links = self._owned(EcuLinks.create(name, len(self.ecus)))
            rings.append(self._owned(CommandRing(f"{name}.grants")).ring)  # the bridge is its one writer
        self._copier: DisplayCopier | None = None
        self.display_layout = layout_of(self.plant)
        if self.display_layout:
            display = self._owned(DisplayState.create(name, self.display_layout))
            self._copier = self._owned(DisplayCopier(self.plant, display))
            self._copier.look()
        self._buffers = Buffers(self.control.segment.address, self._rows, self._events, rings, inboxes, outboxes)

    def _owned(self, part: PartT) -> PartT:
        """Have it closed at the end, also when what comes next fails."""
        self._opened.callback(part.close)
        return part

    def _dry_run(self) -> None:
        """Compile and warm the loop: run it once with its end already asked for."""
        live = self.tick.live.i.copy()
        self.control[Word.STOP] = 1
        run(self._record.address)
        self.tick.live.i[:] = live
        self.control[Word.STOP] = self.control[Word.HEARTBEAT] = self.control[Word.STATE] = 0

    def _start_watchdog(self) -> Child | None:
        if not self.config.safety.watchdog:
            return None
        child = Child("hilnode.node.watchdog", watchdog_spec(self), log=self._file("watchdog.log"), revive=True)
        self._opened.callback(self._end_child, child)
        return child

    def _end_child(self, child: Child) -> bool:
        """Let it end by itself; False if it had to be killed.

        A node that is stuck leaves its devices in the watchdog's hands.
        """
        if not self.stuck:
            self.control[Word.CLOSING] = 1
            if not child.end(time.monotonic() + CHILD_ENDS_WITHIN):
                self._say(f"the {child.name} process did not end within {CHILD_ENDS_WITHIN:g} s and was killed")
                return False
        return True

    def _end_helper(self, child: Child) -> None:
        if self._end_child(child) and child is self.row_recorder and child.failed and not self.stuck:
            child.start_again()  # it had died: what came since its last chunk is still in the ring
            self._end_child(child)
        for line in child.heard():
            self._say(line)

    def _start_helpers(self) -> list[Child]:
        c, helpers = self.config, []

        def start(module: str, spec: dict[str, Any], log: str, **options: Any) -> Child:
            helpers.append(Child(module, spec, log=self._file(log), revive=True, **options))
            return helpers[-1]

        if self.directory and c.log.timing:
            start("hilnode.node.timing_recorder", timing_recorder_spec(self), "recorder.log", name="recorder")
        self.row_recorder: Child | None = None
        if self.directory and c.log.record:
            wait = min(LONGEST_WAIT, c.log.ring_seconds * RECORDER_AWAY)
            self.row_recorder = start(
                "bridge.record.row_recorder", recorder_spec(self), "row_recorder.log", longest_wait=wait
            )
        self.bridge: Child | None = None
        if c.bridge.enabled:
            self.bridge = start("bridge.publish.server", bridge_spec(self), "bridge.log", name="bridge")
        if self.ecus and c.bridge.enabled:
            start("bridge.ecu.server", ecu_spec(self), "ecu.log", name="ecu")
        if c.bridge.enabled and c.web.enabled:
            if refused := why_not(self):
                self.notes.append(refused)
            else:
                start("bridge.web.server", web_spec(self), "web.log", name="web")
        for child in helpers:
            self._opened.callback(self._end_helper, child)
        return helpers

    def _make_runner(self, name: str) -> Runner:
        real, twin = self.pairs[name]
        driver = self.drivers[name]
        if name in self.ecus:
            link = self._ecu_links.table[list(self.ecus).index(name)]
            watch = self.ecus[name].watch(link, by_clock=self.config.node.pace != "lockstep")
            driver, real = (twin if driver is twin else watch), watch
        used = [m.channel for m in self.wiring.commands if m.driver == name]
        ages = [m.stale_ns for m in self.wiring.inputs if m.source is not None and m.source[0] == name]
        real.stale_ns = min(ages, default=None)
        return Runner(
            driver,
            inbox=self._buffers.inboxes.get(name),
            outbox=self._buffers.outboxes.get(name),
            used=np.array(used, np.int64),
            safe=self.safe_values(name),
            health=self._health[list(self.drivers).index(name)],
            live=lambda: self.control.live,
            period=self.config.drivers[name].period_ms * 1e-3,
            spare=real if driver is twin else twin,
            priority=self.driver_priority,
        )

    @property
    def driver_priority(self) -> int:
        """SCHED_FIFO for the threads of drivers: below the tick's."""
        return min(self.config.node.driver_priority, max(0, self.config.node.priority - 1))

    def safe_values(self, driver: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Safe value of every output channel of a driver: the config's where it maps one, else the channel's own."""
        safe = np.array([s.safe for s in self.drivers[driver].outputs], float)
        for m in self.wiring.commands:
            if m.driver == driver:
                safe[m.channel] = m.safe
        return safe

    def _file(self, name: str) -> Path | None:
        return self.directory / name if self.directory else None

    # -- running --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the loop. It stands at `configured`, devices at their safe values, until told to arm and run."""
        c = self.config.node
        if c.lock_memory:
            self.notes += realtime.lock_memory()
            self._opened.callback(realtime.unlock_memory)
        awake = realtime.AwakeCpus()
        self._opened.callback(awake.close)
        self.notes += awake.refused
        self._opened.callback(realtime.freeze_garbage(self._note_garbage))
        self._opened.callback(realtime.share_lock())
        allowed = os.sched_getaffinity(0)
        self._opened.callback(lambda: os.sched_setaffinity(0, allowed))
        realtime.keep_off(self.cpu)
        if self.watchdog and not self.watchdog.wait_ready():
            raise StartFailed(f"the watchdog did not start: see {self._file('watchdog.log') or 'its output above'}")
        if self.row_recorder and not self.row_recorder.await_word(RECORDER_READY_WITHIN):
            self._say(f"the recorder is not up after {RECORDER_READY_WITHIN:g} s: the first rows may be missing")
        for runner in self.runners.values():
            runner.start()
        self._supervisor.start()
        self._thread.start()
        if self._copier:
            self._copier.start()
        if refused := self._rpc.open():
            self.notes.append(refused)
        self._tick_ready.wait()
        for note in self.notes:
            self._say(note)

    def _tick_thread(self) -> None:
        self.notes += realtime.make_thread_hard(self.cpu, self.config.node.priority)
        self.control[Word.TID] = threading.get_native_id()
        self.control[Word.CPU] = self.cpu
        self._tick_ready.set()
        run(self._record.address)
        self.ended.set()

    def _note_garbage(self, count: int, ns: int) -> None:
        self.control[Word.GC_COUNT] = count
        self.control[Word.GC_NS] = ns

    def every(self, steps: int, script: Callable[[int], None]) -> None:
        """Call `script(step)` about every `steps` plant steps, outside the tick.

        Session logic, scoring, slow models.
        """
        self._supervisor.every(steps, script)

    def arm(self) -> int:
        """configured or cleared -> armed; refused without a living watchdog, if the config asks for one."""
        if self.watchdog and not (self.watchdog.alive and self.control[Word.WATCHDOG]):
            raise RuntimeError("not armed: the watchdog process is not running yet; it is being started again")
        if missing := self.missing_driver(Health.DOWN, Health.CONNECTING):
            raise RuntimeError(f"not armed: {missing}")
        return super().arm()

    def swap(self, driver: str, to: str) -> int:
        """Put the twin (`to="twin"`) or the device itself (`to="real"`) in: the tick at which it was done.

        What was in gets its safe values and is let go first, within safety.stop_deadline_ms.
        """
        if driver not in self.runners:
            raise UnknownName(f"no driver {driver!r}: {nearest(driver, list(self.runners))}")
        if to not in ("real", "twin"):
            raise ValueError(f"driver {driver}: {to!r} can not be put in, only 'real' or 'twin'")
        runner = self.runners[driver]
        if runner.twin_is_in == (to == "twin"):
            return self.control[Word.TICK]
        remark = runner.swap(to == "twin", time.monotonic() + self.config.safety.stop_deadline_ms * 1e-3)
        self.drivers[driver] = runner.driver
        if remark:
            self._say(f"driver {driver}: {remark}")
        return self._command_ring.ask(Command.SWAPPED, list(self.runners).index(driver), [float(to == "twin")]).tick

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the loop has ended; False if it still runs after `timeout` seconds."""
        return self.ended.wait(timeout)

    def request_stop(self) -> None:
        """Ask the loop to end after this tick; returns at once, may be called from a signal handler."""
        self.control[Word.STOP] = 1

    @property
    def exit_code(self) -> int:
        """0 ended as asked, 3 tripped, 4 overrun halt."""
        if self.tick.live.i[L.EXIT] == Exit.HALTED:
            return int(ExitCode.HALTED)
        return int(ExitCode.TRIPPED if self.tripped or self.stuck or self.refused else ExitCode.OK)

    # -- looking --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return State(self.control[Word.STATE])

    def timing(self) -> Timing:
        return self.stats.timing()

    def last_row(self) -> dict[str, float]:
        """Every signal of the newest row by name, with `tick` and `step`."""
        reader = self._rows.reader(first=max(0, len(self._rows) - 1), batch=1)
        rows = reader.read()
        if not len(rows):
            return {}
        values = rows[0].view(np.float64)
        s = self.schema
        numbers = [*values[s.at_inputs : s.at_ages], *values[s.at_outputs : s.at_poses]]
        named = {x.name: float(v) for x, v in zip(s.signals, numbers, strict=True)}
        return {"tick": int(rows[0, Col.TICK]), "step": int(rows[0, Col.STEP]), **named}

    def missing_driver(self, *bad: Health) -> str:
        """A sentence about the first required driver whose health is one of `bad`, or nothing."""
        for name, (health, trouble) in self.driver_states().items():
            if self.config.drivers[name].required and health in bad:
                return f"required driver {name} is {health.name.lower()}" + (f": {trouble}" if trouble else "")
        return ""

    @property
    def untold_events(self) -> int:
        """Events that the bridge was not there to take: they are in the log of events, and missing on the wire."""
        return self._supervisor.untold

    def driver_states(self) -> dict[str, tuple[Health, str]]:
        """Health of every driver and its last trouble."""
        now = time.monotonic_ns()
        states = {n: (state_of(r.health, now), r) for n, r in self.runners.items()}
        return {n: (health, hangs or r.trouble) for n, ((health, hangs), r) in states.items()}

    # -- taking apart ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the loop, bring the devices to their safe values, close the files, all within the stop deadline."""
        deadline = time.monotonic() + self.config.safety.stop_deadline_ms * 1e-3
        self.request_stop()
        if self._thread.ident:
            self._thread.join(max(0.1, deadline - time.monotonic()))
            self.stuck = self.stuck or self._thread.is_alive()
        for runner in self.runners.values():
            runner.ask_stop()
        for name, runner in self.runners.items():
            if not runner.stop(deadline):
                self._say(f"driver {name} did not let go within safety.stop_deadline_ms")
        self._rpc.close()
        self._supervisor.stop()
        self._opened.close()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
