"""The supervisor: the node's thread for all that is not time-critical.

Events, scripts, helper processes, required drivers, a loop that hangs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from hilnode.shared.codes import Answer, Cause, Event
from hilnode.shared.control import Word
from hilnode.shared.events import EventDecoder, Happening
from hilnode.shared.health import Health
from hilnode.shared.realtime import keep_pace
from hilnode.shared.row import State

if TYPE_CHECKING:
    from hilnode.node.node import Node

log = logging.getLogger("hilnode")

LOOK_EVERY = 0.01  # [s]
ASK_EVERY = 0.1  # [s] between two tries to arm and run
STALLS = 5  # looks in a row that must find the loop standing: after a SIGSTOP of all threads the first may
STOOD = 1.0  # [s] between two looks: this process or the whole machine stood still, and no other thread ran either
FROZEN_NS = 1_000_000_000  # a watchdog that has not looked for this long is frozen
REQUIRED_WITHIN = 5.0  # [s] a required driver has this long to come up


class Supervisor:
    """Looks after one node."""

    def __init__(self, node: Node, say: Callable[[str], None]) -> None:
        self._node = node
        self._tell = say
        self._stalls = 0
        self._tended = 0.0
        self.untold = 0  # events that the bridge did not take
        self._event_decoder = EventDecoder(
            node.schema, [a.name for a in node.wiring.alarms], node.plant.explain, list(node.drivers)
        )
        self._scripts: list[_Script] = []
        self._starter = _Starter(node, self._say) if node.config.node.autostart else None
        self._stopping = threading.Event()
        self._has_script = threading.Event()
        self._file: TextIO | None = None
        self._thread = threading.Thread(target=self._look_after, name="supervisor", daemon=True)
        self._script_thread = threading.Thread(target=self._run_scripts, name="scripts", daemon=True)

    def start(self) -> None:
        """Begin to look after it; an automatic start is asked for before the loop's first tick."""
        if self._starter and self._starter.done():
            self._starter = None
        self._thread.start()
        self._script_thread.start()

    def stop(self) -> None:
        """End after a last look; harmless if never started."""
        self._stopping.set()
        self._has_script.set()
        for thread in (self._thread, self._script_thread):
            if thread.ident:
                thread.join(2.0)

    def every(self, steps: int, script: Callable[[int], None]) -> None:
        """Call `script(step)` about every `steps` plant steps, in a thread of its own: it may give commands."""
        if steps < 1:
            raise ValueError(f"a script can run every 1 or more steps, not every {steps}")
        self._scripts.append(_Script(steps, script))
        self._has_script.set()

    def _run_scripts(self) -> None:
        self._has_script.wait()
        while not self._stopping.wait(LOOK_EVERY):
            for script in self._scripts:
                script.call(self._node.steps)

    def _look_after(self) -> None:
        keep_pace(self._node.driver_priority)
        if self._node.directory:
            with self._writing():
                self._file = (self._node.directory / "events.jsonl").open("a")
        while not self._stopping.wait(LOOK_EVERY):
            try:
                self._look()
                self._tend()
            except Exception:  # whatever it was, the next look must still come
                log.exception("the supervisor stumbled")
        self._look()
        if self._file:
            with self._writing():
                self._file.close()

    def _say(self, line: str) -> None:
        """Tell people; a terminal that is gone or a pipe that nobody reads must not end the supervision."""
        with contextlib.suppress(Exception, SystemExit):  # rich leaves by SystemExit when its pipe is broken
            self._tell(line)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """A disc that refuses costs the event log, never the supervision."""
        try:
            yield
        except OSError as error:
            if self._file:
                with contextlib.suppress(OSError):
                    self._file.close()
            self._file = None
            self._say(f"events.jsonl: {error.strerror}; events are no longer written down")

    def _look(self) -> None:
        while len(rows := self._node.events.read()):
            for words in rows:
                self._hear(self._event_decoder.decode(words))
            if self._file:
                with self._writing():
                    self._file.flush()
        self._node.stats.feed()

    def _hear(self, happening: Happening) -> None:
        node = self._node
        node.hear(happening)
        if happening.code == Event.TRIP:
            node.tripped = happening
            if node.config.safety.on_trip == "exit":
                node.request_stop()
        elif happening.code == Event.STATE and happening.index == State.CLEARED:
            node.tripped = None
        if happening.code != Event.COMMAND:
            self._say(f"tick {happening.tick}: {happening.sentence}")
        elif self._starter:
            self._starter.hear(happening)
        if node.bridge and not node.bridge.tell(happening.as_dict()):
            self.untold += 1
        if self._file:
            with self._writing():
                self._file.write(happening.as_json() + "\n")

    def _tend(self) -> None:
        node = self._node
        stood, self._tended = time.monotonic() - self._tended > STOOD, time.monotonic()
        if self._starter and self._starter.done():
            self._starter = None
        for child in node.helpers:
            for line in child.heard():
                self._say(line)
            if trouble := child.tend():
                self._say(trouble)
        if node.watchdog and (trouble := node.watchdog.tend() or self._frozen_watchdog()):
            self._say(trouble)
            node.control[Word.WATCHDOG] = 0  # until the next one looks
            node.ask_trip(Cause.WATCHDOG_LOST)
        if node.state == State.RUNNING and not stood and (trouble := node.missing_driver(Health.DOWN)):
            self._say(trouble)
            node.ask_trip(Cause.DRIVER)
        self._check_stuck()

    def _frozen_watchdog(self) -> str:
        """A sentence if the watchdog lives but no longer looks; it is put down, so that another is started."""
        looked = self._node.control[Word.WATCHDOG]
        if not looked or not self._node.watchdog or time.monotonic_ns() - looked < FROZEN_NS:
            return ""
        self._node.watchdog.process.kill()
        return f"the watchdog has not looked for {FROZEN_NS / 1e9:g} s"

    def _check_stuck(self) -> None:
        """A plant that never returns: the devices are in the watchdog's hands, and this process can only end."""
        node = self._node
        beat = node.control[Word.HEARTBEAT]
        age = time.monotonic_ns() - beat if beat else 0
        self._stalls = self._stalls + 1 if age > max(1e9, 5e6 * node.config.safety.watchdog_ms) else 0
        if self._stalls >= STALLS and not node.ended.is_set():
            node.stuck = True
            self._say(
                f"the loop has not moved for {age / 1e9:.1f} s at step {node.steps}: the plant did not return. "
                + ("The watchdog holds the devices at their safe values" if node.watchdog else "There is no watchdog")
            )
            node.ended.set()


class _Script:
    """A function called about every so many plant steps; one that fails is not called again."""

    def __init__(self, every: int, function: Callable[[int], None]) -> None:
        self._every, self._function, self._due, self._failed = every, function, 0, False
        self._last = 0

    def call(self, step: int) -> None:
        if step < self._last:  # the plant was reset
            self._due = 0
        self._last = step
        if step < self._due or self._failed:
            return
        self._due = step - step % self._every + self._every
        try:
            self._function(step)
        except Exception:
            self._failed = True
            log.exception("a script failed and will not be called again")


class _Starter:
    """Arms and runs a node by itself, once the required drivers are up and no input would trip it at once."""

    def __init__(self, node: Node, say: Callable[[str], None]) -> None:
        self._node = node
        self._say = say
        self._began = 0.0  # set at the first try
        self._asked = 0.0
        self._said = ""

    def done(self) -> bool:
        """Try again if it is time; True when there is nothing more to do."""
        node, now = self._node, time.monotonic()
        self._began = self._began or now
        if node.ended.is_set() or node.state not in (State.CONFIGURED, State.ARMED):
            return True
        if missing := node.missing_driver(Health.DOWN, Health.CONNECTING):
            if now - self._began > REQUIRED_WITHIN:
                node.refused = missing
                self._say(f"not started: {missing}")
                node.request_stop()
                return True
            self._tell_once(f"waiting: {missing}")
            return False
        if now - self._asked >= ASK_EVERY:
            self._asked = now
            node.ask_start()
        return False

    def hear(self, happening: Happening) -> None:
        if happening.index == Answer.STALE_INPUT:
            name = self._node.schema.inputs[int(happening.value)].name
            self._tell_once(f"waiting: input {name} trips when stale and its device has not delivered yet")

    def _tell_once(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self._say(what)
