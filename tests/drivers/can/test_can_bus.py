"""can: frames made and read by python-can and cantools on its virtual and UDP buses; nothing leaves this PC."""

from __future__ import annotations

import itertools
import os
import random
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import can
import cantools
import numpy as np
import pytest
from support import free_port, remote_node, wait_for

from drivers.base import DriverError
from drivers.can.bus import Can
from drivers.runner import Runner
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

DBC = Path(__file__).with_name("machine.dbc")
DATABASE = cantools.database.load_file(DBC)
ENGINE = {"EngineSpeed": 1500.0, "OilTemp": 90, "Torque": -250.5, "Gear": -1, "Counter": 7, "Flag": 1}
STATE = np.array([0.5, -1.0, 2.0, 100.0, 1.0])
_numbers = itertools.count()


class Rig:
    """A driver on a virtual bus, and the ECU's end of it."""

    def __init__(self, **options: Any) -> None:
        channel = f"test-{os.getpid()}-{next(_numbers)}"
        self.driver = Can("ecu", {"dbc": str(DBC), "interface": "virtual", "channel": channel, **options})
        self.ecu = can.Bus(interface="virtual", channel=channel)
        self.values = np.array([s.default for s in self.driver.inputs])
        self.stamps = np.zeros(len(self.values), np.int64)

    def read(self) -> bool:
        return self.driver.read(self.values, self.stamps)

    def value(self, name: str) -> float:
        return float(self.values[[s.name for s in self.driver.inputs].index(name)])

    def stamp(self, name: str) -> int:
        return int(self.stamps[[s.name for s in self.driver.inputs].index(name)])

    def send(self, name: str, **values: float) -> None:
        message = DATABASE.get_message_by_name(name)
        self.put(message.frame_id, message.encode(values), message.is_extended_frame, is_fd=message.is_fd)

    def put(self, can_id: int, data: bytes = b"", extended: bool = False, **more: Any) -> None:
        self.ecu.send(can.Message(arbitration_id=can_id, data=data, is_extended_id=extended, **more))

    def got(self) -> list[can.Message]:
        """All that the ECU has received."""
        return list(iter(lambda: self.ecu.recv(0), None))

    def close(self) -> None:
        self.driver.close()
        self.ecu.shutdown()


@pytest.fixture
def rig() -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def one(**options: Any) -> Rig:
        made.append(Rig(**options))
        made[-1].driver.open()
        return made[-1]

    yield one
    for each in made:
        each.close()


# -- receiving ----------------------------------------------------------------------------------------------------


def test_received_signals(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["EngineData", "Analog"])
    before = time.monotonic_ns()
    r.send("EngineData", **ENGINE)
    assert r.read()
    for name, value in ENGINE.items():
        assert r.value(f"enginedata.{name.lower()}") == value
        assert before <= r.stamp(f"enginedata.{name.lower()}") <= time.monotonic_ns()
    assert r.stamp("analog.level") == 0
    r.send("Analog", Pressure=2.5, Level=-7.25)
    assert r.read()
    assert (r.value("analog.pressure"), r.value("analog.level")) == (2.5, -7.25)


def test_several_frames_are_taken_in_one_read(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["EngineData", "Analog"])
    for speed in range(0, 5000, 125):
        r.send("EngineData", **ENGINE | {"EngineSpeed": speed})
    r.send("Analog", Pressure=1.0, Level=1.0)
    assert r.read()
    assert (r.value("enginedata.enginespeed"), r.value("analog.pressure")) == (4875.0, 1.0)
    began = time.monotonic()
    assert not r.read()
    assert 0.02 < time.monotonic() - began < 1.0  # it waited for a frame, and not for long


def test_pages_leave_the_signals_of_other_pages_alone(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["Diagnosis"])
    r.send("Diagnosis", Page=1, Status=5, Voltage=13.8, Current=-20.5)
    assert r.read()
    assert (r.value("diagnosis.voltage"), r.value("diagnosis.current")) == (13.8, -20.5)
    assert r.stamp("diagnosis.bootcount") == 0
    first = r.stamp("diagnosis.voltage")
    r.send("Diagnosis", Page=0, Status=6, BootCount=4_000_000_000)
    assert r.read()
    assert (r.value("diagnosis.bootcount"), r.value("diagnosis.voltage")) == (4e9, 13.8)
    assert (r.value("diagnosis.page"), r.value("diagnosis.status")) == (0.0, 6.0)
    assert r.stamp("diagnosis.voltage") == first < r.stamp("diagnosis.status")


def test_an_extended_identifier_is_not_the_same_as_a_standard_one(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["EngineData"])
    r.put(0x100, bytes([0, 8] + [0] * 6), extended=True)
    r.put(0x101, bytes([0, 8] + [0] * 6))
    r.put(0x100, extended=False, is_remote_frame=True, dlc=8)
    assert not r.read()
    r.put(0x100, bytes([0, 8] + [0] * 6))
    assert r.read()
    assert r.value("enginedata.enginespeed") == 256.0


def test_can_fd(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["Wide"], send={"WideOut": {"period_ms": 10}}, fd=True)
    r.send("Wide", Count64=2**63, Signed64=-(2**62), Precise=-1.0e-9)
    assert r.read()
    assert r.values.tolist() == [2.0**63, -(2.0**62), -1.0e-9]
    r.driver.write(np.array([3.25, -1.5, -(2.0**40)]))
    (frame,) = r.got()
    assert (frame.is_fd, frame.bitrate_switch, frame.dlc) == (True, True, 20)  # 18 is no length of CAN FD
    decoded = DATABASE.decode_message("WideOut", frame.data[:18])
    assert decoded == {"Position": 3.25, "Force": -1.5, "Steps": -(2**40)}


def test_a_short_frame_is_dropped_and_the_good_ones_before_it_count(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["EngineData"])
    r.put(0x100, bytes(7))
    with pytest.raises(ValueError, match="EngineData: a frame of 7 bytes, the database has 8: dropped"):
        r.read()
    assert not r.stamps.any()
    r.send("EngineData", **ENGINE)
    r.put(0x100, b"")
    r.send("EngineData", **ENGINE | {"Gear": 3})
    assert r.read()
    assert r.value("enginedata.gear") == -1
    with pytest.raises(ValueError, match="0 bytes"):
        r.read()
    assert r.read()
    assert r.value("enginedata.gear") == 3


def test_an_unknown_page_is_dropped(rig: Callable[..., Rig]) -> None:
    r = rig(receive=["Diagnosis"])
    r.put(0x200, bytes([0x35] + [0] * 7))
    with pytest.raises(ValueError, match="Page = 5 is a page that the database has not"):
        r.read()
    assert not r.stamps.any()


def test_error_frames(rig: Callable[..., Rig]) -> None:
    """Bits of the identifier as in linux/can/error.h."""
    r = rig(receive=["EngineData"])
    r.put(0x020, bytes(8), is_error_frame=True)
    with pytest.raises(ValueError, match="nobody acknowledges"):
        r.read()
    r.put(0x200, bytes(8), is_error_frame=True)
    with pytest.raises(ValueError, match="class 0x200"):
        r.read()
    r.put(0x044, bytes(8), is_error_frame=True)
    with pytest.raises(DriverError, match="bus-off"):
        r.read()


def test_a_driver_that_only_sends_notices_bus_off(rig: Callable[..., Rig]) -> None:
    r = rig(send=["MachineState"])
    r.send("EngineData", **ENGINE)
    r.driver.write(STATE)
    r.put(0x040, bytes(8), is_error_frame=True)
    with pytest.raises(DriverError, match="bus-off"):
        r.driver.write(STATE)


def mutated(count: int, seed: int) -> Iterator[can.Message]:
    """Frames with any identifier of the database or near it, any length, any flags, any bytes."""
    dice = random.Random(seed)
    ids = [m.frame_id for m in DATABASE.messages]
    for _ in range(count):
        data = dice.randbytes(dice.choice((8, 8, 8, 8, 7, 5, 1, 0, 24, 64)))
        frame = can.Message(arbitration_id=dice.choice(ids) ^ (dice.random() < 0.1), data=data)
        frame.is_extended_id = dice.random() < 0.5
        frame.is_remote_frame = dice.random() < 0.02
        frame.is_error_frame = dice.random() < 0.02
        if dice.random() < 0.1:
            frame.dlc = dice.randrange(65)  # says other than what is there
        yield frame


def fuzz(driver: Can, count: int, seed: int) -> tuple[int, int]:
    values, stamps = np.zeros(len(driver.inputs)), np.zeros(len(driver.inputs), np.int64)
    good = bad = 0
    for frame in mutated(count, seed):
        before, stamps[:] = values.copy(), 0
        try:
            taken = driver._take(frame, values, stamps)
        except (ValueError, DriverError):
            taken = False
            bad += 1
        good += taken
        assert taken == bool(stamps.any())
        if not taken:
            assert np.array_equal(values, before, equal_nan=True)
        else:
            known = DATABASE.get_message_by_frame_id(frame.arbitration_id)
            assert len(frame.data) >= known.length
    return good, bad


RECEIVED = ["EngineData", "Analog", "Diagnosis", "Wide"]


def test_mutated_frames_never_hurt(rig: Callable[..., Rig]) -> None:
    good, bad = fuzz(rig(receive=RECEIVED, fd=True).driver, 10_000, 1)
    assert good > 500
    assert bad > 500


@pytest.mark.slow
def test_a_million_mutated_frames(rig: Callable[..., Rig]) -> None:
    good, bad = fuzz(rig(receive=RECEIVED, fd=True).driver, 1_000_000, 2)
    assert good > 50_000
    assert bad > 50_000


# -- sending ------------------------------------------------------------------------------------------------------


def test_sent_signals(rig: Callable[..., Rig]) -> None:
    r = rig(send=["MachineState"])
    r.driver.write(STATE)
    (frame,) = r.got()
    assert (frame.arbitration_id, frame.is_extended_id, frame.is_fd, frame.dlc) == (0x300, False, False, 8)
    decoded = DATABASE.decode_message(0x300, frame.data)
    assert decoded == {"Angle": 0.5, "Speed": -1.0, "Mode": 2, "Load": 100, "Alive": 1}


def test_pages_are_sent_in_turn(rig: Callable[..., Rig]) -> None:
    r = rig(send={"MachinePages": {"period_ms": 0.1}})
    values = np.array([9.0, 12.5, -3.0, 0.75])
    r.driver.write(values)
    at_first = [DATABASE.decode_message(f.arbitration_id, f.data) for f in r.got()]
    assert at_first == [{"Axle": 1, "Common": 9, "Front": 12.5}, {"Axle": 2, "Common": 9, "Rear": -3.0, "Tilt": 0.75}]
    seen = []
    for _ in range(4):
        time.sleep(0.001)
        r.driver.write(values)
        seen += [DATABASE.decode_message(f.arbitration_id, f.data)["Axle"] for f in r.got()]
    assert seen == [1, 2, 1, 2]


def test_a_value_that_is_no_number_stops_its_message_only(rig: Callable[..., Rig]) -> None:
    r = rig(send=["MachinePages", "MachineState"])
    with pytest.raises(ValueError, match="MachinePages: Common = nan is no number"):
        r.driver.write(np.array([np.nan, 0.0, 0.0, 0.0, *STATE]))
    assert [f.arbitration_id for f in r.got()] == [0x300]


def test_each_message_keeps_its_cycle(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of the test's own: writes that come late and unevenly do not shift the beat."""
    r = rig(send={"MachineState": {"period_ms": 10}, "MachinePages": {"period_ms": 25}})
    values = np.concatenate([STATE, np.zeros(4)])
    dice = random.Random(5)
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    sent: dict[int, list[float]] = {0x300: [], 0x18F00000: []}
    for k in range(2000):
        now = 1000.0 + 1e-3 * k + dice.uniform(0.0, 0.0009)
        r.driver.write(values)
        for frame in r.got():
            sent[frame.arbitration_id].append(now)
    states, pages = sent[0x300], sent[0x18F00000][1:]  # the first time both pages went out
    assert len(states) == 200
    assert len(pages) == 80
    for times, period in ((states, 0.010), (pages, 0.025)):
        late = np.array(times) - times[0] - period * np.arange(len(times))
        assert late.min() >= -1e-9
        assert late.max() < 0.0021


def test_missed_turns_are_left_out(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    r = rig(send={"MachineState": {"period_ms": 10}})
    now = 50.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    counts = []
    for seconds in (0.0, 0.0049, 0.0101, 0.0571, 0.0574, 0.0599, 0.0601):
        now = 50.0 + seconds
        r.driver.write(STATE)
        counts.append(len(r.got()))
    assert counts == [1, 0, 1, 1, 0, 0, 1]  # no burst after the pause, and back on the beat


def test_safe_values_do_not_wait_for_the_cycle(rig: Callable[..., Rig]) -> None:
    r = rig(send={"MachineState": {"period_ms": 3_600_000}, "MachinePages": {"period_ms": 3_600_000}})
    values = np.concatenate([STATE, np.ones(4)])
    r.driver.live = True
    r.driver.write(values)
    assert len(r.got()) == 3
    r.driver.write(values)
    assert not r.got()
    r.driver.live = False
    r.driver.write(np.zeros(9))
    frames = r.got()
    assert [f.arbitration_id for f in frames] == [0x300, 0x18F00000, 0x18F00000]
    assert DATABASE.decode_message(0x300, frames[0].data)["Angle"] == 0
    r.driver.write(np.zeros(9))
    assert not r.got()


def test_the_watchdog_sends_all_at_once_and_then_in_cycles(rig: Callable[..., Rig]) -> None:
    r = rig(send={"MachineState": {"period_ms": 3_600_000}, "MachinePages": {"period_ms": 30}})
    channel = r.driver._channel
    dog = Can("ecu", {**r.driver.options, "channel": channel})
    values = np.concatenate([STATE, np.ones(4)])
    try:
        dog.prepare_safe()
        assert not r.got()
        dog.write_safe(values)
        assert len(r.got()) == 3
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            dog.write_safe(values)
            time.sleep(0.002)
        later = [f.arbitration_id for f in r.got()]
        assert 0 < len(later) <= 7
        assert set(later) == {0x18F00000}
    finally:
        dog.close()


class Stubborn:
    """A bus whose every operation fails with an error of python-can."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.ended = 0

    def send(self, frame: can.Message) -> None:
        raise self.error

    def recv(self, wait: float) -> None:
        raise self.error

    def shutdown(self) -> None:
        self.ended += 1
        raise self.error


@pytest.mark.parametrize(
    ("number", "lost", "words"),
    [
        (105, False, "takes no more frames"),
        (None, False, "takes no more"),
        (100, True, "ip link set"),
        (19, True, "no CAN"),
    ],
)
def test_errors_of_the_kernel(rig: Callable[..., Rig], number: int | None, lost: bool, words: str) -> None:
    """ENOBUFS, a full queue, ENETDOWN and ENODEV, as python-can's SocketCAN interface passes them on."""
    r = rig(send=["MachineState"], receive=["EngineData"])
    r.driver.close()
    r.driver._interface = "socketcan"
    r.driver._bus = Stubborn(can.CanOperationError("Failed to transmit", number))  # type: ignore[assignment]
    with pytest.raises(DriverError if lost else ValueError, match=words):
        r.driver.write(STATE)
    if number is not None:
        with pytest.raises(DriverError):
            r.read()
    r.driver.close()  # does not raise
    r.driver.close()
    with pytest.raises(DriverError, match="not open"):
        r.read()
    with pytest.raises(DriverError, match="not open"):
        r.driver.write(STATE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"interface": "socketcan", "channel": "nocan0"},
            "there is no CAN interface nocan0: plugged in",
        ),
        ({"interface": "sockercan"}, "python-can has no interface 'sockercan': known are .*socketcan"),
        (
            {"interface": "udp_multicast", "channel": "239.1.2.3", "settings": {"port": "x"}},
            "CAN udp_multicast 239.1.2.3",
        ),
    ],
)
def test_a_bus_that_cannot_be_had(options: dict[str, Any], words: str) -> None:
    driver = Can("ecu", {"dbc": str(DBC), "channel": "x", "receive": ["EngineData"], **options})
    with pytest.raises(DriverError, match=words) as caught:
        driver.open()
    assert "\n" not in str(caught.value)
    driver.close()


# -- with the runner ----------------------------------------------------------------------------------------------


@pytest.fixture
def running(rig: Callable[..., Rig], name: str) -> Iterator[Callable[..., tuple[Rig, Runner]]]:
    made: list[tuple[Runner, Mailbox]] = []

    def one(**options: Any) -> tuple[Rig, Runner]:
        r = rig(**options)
        r.driver.close()
        inbox = Mailbox.create(f"{name}.in", channels=len(r.driver.inputs))
        health = np.zeros(HEALTH_WORDS, np.int64)
        safe = np.array([s.safe for s in r.driver.outputs])
        used = np.zeros(0, np.int64)
        runner = Runner(
            r.driver, inbox=inbox, outbox=None, used=used, safe=safe, health=health, live=lambda: False, period=0.001
        )
        made.append((runner, inbox))
        runner.start()
        return r, runner

    yield one
    for runner, inbox in made:
        assert runner.stop(time.monotonic() + 5)
        inbox.close()


def test_a_silent_message_degrades_although_others_come(running: Callable[..., tuple[Rig, Runner]]) -> None:
    r, runner = running(receive={"EngineData": {"timeout_ms": 60}, "Analog": {"timeout_ms": 0}})

    def state() -> Health:
        return Health(int(runner.health[H.STATE]))

    wait_for(lambda: runner.trouble == "no EngineData for 60 ms", "a complaint about silence from the start")
    assert state() == Health.CONNECTING  # a required driver must not pass for one that is there
    ending = threading.Event()
    speaks = {"EngineData": True, "Analog": True}

    def ecu() -> None:
        while not ending.wait(0.003):
            if speaks["EngineData"]:
                r.send("EngineData", **ENGINE)
            r.send("Analog", Pressure=1.0, Level=2.0)

    talk = threading.Thread(target=ecu)
    talk.start()
    try:
        wait_for(lambda: state() == Health.UP, "health up")
        speaks["EngineData"] = False
        wait_for(lambda: state() == Health.DEGRADED, "health degraded")
        frames = runner.health[H.FRAMES]
        wait_for(lambda: runner.health[H.FRAMES] > frames + 10, "frames of the other message")
        assert state() == Health.DEGRADED
        assert runner.health[H.ERRORS] == 0
        speaks["EngineData"] = True
        wait_for(lambda: state() == Health.UP, "health up again")
    finally:
        ending.set()
        talk.join()


def test_bus_off_opens_the_bus_again(running: Callable[..., tuple[Rig, Runner]]) -> None:
    r, runner = running(receive=["EngineData"], send=["MachineState"])
    wait_for(r.got, "frames")
    r.put(0x040, bytes(8), is_error_frame=True)
    wait_for(lambda: runner.health[H.RECONNECTS] == 1, "a new connection")
    assert "bus-off" in runner.trouble
    r.got()
    wait_for(r.got, "frames after it")

    def up() -> bool:
        r.send("EngineData", **ENGINE)
        return bool(runner.health[H.STATE] == Health.UP)

    wait_for(up, "health up")


# -- between processes --------------------------------------------------------------------------------------------


def udp_bus(port: int) -> can.BusABC:
    """A bus of UDP datagrams that do not leave this PC, or a skip where the machine has no multicast."""
    try:
        one = can.Bus(interface="udp_multicast", channel="239.74.163.2", port=port, hop_limit=0)
        other = can.Bus(interface="udp_multicast", channel="239.74.163.2", port=port, hop_limit=0)
    except OSError as error:
        pytest.skip(f"no multicast here: {error}")
    try:
        one.send(can.Message(arbitration_id=1, data=b"x"))
        if other.recv(1.0) is None:
            one.shutdown()
            pytest.skip("multicast does not come back to this machine")
    except can.CanError as error:
        one.shutdown()
        pytest.skip(f"no multicast here: {error}")
    finally:
        other.shutdown()
    return one


def test_udp_multicast() -> None:
    port = free_port()
    with udp_bus(port) as ecu:
        driver = Can(
            "ecu",
            {
                "dbc": str(DBC),
                "interface": "udp_multicast",
                "channel": "239.74.163.2",
                "settings": {"port": port},
                "receive": ["EngineData"],
                "send": ["MachineState"],
            },
        )
        driver.open()
        values, stamps = np.zeros(6), np.zeros(6, np.int64)
        try:
            driver.write(STATE)
            frames = wait_for(lambda: [f for f in iter(lambda: ecu.recv(0.1), None) if f.arbitration_id == 0x300], "it")
            assert DATABASE.decode_message(0x300, frames[0].data)["Angle"] == 0.5
            ecu.send(
                can.Message(arbitration_id=0x100, data=DATABASE.encode_message(0x100, ENGINE), is_extended_id=False)
            )
            wait_for(lambda: driver.read(values, stamps), "the engine's data", 5)
            assert values.tolist() == list(ENGINE.values())
            assert driver._arguments["hop_limit"] == 0
        finally:
            driver.close()


NODE = """
plant.kind = "trouble_plant:create"
safety.bumpless_ms = 0
log.timing = false
[drivers.ecu]
kind = "can"
dbc = "machine.dbc"
interface = "udp_multicast"
channel = "239.74.163.2"
settings = { port = %d }
send = { MachineState = { period_ms = 5.0 } }
channels = { count = { signal = "MachineState.Angle", unit = "1", safe = -1.0 } }
[signals.outputs."ecu.count"]
from = "trouble.count"
"""


def test_the_watchdog_takes_over_from_a_frozen_and_a_killed_node(tmp_path: Path, name: str) -> None:
    """The database is found beside the config by both processes; no live value is repeated for a node that stands."""
    port = free_port()
    (tmp_path / "machine.dbc").write_bytes(DBC.read_bytes())
    with udp_bus(port) as ecu:

        def angles() -> list[float]:
            frames = list(iter(lambda: ecu.recv(0), None))
            return [struct.unpack(">h", f.data[:2])[0] * 1e-3 for f in frames if f.arbitration_id == 0x300]

        with remote_node(tmp_path, name, NODE % port, autostart=True) as node:
            wait_for(lambda: any(a > 0.0 for a in angles()), "live values")
            os.kill(node.pid, signal.SIGSTOP)
            wait_for(lambda: angles()[-1:] == [-1.0], "safe values for a frozen node", 20)
            time.sleep(0.3)
            frozen = angles()
            assert len(frozen) > 2
            assert set(frozen) == {-1.0}
            os.kill(node.pid, signal.SIGKILL)
            time.sleep(0.3)
            assert set(angles()) == {-1.0}
