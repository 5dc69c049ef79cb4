"""daq: the real nidaqmx client, through NI's own messages, against make-believe cards (tools/ni_server.py)."""

from __future__ import annotations

import ctypes.util
import math
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator

import grpc
import nidaqmx
import nidaqmx.system
import numpy as np
import pytest
from ni_server import Card, NiServer, served
from support import free_port, wait_for

from drivers.base import DriverError
from drivers.daq import driver as daq
from drivers.daq import tasks
from drivers.daq.driver import Daq
from drivers.runner import Runner
from hilnode.cli import devices
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

AI = {"name": "x", "channel": "ai0"}
AO = {"name": "valve", "channel": "ao0", "safe": 1.5}
LINE = {"name": "lamp", "channel": "port0/line2"}
STEP = 20.0 / 2**16  # [V] of the card's converter
no_driver = pytest.mark.skipif(
    ctypes.util.find_library("nidaqmx") is not None, reason="NI's driver is installed on this PC"
)


@pytest.fixture
def server() -> Iterator[NiServer]:
    with served() as made:
        yield made


@pytest.fixture
def make(server) -> Iterator[Callable[..., Daq]]:
    made: list[Daq] = []

    def one(**options: object) -> Daq:
        where = {"server": server.address} | ({} if "serial" in options else {"device": "Dev1"})
        made.append(Daq("card", {**where, **options}))
        return made[-1]

    yield one
    for driver in made:
        driver.close()


def read(driver: Daq, times: int = 1) -> tuple[list[float], list[int]]:
    """What the driver reads when all channels have come, the given number of times."""
    values = np.full(len(driver.inputs), -99.0)
    for _ in range(times):
        stamps = np.zeros(len(driver.inputs), np.int64)
        wait_for(lambda stamps=stamps: driver.read(values, stamps) and stamps.all(), "all channels", 5.0)
    return values.tolist(), stamps.tolist()


def failing(act: Callable[[], object], kind: type[Exception] = DriverError, seconds: float = 5.0) -> str:
    """What it says when it fails at last, in one line."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            act()
        except kind as error:
            said = str(error)
            break
    else:
        raise AssertionError("it never failed")
    assert "\n" not in said
    return said


def reading(driver: Daq) -> Callable[[], bool]:
    return lambda: driver.read(np.zeros(len(driver.inputs)), np.zeros(len(driver.inputs), np.int64))


# -- what is read and written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["on-demand", "buffered"])
def test_every_sort_of_input(mode, server, make):
    server.card.outside |= {
        "ai0": lambda t: 2.5,
        "ai3": lambda t: -1.0,
        "port0/line3": lambda t: 1.0,
        "port0/line4": lambda t: 1.0,
        "ctr0": lambda t: 512.3,
        "ctr1": lambda t: 250.0 * t,
        "ctr2": lambda t: 1000.0,
        "ctr3": lambda t: 41.0,
    }
    inputs = {
        "force": {"channel": "ai0", "slope": 200.0, "offset": -20.0, "unit": "N"},
        "level": {"channel": "ai3", "table": [[-2.0, 0.0], [0.0, 50.0], [2.0, 60.0]]},
        "high": {"channel": "port0/line3"},
        "low": {"channel": "port0/line4", "invert": True},
        "angle": {"channel": "ctr0", "measure": "angle", "pulses": 1024},
        "speed": {"channel": "ctr1", "measure": "frequency", "slope": 2.0},
        "slide": {"channel": "ctr2", "measure": "position", "distance": 5e-6, "decoding": "x1"},
        "parts": {"channel": "ctr3", "measure": "count"},
    }
    driver = make(mode=mode, inputs=inputs)
    driver.open()
    before = time.monotonic_ns() - 100_000_000
    values, stamps = read(driver, times=10)
    expected = [480.0, 25.0, 1.0, 0.0, 512.25 / 1024 * 2 * math.pi, 500.0, 0.005, 41.0]
    assert values == pytest.approx(expected, abs=200 * STEP)
    assert all(before <= s <= time.monotonic_ns() for s in stamps)


@pytest.mark.parametrize(
    ("word", "number"), [("default", -1), ("rse", 10083), ("nrse", 10078), ("diff", 10106), ("pseudodiff", 12529)]
)
def test_terminals_have_the_numbers_of_nidaqmx_h(word, number, server, make):
    make(inputs=[{**AI, "terminal": word, "volts": [-0.2, 5]}]).open()
    (task,) = server.state.tasks.values()
    settings = task.channels[0].settings
    assert (settings.terminal_config_raw, settings.min_val, settings.max_val) == (number, -0.2, 5.0)


def test_counters_have_the_numbers_of_nidaqmx_h(server, make):
    make(
        inputs={
            "a": {"channel": "ctr0", "measure": "angle", "pulses": 360, "decoding": "x2", "index": True},
            "f": {"channel": "ctr1", "measure": "frequency", "hertz": [5, 2000]},
            "n": {"channel": "ctr2", "measure": "count", "edge": "falling"},
        }
    ).open()
    angle, frequency, count = (task.channels[0].settings for task in server.state.tasks.values())
    assert (angle.decoding_type_raw, angle.pulses_per_rev, angle.zidx_enable) == (10091, 360, True)
    assert (frequency.min_val, frequency.max_val, frequency.units_raw) == (5.0, 2000.0, 10373)
    assert count.edge_raw == 10171


def test_the_sample_clock_is_as_asked(server, make):
    server.card.external_clock = 500.0
    make(mode="buffered", rate=3000.0, clock="PFI0", inputs=[AI]).open()
    (task,) = server.state.tasks.values()
    assert (task.rate, task.source, task.continuous, task.buffer) == (3000.0, "/Dev1/PFI0", True, 3000)


@pytest.mark.parametrize("mode", ["on-demand", "buffered"])
def test_what_is_written_comes_back_over_the_wires(mode, server, make):
    inputs = [AI, {"name": "back", "channel": "port1/line2"}]
    driver = make(mode=mode, inputs=inputs, outputs=[{**AO, "slope": 10.0, "safe": 0.0}, LINE])
    driver.open()
    for value, bit in ((30.0, 1.0), (-70.0, 0.0)):
        driver.write(np.array([value, bit]))
        time.sleep(0.02)
        assert read(driver, times=2)[0] == pytest.approx([value / 10, bit], abs=STEP)


def test_outputs_stop_at_their_volts_and_lines_switch_at_one_half(server, make):
    driver = make(outputs=[{**AO, "volts": [0, 5]}, LINE, {"name": "b", "channel": "port0/line3", "invert": True}])
    driver.open()
    driver.write(np.array([99.0, 0.5, 0.5]))
    assert [server.card.output(t) for t in ("ao0", "port0/line2", "port0/line3")] == [5.0, 1.0, 0.0]
    driver.write(np.array([-99.0, 0.49, 0.49]))
    assert [server.card.output(t) for t in ("ao0", "port0/line2", "port0/line3")] == [0.0, 0.0, 1.0]


def test_what_is_not_a_number_is_not_sent(server, make):
    driver = make(outputs=[AO, LINE])
    driver.open()
    driver.write(np.array([2.0, 1.0]))
    assert "output valve is not a number" in failing(lambda: driver.write(np.array([math.nan, 0.0])), ValueError)
    assert (server.card.output("ao0"), server.card.output("port0/line2")) == (2.0, 1.0)


def test_a_count_goes_on_where_32_bits_end(server, make):
    edges = [2**32 - 5]
    server.card.outside["ctr0"] = lambda t: edges[0]
    driver = make(rate=10_000, inputs=[{"name": "n", "channel": "ctr0", "measure": "count"}])
    driver.open()
    assert read(driver)[0] == [2**32 - 5]
    edges[0] += 15
    assert read(driver)[0] == [2**32 + 10]


def test_a_shaft_that_stops_has_no_speed(server, make):
    stop = [math.inf]
    server.card.outside["ctr0"] = lambda t: 200.0 * min(t, stop[0])
    driver = make(inputs=[{"name": "f", "channel": "ctr0", "measure": "frequency", "hertz": [2.0, 1e4]}])
    driver.open()
    assert read(driver, times=20)[0] == pytest.approx([200.0])
    stop[0] = server.card.now()
    assert read(driver, times=2)[0][0] <= 200.1  # the last pulses before the stop
    time.sleep(0.1)
    assert 2.0 < read(driver)[0][0] < 11.0
    time.sleep(0.5)
    assert read(driver)[0] == [0.0]


def test_on_demand_the_node_asks_at_its_rate(server, make):
    driver = make(rate=50.0, inputs=[AI])
    driver.open()
    read(driver)
    began = time.monotonic()
    read(driver, times=10)
    assert time.monotonic() - began > 0.18
    assert server.state.calls.count("ReadAnalogF64") == 11


# -- the sample clock -----------------------------------------------------------------------------------------------


def ramp(t: float) -> float:
    """Volts that tell the time at which they were sampled: 10 V/s, from the beginning each second."""
    return 10.0 * (t % 1.0)


def told(value: float, stamp: int, card: Card) -> float:
    """How much later than the sample the stamp is [s]."""
    late = (stamp * 1e-9 - card.born) - value / 10.0
    return (late + 0.5) % 1.0 - 0.5


def test_a_sample_is_dated_by_the_sample_clock_however_late_it_is_fetched(server, make):
    server.card.outside["ai0"] = ramp
    driver = make(mode="buffered", rate=20.0, inputs=[AI])
    driver.open()
    read(driver, times=10)
    waits = []
    for _ in range(8):
        time.sleep(0.08)  # one sample is there, 30 ms old, give or take what the last read was late
        before = time.monotonic_ns()
        values, stamps = read(driver)
        waits.append((before - stamps[0]) * 1e-9)
        assert abs(told(values[0], stamps[0], server.card)) < 0.015
    assert max(waits) > 0.02  # so the time of the reading would have been wrong


def test_only_a_late_reader_asks_how_many_samples_there_are(server, make):
    """A question through gRPC costs as much as an answer."""
    driver = make(mode="buffered", rate=20.0, inputs=[AI])
    driver.open()
    asked = lambda: server.state.calls.count("GetReadAttributeUInt32")  # noqa: E731
    read(driver, times=8)
    in_time = asked()
    assert in_time <= 2  # none but for a busy machine
    time.sleep(0.3)
    read(driver)
    assert asked() > in_time


def test_a_late_reader_gets_the_newest_sample(server, make):
    server.card.outside |= {"ai0": ramp, "ai1": lambda t: -ramp(t)}
    driver = make(mode="buffered", rate=5000.0, inputs=[AI, {"name": "y", "channel": "ai1"}])
    driver.open()
    read(driver, times=3)
    time.sleep(0.4)
    values, stamps = read(driver)
    assert (time.monotonic_ns() - stamps[0]) * 1e-9 < 0.15
    assert abs(told(values[0], stamps[0], server.card)) < 0.05
    assert values[1] == pytest.approx(-values[0])
    (task,) = server.state.tasks.values()
    assert task.acquired - task.taken < 5000 * 0.15


def test_a_clock_from_outside_dates_by_the_reading(server, make):
    """Its rate is not known: 40 Hz here, where the config expects 1000."""
    server.card.external_clock = 40.0
    server.card.outside["ai0"] = ramp
    driver = make(mode="buffered", rate=1000.0, clock="PFI0", inputs=[AI])
    driver.open()
    for _ in range(8):
        values, stamps = read(driver)
        assert abs(told(values[0], stamps[0], server.card)) < 0.1


def test_samples_that_came_before_the_time_was_up_count(server, make):
    """A block is ten samples; in the time a read waits there come only five."""
    server.card.external_clock = 100.0
    server.card.outside |= {"ai0": lambda t: 3.0, "ai1": lambda t: 4.0}
    driver = make(mode="buffered", rate=10_000.0, clock="PFI0", inputs=[AI, {"name": "y", "channel": "ai1"}])
    driver.open()
    assert read(driver)[0] == pytest.approx([3.0, 4.0], abs=STEP)


def test_a_clock_that_does_not_come_holds_up_nothing_else(server, make):
    """Lines are read on, outputs are written on, and the silence is told."""
    server.card.outside["port1/line0"] = lambda t: 1.0
    driver = make(mode="buffered", clock="PFI0", inputs=[AI, {"name": "k", "channel": "port1/line0"}], outputs=[AO])
    driver.open()
    values, stamps = np.zeros(2), np.zeros(2, np.int64)
    writes = []

    def write() -> None:
        while len(writes) < 20:
            driver.write(np.array([1.0]))
            writes.append(time.monotonic())

    writer = threading.Thread(target=write)
    writer.start()
    assert driver.read(values, stamps)
    assert (values[1], stamps[0]) == (1.0, 0)
    assert stamps[1] > 0
    writer.join(5)
    assert np.median(np.diff(writes)) < tasks.WAIT / 2
    said = failing(reading(driver), ValueError)
    assert said == "no sample from Dev1 for more than 1 s: does the clock at PFI0 run?"
    server.card.external_clock = 1000.0
    assert read(driver)[1][0] > 0


def test_a_buffer_that_ran_over_is_started_again(server, make):
    server.card.outside["ai0"] = ramp
    driver = make(mode="buffered", rate=1000.0, inputs=[AI], outputs=[AO])
    driver.open()
    driver.write(np.array([3.0]))
    read(driver)
    made = server.state.calls.count("CreateTask")
    time.sleep(1.1)
    said = failing(reading(driver), ValueError)
    assert "samples were lost" in said
    assert "-200279" in said
    values, stamps = read(driver, times=3)
    assert abs(told(values[0], stamps[0], server.card)) < 0.05
    assert server.state.calls.count("CreateTask") == made  # the outputs were left alone
    driver.write(np.array([4.0]))


# -- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["on-demand", "buffered"])
def test_a_card_that_is_unplugged(mode, server, make):
    driver = make(mode=mode, inputs=[AI], outputs=[AO])
    driver.open()
    read(driver)
    server.card.present = False
    assert "card Dev1 at 127.0.0.1" in failing(reading(driver))
    assert "unplugged, or switched off?" in failing(lambda: driver.write(np.array([1.0])))
    assert "there is no card Dev1" in failing(driver.open)
    server.card.present = True
    driver.open()
    read(driver)


def test_a_card_by_another_name_lists_those_there_are(make):
    said = failing(make(device="Dev7", inputs=[AI]).open)
    assert said.startswith("there is no card Dev7 at 127.0.0.1:")
    assert said.endswith("There are: Dev1")


def test_a_card_by_its_serial_number(make, server):
    server.state.cards["Slot4"] = Card("Slot4", serial=0xBEEF)
    server.state.cards["Slot4"].outside["ai0"] = lambda t: 7.0
    driver = make(serial="0000beef", inputs=[AI])
    driver.open()
    assert read(driver)[0] == pytest.approx([7.0], abs=STEP)
    said = failing(make(serial="BEEE", inputs=[AI]).open)
    assert "serial = 0000BEEE" in said
    assert "01A2B3C4 (Dev1), 0000BEEF (Slot4)" in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-200088, "was reset or removed"),
        (-88710, "was reset or removed"),
        (-50405, "was reset or removed"),
        (-200324, "unplugged"),
        (-50103, "in use by another program"),
        (-200999, "Status Code: -200999"),
    ],
)
def test_errors_after_which_the_card_is_opened_again(code, said, server, make):
    driver = make(inputs=[AI])
    driver.open()
    server.state.fail("ReadAnalogF64", code)
    assert said in failing(reading(driver))


@pytest.mark.parametrize("code", [-200279, -200361, -200019])
def test_errors_after_which_a_task_is_started_again(code, server, make):
    driver = make(mode="buffered", inputs=[AI])
    driver.open()
    server.state.fail("ReadAnalogF64", code)
    assert f"(NI error {code})" in failing(reading(driver), ValueError)
    read(driver)


def test_a_time_out_is_no_sample_and_no_more(server, make):
    driver = make(inputs=[AI])
    driver.open()
    read(driver)
    server.state.fail("ReadAnalogF64", -200284)
    assert not reading(driver)()
    assert reading(driver)()


def test_what_the_card_cannot_do_is_told_in_the_words_of_ni(make):
    assert "Physical Channel Name: ai99" in failing(make(inputs=[{"name": "x", "channel": "ai99"}]).open)
    assert "Requested Value: 60.0 Maximum Value: 10.0" in failing(make(inputs=[{**AI, "volts": [0, 60]}]).open)


def test_a_task_that_cannot_be_had_leaves_none_of_the_others(server, make):
    failing(make(inputs=[AI], outputs=[{"name": "y", "channel": "ao77"}]).open)
    assert not server.state.tasks


def test_terminals_that_another_program_has(server, make):
    with grpc.insecure_channel(server.address) as channel:
        other = nidaqmx.Task(grpc_options=nidaqmx.GrpcSessionOptions(channel, ""))
        other.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        other.start()
        assert "is in use by another program (NI error -50103)" in failing(make(outputs=[AO]).open)
        make(outputs=[{**AO, "channel": "ao1"}]).open()
        other.close()
    make(outputs=[AO]).open()


def test_a_network_that_fails_for_a_while(server, make):
    """The server lives on and still has our tasks: they are found and cleared, or the card would be in use."""
    driver = make(mode="buffered", inputs=[AI], outputs=[AO])
    driver.open()
    read(driver)
    server.stop()
    said = failing(reading(driver))
    assert f"no answer from the NI gRPC device server at {server.address}" in said
    assert "is it running?" in said
    driver.close()
    assert "no answer from" in failing(driver.open)
    assert len(server.state.tasks) == 2
    server.start()
    wait_for(lambda: opens(driver), "the server", 5.0)
    read(driver)
    assert len(server.state.tasks) == 2


def opens(driver: Daq) -> bool:
    try:
        driver.open()
    except DriverError:
        return False
    return True


def test_a_server_that_falls_silent_holds_nobody_for_ever(server, make, monkeypatch):
    monkeypatch.setattr(daq, "PATIENCE", 0.3)
    driver = make(inputs=[AI])
    driver.open()
    server.state.silent.set()
    began = time.monotonic()
    assert "no answer from the NI gRPC device server" in failing(reading(driver))
    assert time.monotonic() - began < 2.0


def test_without_the_library_the_command_is_told(monkeypatch):
    for name in [m for m in sys.modules if m.startswith(("nidaqmx", "drivers.daq.link", "drivers.daq.tasks"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nidaqmx", None)
    said = failing(Daq("card", {"device": "Dev1", "inputs": [AI]}).open)
    assert said == 'the library nidaqmx is not installed: pip install "hilnode[daq]"'


@no_driver
def test_without_the_driver_of_ni_the_command_is_told():
    said = failing(Daq("card", {"device": "Dev1", "inputs": [AI]}).open)
    assert "Could not find an installation of NI-DAQmx" in said
    assert "python -m nidaqmx installdriver" in said


def test_closing_while_another_thread_reads(server, make):
    driver = make(mode="buffered", clock="PFI0", inputs=[AI])  # no clock: each read waits
    driver.open()
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(failing(reading(driver))))
    reader.start()
    time.sleep(0.1)
    driver.close()
    reader.join(5)
    driver.close()
    assert said == ["not open"]
    assert not server.state.tasks


# -- in the runner, and in the watchdog -------------------------------------------------------------------------------


@pytest.fixture
def running(name) -> Iterator[Callable[[Daq], Runner]]:
    made: list[tuple[Runner, Mailbox]] = []

    def one(driver: Daq) -> Runner:
        inbox = Mailbox.create(f"{name}.{len(made)}", channels=len(driver.inputs))
        runner = Runner(
            driver,
            inbox=inbox,
            outbox=None,
            used=np.array([], np.int64),
            safe=np.array([s.safe for s in driver.outputs]),
            health=np.zeros(HEALTH_WORDS, np.int64),
            live=lambda: False,
            period=0.01,
        )
        made.append((runner, inbox))
        runner.start()
        return runner

    yield one
    for runner, inbox in made:
        assert runner.stop(time.monotonic() + 5)
        inbox.close()


def test_a_card_that_is_plugged_in_again_is_read_and_written_again(server, make, running):
    runner = running(make(mode="buffered", inputs=[AI], outputs=[AO]))
    is_up = lambda: runner.health[H.STATE] == Health.UP  # noqa: E731
    wait_for(lambda: is_up() and server.card.output("ao0") == 1.5, "the card")
    server.card.present = False
    wait_for(lambda: runner.health[H.STATE] == Health.DOWN, "the loss")
    wait_for(lambda: "there is no card Dev1" in runner.trouble, "the reason")
    server.card.reset()
    server.card.present = True
    wait_for(lambda: is_up() and server.card.output("ao0") == 1.5, "the card again")
    assert runner.health[H.RECONNECTS] == 1


def test_a_server_that_restarts_is_found_again(server, make, running):
    runner = running(make(inputs=[AI], outputs=[AO]))
    wait_for(lambda: runner.health[H.STATE] == Health.UP, "the card")
    server.stop()
    wait_for(lambda: runner.health[H.STATE] == Health.DOWN, "the loss")
    server.state.tasks.clear()
    server.start()
    wait_for(lambda: runner.health[H.STATE] == Health.UP, "the card again")


def test_the_watchdog_takes_a_free_card_and_lets_go_of_it(server, make):
    dog = make(outputs=[AO, LINE])
    dog.prepare_safe()
    assert not server.state.tasks
    dog.write_safe(np.array([1.5, 1.0]))
    assert (server.card.output("ao0"), server.card.output("port0/line2")) == (1.5, 1.0)
    assert not server.state.tasks
    assert server.card.resets == 0


def test_the_watchdog_takes_the_card_from_a_frozen_node_once(server, make):
    node, dog = make(inputs=[AI], outputs=[AO]), make(inputs=[AI], outputs=[AO])
    node.open()
    node.write(np.array([9.0]))
    dog.prepare_safe()
    dog.write_safe(np.array([1.5]))
    assert server.card.output("ao0") == 1.5
    assert server.card.resets == 1
    assert "was reset or removed" in failing(lambda: node.write(np.array([9.0])))  # it wakes up
    assert "was reset or removed" in failing(reading(node))
    node.open()
    dog.write_safe(np.array([1.5]))  # the same incident goes on: the node has the card again and writes safe values
    read(node)
    assert server.card.resets == 1


def test_the_watchdog_comes_back_to_a_server_that_was_away(server, make):
    dog = make(outputs=[AO])
    dog.prepare_safe()
    server.stop()
    assert "no answer from" in failing(lambda: dog.write_safe(np.array([1.5])))
    server.start()
    wait_for(lambda: writes_safe(dog), "the server", 5.0)
    assert server.card.output("ao0") == 1.5


def writes_safe(dog: Daq) -> bool:
    try:
        dog.write_safe(np.array([1.5]))
    except DriverError:
        return False
    return True


def test_hilnode_devices_lists_cards_through_the_real_client(server, make, monkeypatch, tmp_path):
    """NI's driver on this PC is all that is exchanged: the same calls go to the server."""
    server.state.cards["Dev2"] = Card("Dev2", serial=0xBEEF, product="USB-6501")
    server.state.cards["Dev2"].terminals = {"port0/line0"}
    with grpc.insecure_channel(server.address) as channel:
        remote = nidaqmx.system.System.remote(nidaqmx.GrpcSessionOptions(channel, ""))
        monkeypatch.setattr(nidaqmx.system.System, "local", lambda: remote)
        first, second = devices.list_devices(tmp_path)
    assert (first.id, first.name, first.stable, first.problems) == ("Dev1", "PCIe-6363", "01A2B3C4", ())
    (stanza,) = tomllib.loads(first.config)["drivers"].values()
    assert stanza.pop("kind") == "daq"
    make(**stanza).open()
    assert tomllib.loads(second.config)["drivers"] == {"usb_6501": {"kind": "daq", "device": "Dev2"}}


@no_driver
def test_hilnode_devices_says_how_to_get_the_driver_of_ni(tmp_path):
    (remark,) = devices.list_devices(tmp_path)
    assert "DaqNotFoundError" in remark.problems[0].what
    assert "python -m nidaqmx installdriver" in remark.problems[0].fix


def test_nobody_serves_there(make):
    said = failing(make(server=f"127.0.0.1:{free_port()}", inputs=[AI]).open)
    assert "no answer from the NI gRPC device server" in said
