"""One suite over every kind of driver and its twin: what the contract in `drivers/base.py` promises, each must keep.

The devices are in `rigs.py`. A kind in the registry without an entry there fails here.
"""

import gc
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from rigs import RIGS, Entry, Rig
from support import make_config, wait_for

from drivers import registry
from drivers.base import Driver, DriverError, OptionError
from drivers.runner import Runner
from drivers.twin import Twin
from hilnode.core.signals import Signal, check_unique
from hilnode.node.node import Node
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

READ_WITHIN = 0.15  # [s] the contract says a tenth; the rest is for a busy machine
STOPS_WITHIN = 20.0  # [s] an `open` cannot be cut short, and an OPC UA server takes seconds to come up
HELP = re.compile(r"\?|\(|sudo|pip install|switch|create|check|close|hilnode devices")
KINDS = sorted(registry.KINDS._built_in)
RAW = {
    "can": re.compile(r"Report 100#03\.00\.04\.00"),
    "daq": re.compile(r"0\.1875 V \| 0\.25 V"),
    "hid": re.compile(r"03 04"),
    "modbus": re.compile(r"0003 \| 0004"),
    "opcua": re.compile(r"3 Int16 \| 4\.0 Double"),
    "serial": re.compile(r":3,4\*[0-9A-F]{2}"),
    "udp": re.compile("(?:[0-9a-f]{2} ?){16}"),
}
"""What each kind of device says for 3 and 4, as `hilnode probe` shows it."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_test_device(kind):
    assert kind in RIGS, f"add an entry for {kind!r} to tests/drivers/rigs.py"


class Bed:
    """A rig, the driver on it and arrays to read into."""

    def __init__(self, kind: str, rig: Rig, twin: bool) -> None:
        self.kind, self.rig, self.twin = kind, rig, twin
        self.driver = self.make()
        self.values = np.full(len(self.driver.inputs), -99.0)
        self.stamps = np.zeros(len(self.driver.inputs), np.int64)

    def make(self, **more: Any) -> Driver:
        return registry.create(self.kind, "dut", {**self.rig.options, **({"twin": True} if self.twin else {}), **more})

    def read(self) -> int:
        return self.driver.read(self.values, self.stamps)

    def say(self, *values: float) -> None:
        if self.rig.say and not self.twin:
            self.rig.say(self.driver, values)

    def await_frame(self) -> None:
        """Read until every channel has come once, the device saying it again and again."""
        self.stamps[:] = 0
        numbers = range(3, 3 + len(self.driver.inputs))

        def come() -> bool:
            self.say(*numbers)
            return bool(self.read()) and bool(self.stamps.all())

        wait_for(come, "a frame on all channels")


def entry_of(kind: str) -> Entry:
    if kind not in RIGS:
        pytest.fail(f"add an entry for {kind!r} to tests/drivers/rigs.py")
    return RIGS[kind]


def beds() -> list[tuple[str, bool]]:
    """Every kind and its twin."""
    both = [(kind, twin) for kind in KINDS for twin in (False, True)]
    return [(kind, twin) for kind, twin in both if twin or kind not in RIGS or not RIGS[kind].only_twin]


@pytest.fixture(params=beds(), ids=lambda p: p[0] + "-twin" * p[1])
def bed(request, tmp_path) -> Iterator[Bed]:
    kind, twin = request.param
    with entry_of(kind).working(tmp_path) as rig:
        made = Bed(kind, rig, twin)
        yield made
        made.driver.close()


def test_channels_are_there_before_the_device(bed):
    driver = bed.driver
    for channels in (driver.inputs, driver.outputs):
        assert isinstance(channels, tuple)
        assert all(isinstance(s, Signal) for s in channels)
        check_unique(channels, bed.kind)
    assert driver.inputs or driver.outputs
    before = driver.inputs, driver.outputs
    driver.open()
    assert (driver.inputs, driver.outputs) == before
    again = bed.make()
    assert (again.inputs, again.outputs) == before


def test_it_opens_and_closes_any_number_of_times_and_leaves_nothing_open(bed):
    bed.driver.close()
    bed.driver.open()
    bed.driver.close()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        bed.driver.open()
        bed.driver.close()
        bed.driver.close()
    gc.collect()
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before, "its files to be closed, and the far end's")


@pytest.mark.parametrize("kind", [k for k in KINDS if k in RIGS and RIGS[k].missing])
def test_a_missing_device_is_a_driver_error_with_a_way_out(kind, tmp_path):
    missing = RIGS[kind].missing
    assert missing is not None
    driver = registry.create(kind, "dut", missing(tmp_path))
    for _ in range(2):
        with pytest.raises(DriverError) as told:
            driver.open()
        driver.close()
    text = str(told.value)
    assert HELP.search(text), text
    assert "\n" not in text.strip()
    assert "Traceback" not in text
    if driver.inputs:
        with pytest.raises(DriverError):  # not open is lost, not a bad frame: the runner is to open it again
            driver.read(np.zeros(len(driver.inputs)), np.zeros(len(driver.inputs), np.int64))


def test_a_read_returns_soon_even_if_nothing_comes(bed):
    if not bed.driver.inputs:
        pytest.skip("it only writes")
    bed.driver.open()
    took = []
    for _ in range(9):
        began = time.monotonic()
        bed.read()
        took.append(time.monotonic() - began)
    assert sorted(took)[4] <= READ_WITHIN


def test_values_arrive_in_place_with_the_time_of_the_read(bed):
    if not bed.driver.inputs:
        pytest.skip("it only writes")
    earliest = time.monotonic_ns()
    bed.driver.open()
    places = bed.values.ctypes.data, bed.stamps.ctypes.data
    last = np.zeros(len(bed.stamps), np.int64)
    for _ in range(3):
        earliest = earliest if bed.rig.pushed else time.monotonic_ns()
        bed.await_frame()
        assert (bed.stamps >= last).all()
        assert (bed.stamps >= earliest).all()
        assert (bed.stamps <= time.monotonic_ns()).all()
        last[:] = bed.stamps
    assert np.isfinite(bed.values).all()
    if bed.rig.say and not bed.twin:
        assert bed.values.tolist() == [float(n) for n in range(3, 3 + len(bed.values))]
    assert (bed.values.ctypes.data, bed.stamps.ctypes.data) == places


def test_a_probe_shows_what_the_device_said(bed):
    if bed.twin or bed.kind not in RAW:
        pytest.skip("it has nothing but its values to show")
    bed.driver.open()

    def is_shown() -> bool:
        bed.say(3.0, 4.0)
        bed.read()
        return RAW[bed.kind].fullmatch(" | ".join(bed.driver.raw().values())) is not None

    wait_for(is_shown, f"{RAW[bed.kind].pattern}; it shows {bed.driver.raw()}")
    raw = bed.driver.raw()
    assert set(raw) in ({"frame"}, {s.name for s in bed.driver.inputs})
    bed.driver.close()
    bed.driver.raw()  # asked at the wrong time it may say anything, but must not raise


def test_reading_keeps_no_memory(bed):
    if not bed.driver.inputs:
        pytest.skip("it only writes")
    bed.driver.open()

    def some(count: int) -> None:
        until = time.monotonic() + 1.0
        for k in range(count):
            bed.say(*([k % 50] * len(bed.values)))
            bed.read()
            if time.monotonic() > until:
                return

    some(50)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        some(300)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50_000


def test_what_is_written_is_at_the_device(bed):
    driver = bed.driver
    if not driver.outputs:
        pytest.skip("it only reads")
    driver.open()
    for numbers in ([7.0, -8.0], [9.0, 10.0]):
        told = np.array([*numbers, *[0.0] * len(driver.outputs)][: len(driver.outputs)])
        kept = told.copy()
        driver.write(told)
        assert (told == kept).all()  # it is not the driver's to change
        if bed.twin:
            check_echo(bed, told)
        elif bed.rig.hear:
            await_heard(bed.rig, told.tolist())


def await_heard(rig: Rig, values: list[float]) -> None:
    hear = rig.hear
    assert hear is not None
    wait_for(lambda: hear() == values, f"the device to have {values}")


def check_echo(bed: Bed, told: np.ndarray) -> None:
    """Where an input of a twin has the name of an output, it says what was written there."""
    assert bed.read()
    names = [s.name for s in bed.driver.outputs]
    for k, s in enumerate(bed.driver.inputs):
        if s.name in names:
            assert bed.values[k] == told[names.index(s.name)]


WATCHDOG = """
import json, sys
import numpy as np
from drivers import registry
kind, options, safe = json.loads(sys.stdin.readline())
driver = registry.create(kind, "dut", options)
driver.prepare_safe()
driver.write_safe(np.array(safe))
print("done", flush=True)
sys.stdin.readline()
"""


def test_another_process_makes_it_safe_while_this_one_has_it_open(bed):
    driver = bed.driver
    if bed.twin or bed.rig.only_here or not driver.external or not driver.outputs or not bed.rig.hear:
        pytest.skip("nothing outside to make safe")
    driver.open()
    driver.write(np.full(len(driver.outputs), 5.0))
    safe = [float(-k - 1) for k in range(len(driver.outputs))]
    command = [sys.executable, "-c", WATCHDOG]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([bed.kind, dict(bed.rig.options), safe]) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        await_heard(bed.rig, safe)
    assert process.returncode == 0


def test_unknown_options_are_refused_with_the_nearest(bed):
    for key in bed.rig.options:
        with pytest.raises(OptionError, match=rf"drivers\.dut\.{key}q.*'{key}'"):
            bed.make(**{f"{key}q": 1})


def test_nonsense_is_an_option_error_that_names_the_driver_and_nothing_else(bed):
    """Whatever stands behind a known key: refused by name, or taken."""
    refusals = []
    for key in bed.rig.options:
        for nonsense in (None, -1, 1e300, "", "\0", [], {}, [[]], {"": {}}, True, [None], "a" * 5000):
            try:
                bed.make(**{key: nonsense})
            except OptionError as error:
                refusals.append(str(error))
    assert len(refusals) >= 2 * len(bed.rig.options)
    assert [r for r in refusals if "dut" not in r] == []


# -- in a runner --------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(bed, name) -> Iterator[tuple[Runner, Bed]]:
    with ExitStack() as boxes:
        inbox = outbox = None
        if bed.driver.inputs:
            inbox = Mailbox.create(f"{name}.in", channels=len(bed.driver.inputs))
            boxes.callback(inbox.close)
        made = Runner(
            bed.driver,
            inbox=inbox,
            outbox=outbox,
            used=np.array([], np.int64),
            safe=np.array([s.safe for s in bed.driver.outputs]),
            health=np.zeros(HEALTH_WORDS, np.int64),
            live=lambda: False,
            period=0.005,
        )
        made.start()
        yield made, bed
        assert made.stop(time.monotonic() + STOPS_WITHIN)


def is_up(made: Runner, bed: Bed) -> bool:
    bed.say(*[1.0] * len(bed.driver.inputs))
    return bool(made.health[H.STATE] == Health.UP)


def test_it_comes_up_counts_and_ends(runner):
    made, bed = runner
    wait_for(lambda: is_up(made, bed), "the driver to be up")
    assert (made.health[H.FRAMES] > 0) == bool(bed.driver.inputs)
    assert made.health[H.TWIN] == bed.twin
    assert made.health[H.REAL] == (not bed.twin)
    assert made.health[H.RECONNECTS] == 0


def test_counters_are_exact(runner):
    """Frames come in bursts, good ones and bad ones mixed, so that one read holds several: each counts once."""
    made, bed = runner
    rig = bed.rig
    if bed.twin or not rig.frames:
        pytest.skip("it is asked, and nobody outside knows how often")
    wait_for(lambda: is_up(made, bed), "the driver to be up")
    wait_for(lambda: settled(made), "the last frame of its coming up")
    frames, errors = int(made.health[H.FRAMES]), int(made.health[H.ERRORS])
    good = bad = 0
    for k in range(60):
        if rig.spoil and k % 5 == 4:
            rig.spoil()
            bad += 1
        else:
            bed.say(*[float(k % 50)] * len(bed.driver.inputs))
            good += rig.frames
    wait_for(lambda: made.health[H.FRAMES] >= frames + good and made.health[H.ERRORS] >= errors + bad, "all of them")
    assert settled(made)
    assert (made.health[H.FRAMES] - frames, made.health[H.ERRORS] - errors) == (good, bad)


def settled(made: Runner) -> bool:
    """Whether nothing more comes for a while."""
    before = made.health[[H.FRAMES, H.ERRORS]].tolist()
    time.sleep(0.3)
    return before == made.health[[H.FRAMES, H.ERRORS]].tolist()


def test_a_device_that_comes_back_is_found_and_counted(runner):
    made, bed = runner
    if bed.twin or not bed.rig.lose or not bed.rig.find:
        pytest.skip("it cannot be lost")
    wait_for(lambda: is_up(made, bed), "the driver to be up")
    bed.rig.lose()
    wait_for(lambda: made.health[H.STATE] == Health.DOWN, "the driver to be down", 20.0)
    assert made.trouble
    bed.rig.find()
    wait_for(lambda: is_up(made, bed), "the driver to be up again")
    # At least: a server on its way down may still take a connection. test_runner.py counts with a device of its own.
    assert made.health[H.RECONNECTS] >= 1


# -- in a node ----------------------------------------------------------------------------------------------------


class Bad(Twin):
    """Behaves as its option says: blocks ten seconds in every call, or raises."""

    def __init__(self, name: str, options: Any) -> None:
        blocks = options["how"] == "blocks"
        inner = registry.create("loopback", name, {})
        super().__init__(inner, True)
        self._blocks = blocks

    def read(self, values: np.ndarray, stamps: np.ndarray) -> bool:
        return self._misbehave()

    def write(self, values: np.ndarray) -> None:
        self._misbehave()

    def _misbehave(self) -> bool:
        if self._blocks:
            time.sleep(10)
        raise RuntimeError("as it was told to")


def test_drivers_that_block_or_raise_disturb_neither_another_nor_the_tick(tmp_path, name):
    text = """
safety.watchdog = false
safety.stop_deadline_ms = 100
log.timing = false
[drivers.blocker]
kind = "test_conformance:Bad"
how = "blocks"
[drivers.raiser]
kind = "test_conformance:Bad"
how = "raises"
[drivers.good]
kind = "loopback"
"""
    with Node(make_config(tmp_path, name, text)) as node:
        node.start()
        node.arm()
        node.run()
        good = node.runners["good"].health
        steps, frames, began = node.steps, int(good[H.FRAMES]), time.monotonic()
        wait_for(lambda: node.steps >= steps + 500 and good[H.FRAMES] > frames + 100, "the tick and the other driver")
        assert time.monotonic() - began < 5.0
        assert good[H.ERRORS] == 0
        assert node.driver_states()["raiser"][0] == Health.DEGRADED
        wait_for(lambda: node.driver_states()["blocker"][0] == Health.DEGRADED, "the word that it hangs")
        assert "has not returned for" in node.driver_states()["blocker"][1]
        assert node.state.name == "RUNNING"
