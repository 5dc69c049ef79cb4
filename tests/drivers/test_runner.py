"""The runner: whatever a driver does, its health tells, others go on, and a stop keeps its deadline."""

import os
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from support import make_config, wait_for

from drivers.base import HELD, Driver, DriverError
from drivers.runner import Runner
from hilnode.core.signals import Signal
from hilnode.node import supervisor
from hilnode.node.node import Node
from hilnode.shared.health import HEALTH_WORDS, READS, WRITES, H, Health, get_text, percentile, report
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.realtime import make_thread_hard
from hilnode.shared.row import State

SAFE = np.array([-1.0, -2.0])


class Fake(Driver):
    """A device whose behaviour the test decides: each `on_...` may raise, block or return."""

    kind = "fake"
    external = False

    def __init__(self, name: str = "fake", options: Any = None) -> None:
        super().__init__(name, options or {})
        self.inputs = (Signal("x"),)
        self.outputs = (Signal("a"), Signal("b"))
        self.opened = self.closed = 0
        self.there = True
        self.written: list[list[float]] = []
        self.on_read = lambda: True
        self.on_write = lambda: None

    def open(self) -> None:
        if not self.there:
            raise DriverError("unplugged")
        self.opened += 1

    def close(self) -> None:
        self.closed += 1

    def read(self, values: np.ndarray, stamps: np.ndarray) -> bool:
        if not self.there:
            raise DriverError("gone")
        time.sleep(0.001)
        if not self.on_read():
            return False
        values[:] = 5.0
        stamps[:] = time.monotonic_ns()
        return True

    def write(self, values: np.ndarray) -> None:
        if not self.there:
            raise DriverError("gone")
        self.on_write()
        self.written.append(values.tolist())


class Bench:
    """One driver, its runner and its mailboxes."""

    def __init__(self, name: str, driver: Driver, period: float = 0.001, priority: int = 0) -> None:
        self.driver = driver
        self.live = False
        self.inbox = Mailbox.create(f"{name}.in", channels=max(1, len(driver.inputs)))
        self.outbox = Mailbox.create(f"{name}.out", channels=1)
        self.health = np.zeros(HEALTH_WORDS, np.int64)
        self.runner = Runner(
            driver,
            inbox=self.inbox if driver.inputs else None,
            outbox=self.outbox,
            used=np.array([1]),
            safe=SAFE,
            health=self.health,
            live=lambda: self.live,
            period=period,
            priority=priority,
        )

    @property
    def state(self) -> Health:
        return Health(int(self.health[H.STATE]))

    def stop(self, seconds: float = 5.0) -> bool:
        return self.runner.stop(time.monotonic() + seconds)


@pytest.fixture
def bench(name) -> Iterator[Any]:
    made: list[Bench] = []

    def one(driver: Driver | None = None, period: float = 0.001, live: bool = False, priority: int = 0) -> Bench:
        made.append(Bench(f"{name}.{len(made)}", driver or Fake(), period, priority))
        made[-1].live = live
        made[-1].outbox.put(np.array([7.0]))
        made[-1].runner.start()
        return made[-1]

    yield one
    for each in made:
        each.stop()
        each.inbox.close()
        each.outbox.close()


def test_values_come_in_and_are_counted(bench):
    b = bench()
    wait_for(lambda: b.health[H.FRAMES] >= 5, "five frames")
    assert b.state == Health.UP
    number, values, stamps = b.inbox.take()
    assert number >= 5
    assert values.tolist() == [5.0]
    assert 0 <= time.monotonic_ns() - stamps[0] < 5e9
    assert (b.health[H.ERRORS], b.health[H.RECONNECTS]) == (0, 0)


def _may_be_fifo() -> bool:
    """Whether this user may have priority 3; tried in a thread that ends with it."""
    refused: list[str] = []
    thread = threading.Thread(target=lambda: refused.extend(make_thread_hard(-1, 3)))
    thread.start()
    thread.join()
    return not refused


@pytest.mark.skipif(not _may_be_fifo(), reason="needs the right to SCHED_FIFO")
def test_its_threads_have_the_priority_that_was_asked_for(bench):
    seen: dict[str, tuple[int, int]] = {}

    def look(verb: str) -> bool:
        seen[verb] = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        return True

    driver = Fake()
    driver.on_read, driver.on_write = lambda: look("read"), lambda: look("write")
    bench(driver, priority=3)
    wait_for(lambda: len(seen) == 2, "both threads")
    assert seen == {"read": (os.SCHED_FIFO, 3), "write": (os.SCHED_FIFO, 3)}
    assert os.sched_getscheduler(0) != os.SCHED_FIFO  # nobody else's


def test_a_read_that_never_waits_does_not_take_the_cpu(bench):
    """A thread of high priority that spins would keep everything else on its CPU from running."""

    class Hasty(Fake):
        reads = 0

        def read(self, values: np.ndarray, stamps: np.ndarray) -> bool:
            self.reads += 1
            return False

    driver = Hasty()
    bench(driver)
    wait_for(lambda: driver.reads > 100, "reads")
    before = driver.reads
    time.sleep(0.5)
    assert driver.reads - before < 1000  # one in a millisecond, not one in a few microseconds


def test_only_mapped_channels_go_live_and_only_while_allowed(bench):
    b = bench()
    wait_for(lambda: len(b.driver.written) >= 5, "five writes")
    assert {tuple(w) for w in b.driver.written} == {(-1.0, -2.0)}
    b.live = True
    wait_for(lambda: b.driver.written[-1] == [-1.0, 7.0], "a live value")
    b.live = False
    wait_for(lambda: b.driver.written[-1] == [-1.0, -2.0], "a safe value")


def test_a_slow_device_is_safe_at_once_when_it_may_no_longer_be_live(bench):
    """A trip must not wait for the next period of a device that is written to every 30 seconds."""
    b = bench(period=30.0, live=True)
    wait_for(lambda: b.driver.written, "the first write")
    assert b.driver.written[-1] == [-1.0, 7.0]
    b.live = False
    wait_for(lambda: b.driver.written[-1] == SAFE.tolist(), "a safe value", 1.0)


def test_a_read_that_raises_degrades_and_recovers(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "the driver to be up")

    def fail() -> bool:
        raise ValueError("frame of 3 bytes")

    b.driver.on_read = fail
    wait_for(lambda: b.state == Health.DEGRADED and b.health[H.ERRORS] >= 3, "errors")
    assert b.runner.trouble == "ValueError: frame of 3 bytes"
    letters, writes = b.inbox.take()[0], len(b.driver.written)
    wait_for(lambda: len(b.driver.written) > writes + 5, "the writer to go on")
    assert b.inbox.take()[0] == letters  # no value out of an error
    b.driver.on_read = lambda: True
    wait_for(lambda: b.state == Health.UP, "the driver to recover")
    assert b.driver.opened == 1  # a bad frame is no reason to open again


def test_trouble_degrades_although_frames_come(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "health up")
    b.driver.trouble = "one of two messages is missing"
    wait_for(lambda: b.state == Health.DEGRADED, "health degraded")
    frames = b.health[H.FRAMES]
    wait_for(lambda: b.health[H.FRAMES] > frames + 5, "more frames")
    assert b.state == Health.DEGRADED
    assert b.runner.trouble == "one of two messages is missing"
    assert b.health[H.ERRORS] == 0
    b.driver.trouble = ""
    wait_for(lambda: b.state == Health.UP, "health up again")


def test_a_driver_knows_whether_its_values_are_live(bench):
    driver = Fake()
    told = []
    driver.on_write = lambda: told.append(driver.live)
    b = bench(driver)
    wait_for(lambda: told, "a write")
    assert set(told) == {False}
    b.live = True
    wait_for(lambda: told[-1], "a live write")
    assert b.stop()
    assert told[-1] is False  # the last one is safe


def test_a_complaint_is_said_once(bench, caplog):
    b = bench()

    def fail() -> bool:
        raise ValueError("always the same")

    b.driver.on_read = fail
    wait_for(lambda: b.health[H.ERRORS] >= 10, "ten errors")
    assert caplog.text.count("always the same") == 1


def test_a_device_that_vanishes_and_returns(bench):
    b = bench()
    b.live = True
    wait_for(lambda: b.state == Health.UP and b.driver.written, "the driver to be up")
    for times in (1, 2):
        b.driver.there = False
        wait_for(lambda: b.state == Health.DOWN, "the driver to be down")
        wait_for(lambda: b.runner.trouble == "unplugged", "a try to open it again")
        b.driver.there = True
        wait_for(lambda: b.state == Health.UP, "the driver to be up again")
        assert b.health[H.RECONNECTS] == times
    assert b.driver.opened == 3
    assert b.driver.closed == 2


def test_a_device_that_is_not_there_at_first(bench):
    driver = Fake()
    driver.there = False
    b = bench(driver)
    wait_for(lambda: b.health[H.ERRORS] >= 2, "two tries")
    assert b.state == Health.DOWN
    assert b.inbox.take()[0] == 0
    driver.there = True
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    assert b.health[H.RECONNECTS] == 0  # it was never lost


def test_tries_become_rarer(bench):
    driver = Fake()
    driver.there = False
    began = time.monotonic()
    b = bench(driver)
    wait_for(lambda: b.health[H.ERRORS] >= 4, "four tries")
    assert time.monotonic() - began >= 0.05  # two threads, each 0.05, 0.1, 0.2 ... apart: not a busy loop
    assert b.health[H.ERRORS] < 50


def test_stop_leaves_the_device_safe_and_closed(bench):
    b = bench()
    b.live = True
    wait_for(lambda: b.driver.written and b.driver.written[-1] == [-1.0, 7.0], "a live value")
    assert b.stop()
    assert b.driver.written[-1] == SAFE.tolist()
    assert b.driver.closed == 1
    assert b.stop()  # twice is harmless


def test_stop_keeps_its_deadline_when_a_read_blocks(bench):
    released = threading.Event()
    blocked = threading.Event()

    def block() -> bool:
        blocked.set()
        return not released.wait(10.0)

    b = bench()
    b.driver.on_read = block
    assert blocked.wait(5.0)
    writes = len(b.driver.written)
    wait_for(lambda: len(b.driver.written) > writes + 5, "the writer to go on")
    began = time.monotonic()
    assert b.stop(0.3) is False
    assert time.monotonic() - began < 3.0
    assert b.driver.written[-1] == SAFE.tolist()
    assert b.driver.closed == 0  # not pulled from under a thread that is still inside
    released.set()
    assert b.stop()
    assert b.driver.closed == 1


def test_stop_keeps_its_deadline_when_a_write_blocks(bench):
    released = threading.Event()
    b = bench()
    b.driver.on_write = lambda: released.wait(10.0)
    frames = b.health[H.FRAMES]
    wait_for(lambda: b.health[H.FRAMES] > frames + 5, "the reader to go on")
    began = time.monotonic()
    assert b.stop(0.3) is False
    assert time.monotonic() - began < 3.0
    released.set()


def test_a_driver_that_blocks_leaves_the_others_alone(bench):
    released = threading.Event()
    bad, good = bench(), bench()
    bad.driver.on_read = lambda: not released.wait(10.0)
    bad.driver.on_write = lambda: released.wait(10.0)
    frames, writes = good.health[H.FRAMES], good.health[H.WRITES]
    wait_for(lambda: good.health[H.FRAMES] > frames + 20 and good.health[H.WRITES] > writes + 20, "the other driver")
    assert good.state == Health.UP
    assert good.health[H.ERRORS] == 0
    released.set()


def test_periods_are_counted_for_reads_and_writes(bench):
    """Truth: as many periods as frames less one, and the median where a clock beside it finds it."""
    at: list[int] = []
    b = bench(period=0.004)
    b.driver.on_write = lambda: at.append(time.monotonic_ns())
    wait_for(lambda: b.health[H.WRITES] >= 100 and b.health[H.FRAMES] >= 100, "a hundred of each")
    b.stop()
    assert b.health[READS].sum() == b.health[H.FRAMES] - 1
    assert b.health[WRITES].sum() == b.health[H.WRITES] - 1
    found = np.median(np.diff(at)) / 1e3
    assert percentile(b.health[WRITES], 50) == pytest.approx(found, rel=0.15)


def test_an_outage_is_no_period(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    b.driver.there = False
    wait_for(lambda: b.state == Health.DOWN, "the driver to be down")
    time.sleep(0.3)
    b.driver.there = True
    frames = b.health[H.FRAMES]
    wait_for(lambda: b.health[H.FRAMES] > frames + 10, "the driver to be up again")
    b.stop()
    assert b.health[READS].sum() == b.health[H.FRAMES] - 2


def test_the_record_says_who_it_is_about_and_what_troubles_it(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    b.driver.there = False
    wait_for(lambda: get_text(b.health, "trouble") == "unplugged", "the trouble")
    assert (get_text(b.health, "name"), get_text(b.health, "kind")) == ("fake", "fake")


def test_a_driver_without_inputs_is_up_when_open(bench):
    driver = Fake()
    driver.inputs = ()
    b = bench(driver)
    wait_for(lambda: b.health[H.WRITES] >= 3, "three writes")
    assert b.state == Health.UP


def test_a_runner_that_was_never_started_stops(name):
    Bench(name, Fake()).stop()


# -- within a node -----------------------------------------------------------------------------------------------

DEVICES: dict[str, Fake] = {}


class Registered(Fake):
    """Findable by the test under its name."""

    missing = False

    def __init__(self, name: str, options: Any) -> None:
        super().__init__(name, {})
        self.there = not self.missing
        DEVICES[name] = self


TWO = """
safety.watchdog = false
safety.stop_deadline_ms = 400
[drivers.one]
kind = "test_runner:Registered"
required = {required}
[drivers.two]
kind = "test_runner:Registered"
"""


@pytest.fixture
def node(tmp_path, name, request):
    required = str(getattr(request, "param", True)).lower()
    with Node(make_config(tmp_path, name, TWO.format(required=required))) as made:
        made.start()
        wait_for(lambda: {h for h, _ in made.driver_states().values()} == {Health.UP}, "both drivers to be up")
        made.arm()
        made.run()
        yield made


def test_a_required_driver_that_goes_down_trips_the_node(node):
    DEVICES["one"].there = False
    wait_for(lambda: node.tripped, "a trip")
    assert "required driver" in node.tripped.sentence
    assert node.driver_states()["one"][0] == Health.DOWN
    assert node.driver_states()["two"] == (Health.UP, "")


def test_a_required_driver_that_never_comes_ends_the_run(tmp_path, name, monkeypatch):
    monkeypatch.setattr(supervisor, "REQUIRED_WITHIN", 0.2)
    monkeypatch.setattr(Registered, "missing", True)
    said: list[str] = []
    config = make_config(tmp_path, name, TWO.format(required="true"), autostart=True)
    with Node(config, say=said.append) as node:
        node.start()
        assert node.wait(10.0)
    assert node.exit_code == 3
    assert node.refused == "required driver one is down: unplugged"
    assert "not started: required driver one is down: unplugged" in said


@pytest.mark.parametrize("required", [True, False])
def test_by_hand_too_a_node_is_armed_only_with_its_required_drivers(tmp_path, name, monkeypatch, required):
    monkeypatch.setattr(Registered, "missing", True)
    with Node(make_config(tmp_path, name, TWO.format(required=str(required).lower()))) as node:
        node.start()
        wait_for(lambda: node.driver_states()["one"] == (Health.DOWN, "unplugged"), "the driver to be down")
        if not required:
            node.arm()
            return
        with pytest.raises(RuntimeError, match="not armed: required driver one is down: unplugged"):
            node.arm()
        DEVICES["one"].there = True
        wait_for(lambda: node.driver_states()["one"][0] == Health.UP, "the driver to be up")
        node.arm()
        assert node.state == State.ARMED


@pytest.mark.parametrize("node", [False], indirect=True)
def test_a_driver_that_is_not_required_may_go_down(node):
    DEVICES["one"].there = False
    wait_for(lambda: node.driver_states()["one"][0] == Health.DOWN, "the driver to be down")
    at = node.steps
    wait_for(lambda: node.steps > at + 100, "the plant to go on")
    assert node.state == State.RUNNING
    DEVICES["one"].there = True
    wait_for(lambda: node.driver_states()["one"][0] == Health.UP, "the driver to be up again")


def test_a_stuck_driver_does_not_keep_the_next_from_being_closed(tmp_path, name):
    released = threading.Event()
    said: list[str] = []
    node = Node(make_config(tmp_path, name, TWO.format(required="false")), say=said.append)
    with node:
        node.start()
        wait_for(lambda: {h for h, _ in node.driver_states().values()} == {Health.UP}, "both drivers to be up")
        DEVICES["one"].on_read = lambda: not released.wait(10.0)
        frames = node.runners["one"].health[H.FRAMES]
        wait_for(lambda: node.runners["one"].health[H.FRAMES] == frames, "the driver to hang")
    released.set()
    assert any("driver one did not let go" in line for line in said)
    assert not any("driver two" in line for line in said)
    assert DEVICES["two"].closed == 1


# -- a call that does not return --------------------------------------------------------------------------------------


def hang(driver: Fake, verb: str) -> threading.Event:
    """From now on a read or write of this device does not return until the event is set."""
    released = threading.Event()
    setattr(driver, f"on_{verb}", lambda: released.wait(60.0))
    return released


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize("node", [False], indirect=True)
def test_a_driver_that_was_up_and_hangs_says_so_and_nobody_else_notices(node, verb):
    two = node.runners["two"].health
    released = hang(DEVICES["one"], verb)
    try:
        began = time.monotonic()
        wait_for(lambda: node.driver_states()["one"][0] == Health.DEGRADED, "the driver to be degraded")
        assert f"its {verb} has not returned for 1 s" in node.driver_states()["one"][1]
        (told,) = [r for r in map(report, node._health) if r.name == "one"]
        assert (told.state, told.trouble) == ("degraded", node.driver_states()["one"][1])
        steps, frames, writes = node.steps, int(two[H.FRAMES]), int(two[H.WRITES])
        wait_for(lambda: node.driver_states()["one"][0] == Health.DOWN, "the driver to be down")
        assert 4.5 < time.monotonic() - began < 15.0
        assert node.driver_states()["two"] == (Health.UP, "")
        assert two[H.ERRORS] == 0
        # Four seconds of a loop at 1 kHz; the other driver reads and writes about as often.
        assert node.steps - steps > 2000
        assert two[H.FRAMES] - frames > 500
        assert two[H.WRITES] - writes > 500
        assert node.state == State.RUNNING
    finally:
        released.set()
    wait_for(lambda: node.driver_states()["one"][0] == Health.UP, "the driver to be up again")


def test_a_required_driver_that_hangs_trips_the_node(node):
    released = hang(DEVICES["one"], "read")
    try:
        wait_for(lambda: node.tripped, "a trip")
        assert "required driver" in node.tripped.sentence
        assert "its read has not returned for 5 s" in node.driver_states()["one"][1]
    finally:
        released.set()


def test_a_device_left_behind_by_a_swap_hangs_in_nobodys_record(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    released = hang(b.driver, "read")
    wait_for(lambda: time.monotonic_ns() - b.health[H.IN_READ] > 5e7 and b.health[H.IN_READ], "it to hang")
    b.runner._session.leave_behind()
    assert b.health[H.IN_READ] == 0
    released.set()
    wait_for(lambda: not b.runner._session.alive or b.stop(), "its end")
    assert b.health[H.IN_READ] == 0


# -- counting -----------------------------------------------------------------------------------------------------


def test_every_frame_of_a_read_counts_and_what_only_holds_does_not(bench):
    class Batches(Fake):
        todo: ClassVar = [3, HELD, 5, 0, 1]

        def read(self, values: np.ndarray, stamps: np.ndarray) -> int:
            time.sleep(0.001)
            if not self.todo:
                return 0
            frames = self.todo.pop(0)
            if frames:
                values[:], stamps[:] = frames, time.monotonic_ns()
            self.refused += 2 * (frames == 5)
            return frames

    b = bench(Batches())
    wait_for(lambda: not b.driver.todo and b.health[H.FRAMES] == 9, "nine frames")
    assert b.health[READS].sum() == 2  # between three reads that brought some
    assert b.health[H.ERRORS] == 2
    assert b.inbox.take()[0] == 4  # what holds goes to the tick as well


def test_a_write_that_fails_degrades_although_reads_go_on(bench):
    b = bench()
    wait_for(lambda: b.state == Health.UP, "the driver to be up")

    def refuse() -> None:
        raise ValueError("the valve does not take this")

    b.driver.on_write = refuse
    wait_for(lambda: b.state == Health.DEGRADED, "the driver to be degraded")
    frames, seen = int(b.health[H.FRAMES]), set()
    while b.health[H.FRAMES] < frames + 50:
        seen.add(b.state)
    assert seen == {Health.DEGRADED}
    b.driver.on_write = lambda: None
    wait_for(lambda: b.state == Health.UP, "the driver to be up again")


def test_a_device_that_falls_silent_is_degraded_until_it_speaks(bench):
    driver = Fake()
    driver.silent_ns = 50_000_000
    b = bench(driver)
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    driver.on_read = lambda: False
    wait_for(lambda: b.state == Health.DEGRADED, "the driver to be degraded")
    assert b.runner.trouble.startswith("nothing came for 50 ms")
    driver.on_read = lambda: True
    wait_for(lambda: b.state == Health.UP, "the driver to be up again")


# -- closing ------------------------------------------------------------------------------------------------------


class Stubborn(Fake):
    """Cannot be closed."""

    def close(self) -> None:
        super().close()
        raise OSError("it will not go")


def test_a_driver_that_cannot_be_closed_is_opened_again_all_the_same(bench):
    b = bench(Stubborn())
    wait_for(lambda: b.state == Health.UP, "the driver to be up")
    b.driver.there = False
    wait_for(lambda: b.driver.closed, "the driver to be closed")
    b.driver.there = True
    wait_for(lambda: b.state == Health.UP, "the driver to be up again")
    assert b.stop()
    assert b.runner.trouble == "closing it: OSError: it will not go"


def test_a_late_word_of_a_loss_does_not_close_the_next_connection(bench):
    """The reader hangs in the old connection while the writer loses it and opens the next one."""
    b = bench()
    wait_for(lambda: b.state == Health.UP and b.health[H.WRITES], "the driver to be up")
    hangs, released = threading.Event(), threading.Event()

    def lose() -> None:
        b.driver.on_write = lambda: None  # the next connection is good
        raise DriverError("gone")

    def late() -> bool:
        hangs.set()
        released.wait(60.0)
        raise DriverError("gone, and noticed late")

    b.driver.on_read = late
    assert hangs.wait(10.0)
    b.driver.on_write = lose
    wait_for(lambda: b.driver.opened == 2, "the writer to open it again")
    b.driver.on_read = lambda: True
    released.set()
    frames = b.health[H.FRAMES]
    wait_for(lambda: b.health[H.FRAMES] > frames + 5, "the reader to go on")
    assert (b.driver.opened, b.driver.closed) == (2, 1)
    assert b.health[H.RECONNECTS] == 1
