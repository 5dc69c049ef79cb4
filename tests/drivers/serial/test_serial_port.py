"""serial: against the kernel's own terminals. Frames both ways, asking, unplugging, and what is said when it fails."""

import contextlib
import fcntl
import os
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import tomllib
import tty
import zlib
from collections.abc import Iterator
from functools import reduce
from operator import xor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import serial.tools.list_ports
from support import remote_node, wait_for

from drivers import registry
from drivers.base import DriverError, OptionError
from drivers.runner import Runner
from drivers.serial.port import SerialPort
from hilnode.cli.devices import list_devices
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

FRAME = {
    "format": "binary",
    "start": [0xAA, 0x55],
    "fields": [{"name": "force", "type": "int16", "scale": 0.5, "unit": "N"}, {"name": "n", "type": "uint32"}],
    "checksum": "crc-32/iso-hdlc",
}
LINE = {"format": "csv", "fields": ["x"], "start": ":"}


def framed(force: float, n: int) -> bytes:
    body = b"\xaa\x55" + struct.pack("<hI", round(2 * force), n)
    return body + struct.pack("<I", zlib.crc32(body))


class Plug:
    """A device on a pseudo terminal. `path` is a link to it, as udev makes them; it can be pulled and put in again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plug_in()

    def plug_in(self) -> None:
        self.device, self.cable = os.openpty()  # the cable: keeps the terminal alive while nobody has it open
        tty.setraw(self.cable)
        self.path.symlink_to(os.ttyname(self.cable))

    def unplug(self) -> None:
        self.path.unlink(missing_ok=True)
        for end in (self.device, self.cable):
            with contextlib.suppress(OSError):
                os.close(end)

    def say(self, data: bytes) -> None:
        os.write(self.device, data)

    def hear(self, least: int = 1, seconds: float = 2.0) -> bytes:
        """What has come, at least so many bytes."""
        got = b""
        while len(got) < least:
            assert select.select([self.device], [], [], seconds)[0], f"nothing came but {got!r}"
            got += os.read(self.device, 65536)
        return got


@pytest.fixture
def plug(tmp_path) -> Iterator[Plug]:
    made = Plug(tmp_path / "port")
    yield made
    made.unplug()


@pytest.fixture
def driver(plug) -> Iterator:
    made: list[SerialPort] = []

    def one(opened: bool = True, **options) -> SerialPort:
        made.append(SerialPort("gauge", {"port": str(plug.path), **options}))
        if opened:
            made[-1].open()
        return made[-1]

    yield one
    for each in made:
        each.close()
        each.close()


def read(d: SerialPort, seconds: float = 2.0) -> list[float]:
    """The next values."""
    values, stamps = np.full(len(d.inputs), -99.0), np.zeros(len(d.inputs), np.int64)
    before = time.monotonic_ns()
    wait_for(lambda: d.read(values, stamps), "a frame", seconds)
    assert all(before <= s <= time.monotonic_ns() for s in stamps)
    return values.tolist()


def read_once(d: SerialPort) -> bool:
    return d.read(np.zeros(len(d.inputs)), np.zeros(len(d.inputs), np.int64))


# -- frames in --------------------------------------------------------------------------------------------------------


def test_frames_come_in_with_units(driver, plug):
    d = driver(receive=FRAME)
    assert [(s.name, s.unit) for s in d.inputs] == [("force", "N"), ("n", "")]
    plug.say(framed(-12.5, 7))
    assert read(d) == [-12.5, 7.0]
    plug.say(b"noise" + framed(1, 8)[:4])
    assert not read_once(d)
    plug.say(framed(1, 8)[4:] + framed(2, 9))
    assert read(d) == [2.0, 9.0]
    assert (d.counts.frames, d.counts.garbage, d.counts.bad_checksum) == (3, 5, 0)


def test_all_bytes_come_through_as_they_are(driver, plug):
    """A terminal translates, echoes and stops at some bytes unless it is told not to."""
    fields = [{"name": f"b{k}", "type": "uint8"} for k in range(256)]
    frame = {"format": "binary", "start": "S", "fields": fields}
    d = driver(receive=frame, send=frame)
    plug.say(b"S" + bytes(range(256)))
    assert read(d) == list(range(256))
    d.write(np.arange(256.0))
    assert plug.hear(257) == b"S" + bytes(range(256))
    assert not select.select([plug.device], [], [], 0.05)[0]  # no echo of what the device said


def test_a_wrong_checksum_is_an_error_and_no_value(driver, plug):
    d = driver(receive=FRAME)
    values, stamps = np.array([7.0, 8.0]), np.zeros(2, np.int64)
    plug.say(framed(1, 2)[:-1] + b"\x00")
    with pytest.raises(ValueError, match="wrong checksum: noise on the line, or another checksum or baud"):
        wait_for(lambda: d.read(values, stamps), "a complaint")
    assert values.tolist() == [7.0, 8.0]
    assert d.counts.bad_checksum == 1
    plug.say(framed(3, 4))
    assert read(d) == [3.0, 4.0]


def test_a_wrong_baud_is_suspected_when_nothing_fits(driver, plug):
    """What a mismatch of rates delivers is noise."""
    d = driver(receive=FRAME, baud=9600)
    plug.say(random.Random(1).randbytes(2000))
    with pytest.raises(
        ValueError, match=r"1024 bytes and no frame in them: is baud = 9600 that of the device, and \[dri"
    ):
        wait_for(lambda: read_once(d), "a complaint")


def test_frames_for_others_are_no_reason_to_suspect(driver, plug):
    """A receiver says much between two of the sentences that are wanted."""
    d = driver(receive={**LINE, "checksum": {"kind": "xor", "mark": "*"}})
    for _ in range(60):
        plug.say(b":1,2,3,4,5,6,7,8,9,10*%02X\n" % reduce(xor, b":1,2,3,4,5,6,7,8,9,10"))
        assert not read_once(d)
    assert (d.counts.other, d.counts.garbage) == (60, 0)


def test_the_port_is_set_as_asked(driver, plug):
    d = driver(receive=FRAME, baud=57600, bits="7E2", flow="rts/cts")
    flags = termios.tcgetattr(plug.cable)
    assert flags[5] == termios.B57600
    assert flags[2] & termios.CSTOPB
    assert flags[2] & termios.CRTSCTS
    assert not flags[2] & termios.HUPCL  # DTR stays when the node dies: no reset before the safe values
    d.close()
    driver(receive=FRAME, baud=250_000)  # no rate of the table: a custom one


def test_a_read_without_bytes_returns_soon(driver):
    d = driver(receive=FRAME)
    began = time.monotonic()
    assert read_once(d) == 0
    assert 0.02 < time.monotonic() - began < 0.1 + 1.0


# -- asking -----------------------------------------------------------------------------------------------------------


def answering(plug: Plug, replies: list[bytes], asked: list[bytes]) -> threading.Thread:
    """A device that says one reply to each request."""

    def serve() -> None:
        for reply in replies:
            asked.append(plug.hear())
            plug.say(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_values_are_asked_for(driver, plug):
    asked: list[bytes] = []
    line = {"format": "csv", "fields": ["x"], "end": "\r"}
    d = driver(receive=line, poll={"request": "?\r", "period_ms": 20, "timeout_ms": 5000})
    plug.say(b"old news\r")
    device = answering(plug, [b"1.5\r", b"2.5\r", b"3.5\r"], asked)
    began = time.monotonic()
    assert [read(d)[0] for _ in range(3)] == [1.5, 2.5, 3.5]
    device.join()
    assert time.monotonic() - began >= 0.04
    assert asked == [b"?\r"] * 3
    assert (d.counts.frames, d.counts.garbage) == (3, 9)


def test_an_answer_that_does_not_come(driver, plug):
    line = {"format": "csv", "fields": ["x"]}
    d = driver(receive=line, poll={"request": [0x3F], "timeout_ms": 120, "period_ms": 10})
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"no answer within 120 ms to the request b'\?'"):
        wait_for(lambda: read_once(d), "a complaint")
    assert 0.12 <= time.monotonic() - began < 1.0
    plug.say(b"4.5\n")  # too late: it may answer another question
    assert plug.hear() == b"?"
    device = answering(plug, [b"5.5\n"], [])
    assert read(d) == [5.5]
    device.join()


def test_outputs_do_not_go_into_an_answer(driver, plug):
    frame = {"format": "csv", "fields": ["y"]}
    d = driver(receive={"format": "csv", "fields": ["x"]}, send=frame, poll={"request": "?", "timeout_ms": 5000})
    assert not read_once(d)  # asked, the answer is to come
    assert plug.hear() == b"?"
    writer = threading.Thread(target=d.write, args=(np.array([1.0]),))
    writer.start()
    assert not select.select([plug.device], [], [], 0.02)[0]
    plug.say(b"3\n")
    assert read(d) == [3.0]
    assert plug.hear(2) == b"1\n"
    writer.join()


# -- frames out -------------------------------------------------------------------------------------------------------


def test_outputs_go_out_packed(driver, plug):
    d = driver(send=FRAME)
    for _ in range(2):
        d.write(np.array([-12.5, 7.0]))
        assert plug.hear(12) == framed(-12.5, 7)


def test_on_change_only_and_again_after_a_while(driver, plug):
    d = driver(send={**LINE, "on": "change", "repeat_ms": 700})
    for x in (1.0, 1.0, 1.0, 2.0, 2.0, 1.0):
        d.write(np.array([x]))
    assert plug.hear(9) == b":1\n:2\n:1\n"
    time.sleep(0.75)
    d.write(np.array([1.0]))
    assert plug.hear(3) == b":1\n"
    d.close()
    d.open()
    d.write(np.array([1.0]))  # it may be another device
    assert plug.hear(3) == b":1\n"


def test_a_device_that_takes_nothing_is_told_of(driver, plug):
    d = driver(send={"format": "binary", "fields": [{"name": "x"}, {"skip": 1000}]})
    with pytest.raises(ValueError, match="does not take its bytes: too much for baud = 115200, or flow control"):
        wait_for(lambda: d.write(np.zeros(1)), "a full buffer", 60.0)
    began = time.monotonic()
    with pytest.raises(ValueError, match="does not take its bytes"):
        d.write(np.zeros(1))
    assert time.monotonic() - began < 1.0


# -- losing and finding it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["read", "write"])
def test_unplugged_is_noticed_at_once(driver, plug, verb):
    d = driver(receive=LINE, send=LINE)
    timer = threading.Timer(0.05, plug.unplug)
    timer.start()
    act = {"read": lambda: read_once(d), "write": lambda: d.write(np.zeros(1))}[verb]
    with pytest.raises(DriverError, match=r"lost .*port \(.*\): unplugged, or switched off\?"):
        wait_for(act, "the loss")
    timer.join()


def test_closing_while_the_other_thread_reads(driver, plug):
    """The number of a closed descriptor is soon somebody else's: it must not be read from."""
    d = driver(receive=LINE)
    said: list[object] = []
    reader = threading.Thread(target=lambda: said.append(read_once(d)))
    reader.start()
    time.sleep(0.01)
    d.close()
    ends = os.pipe()
    os.write(ends[1], b":1\n" * 10)
    reader.join()
    assert said == [False]
    assert os.read(ends[0], 100) == b":1\n" * 10
    for end in ends:
        os.close(end)


class Bench:
    """A driver in its runner."""

    def __init__(self, name: str, driver: SerialPort) -> None:
        self.inbox = Mailbox.create(f"{name}.in", channels=len(driver.inputs))
        self.health = np.zeros(HEALTH_WORDS, np.int64)
        self.runner = Runner(
            driver,
            inbox=self.inbox,
            outbox=None,
            used=np.zeros(0, np.int64),
            safe=np.array([s.safe for s in driver.outputs]),
            health=self.health,
            live=lambda: False,
            period=0.001,
        )
        self.runner.start()

    def is_(self, state: Health) -> bool:
        return int(self.health[H.STATE]) == state

    def close(self) -> None:
        assert self.runner.stop(time.monotonic() + 5.0)
        self.inbox.close()


def test_frames_and_refusals_of_one_read_are_all_counted(driver, plug, name):
    """A burst that comes at once: five good, two bad, the last one good."""
    bad = framed(7, 7)[:-1] + bytes([framed(7, 7)[-1] ^ 1])
    bench = Bench(name, driver(opened=False, receive=FRAME))
    try:
        wait_for(lambda: bench.is_(Health.UP) or plug.say(framed(1, 1)), "the first value")
        time.sleep(0.2)
        frames, errors = int(bench.health[H.FRAMES]), int(bench.health[H.ERRORS])
        plug.say(framed(1, 1) * 2 + bad + framed(2, 2) * 2 + bad + framed(3, 3))
        wait_for(lambda: bench.health[H.FRAMES] >= frames + 5, "all frames")
        assert (bench.health[H.FRAMES] - frames, bench.health[H.ERRORS] - errors) == (5, 2)
        assert bench.is_(Health.DEGRADED)
        assert "wrong checksum" in bench.runner.trouble
        plug.say(framed(4, 4))
        wait_for(lambda: bench.is_(Health.UP), "a clean frame")
    finally:
        bench.close()


def test_a_device_that_falls_silent_is_degraded(driver, plug, name):
    bench = Bench(name, driver(opened=False, receive=FRAME, silent_ms=60))
    try:
        wait_for(lambda: bench.is_(Health.UP) or plug.say(framed(1, 1)), "the first value")
        wait_for(lambda: bench.is_(Health.DEGRADED), "the silence to be noticed")
        assert bench.runner.trouble.startswith("nothing came for 60 ms")
        wait_for(lambda: bench.is_(Health.UP) or plug.say(framed(1, 1)), "it to speak again")
    finally:
        bench.close()


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("away", [0.0, 1.7])
def test_unplugged_and_plugged_in_again(driver, plug, name, outputs, away):
    """It is noticed, and values flow again; how soon is for the test of times."""
    replug(driver, plug, name, outputs, away, notices=5.0, returns=5.0)


@pytest.mark.timing
@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("away", [0.0, 1.7])
def test_a_loss_is_noticed_within_a_tenth_of_a_second_and_values_are_back_within_one(driver, plug, name, outputs, away):
    replug(driver, plug, name, outputs, away, notices=0.1, returns=1.0)


def replug(driver, plug, name, outputs: bool, away: float, notices: float, returns: float) -> None:
    """Pull the plug and put it in again after `away` seconds; the bounds are in seconds."""
    d = driver(opened=False, receive=FRAME, **({"send": LINE} if outputs else {}))
    bench = Bench(name, d)
    try:
        wait_for(lambda: bench.is_(Health.UP) or plug.say(framed(1, 1)), "the first value")
        for n in (2, 3) if not away else (2,):
            pulled = time.monotonic()
            plug.unplug()
            wait_for(lambda: bench.is_(Health.DOWN), "the loss to be noticed", 5.0)
            noticed = time.monotonic() - pulled
            time.sleep(away)
            plug.plug_in()
            put_in, before = time.monotonic(), bench.inbox.take()[0]
            while bench.inbox.take()[0] == before:
                plug.say(framed(0, n))
                time.sleep(0.01)
                assert time.monotonic() - put_in < 5.0
            back = time.monotonic() - put_in
            assert noticed < notices
            assert back < returns
            assert bench.inbox.take()[1].tolist() == [0.0, float(n)]
        assert bench.health[H.RECONNECTS] == n - 1
    finally:
        bench.close()


def adapter(device: str, vid: int | None, pid: int, number: str | None) -> SimpleNamespace:
    return SimpleNamespace(device=device, vid=vid, pid=pid, serial_number=number)


@pytest.mark.parametrize("usb", ["0403:6001:A1", "A1", "0403:6010", "0403:6001:B:2"])
def test_found_by_what_usb_says(plug, monkeypatch, usb):
    here = str(plug.path)
    fitting = {"0403:6010": adapter(here, 0x0403, 0x6010, None), "0403:6001:B:2": adapter(here, 0x0403, 0x6001, "B:2")}
    ports = [
        adapter("/dev/ttyS0", None, 0, None),
        adapter("/dev/ttyUSB7", 0x0403, 0x6001, "A2"),
        fitting.get(usb, adapter(here, 0x0403, 0x6001, "A1")),
    ]
    monkeypatch.setattr(serial.tools.list_ports, "comports", lambda: ports)
    d = SerialPort("gauge", {"usb": usb, "receive": FRAME})
    d.open()
    plug.say(framed(1, 2))
    assert read(d) == [1.0, 2.0]
    d.close()


def test_usb_that_is_not_there_or_not_the_only_one(monkeypatch):
    two = [adapter("/dev/ttyUSB0", 0x0403, 0x6001, "A1"), adapter("/dev/ttyUSB1", 0x0403, 0x6001, None)]
    monkeypatch.setattr(serial.tools.list_ports, "comports", lambda: two)
    with pytest.raises(
        DriverError, match=r"fits several ports: 0403:6001:A1 \(/dev/ttyUSB0\), .* Give the serial numb"
    ):
        SerialPort("gauge", {"usb": "0403:6001", "receive": FRAME}).open()
    with pytest.raises(
        DriverError, match=r"no USB serial port fits usb = 1a86:7523: is it plugged in\? There are: 0403"
    ):
        SerialPort("gauge", {"usb": "1A86:7523", "receive": FRAME}).open()
    monkeypatch.setattr(serial.tools.list_ports, "comports", list)
    with pytest.raises(DriverError, match="There are: none"):
        SerialPort("gauge", {"usb": "1A86:7523", "receive": FRAME}).open()


# -- what is said when it cannot be had -------------------------------------------------------------------------------


def test_a_port_that_is_not_there(tmp_path):
    d = SerialPort("gauge", {"port": str(tmp_path / "ttyUSB9"), "receive": FRAME})
    with pytest.raises(DriverError, match=r"there is no port .*ttyUSB9: is it plugged in\? `hilnode devices` lists"):
        d.open()
    d.close()


def test_a_port_in_use(driver, plug):
    driver(receive=FRAME)
    second = SerialPort("other", {"port": str(plug.path), "receive": FRAME})
    with pytest.raises(DriverError, match=r"is in use by another program: `fuser -v .*port` shows which"):
        second.open()


def test_a_port_that_another_program_locked(plug):
    """With TIOCEXCL, as terminal programs do; root may open it all the same."""
    fcntl.ioctl(plug.cable, termios.TIOCEXCL)
    d = SerialPort("gauge", {"port": str(plug.path), "receive": FRAME})
    with as_nobody(plug), pytest.raises(DriverError, match="is in use by another program"):
        d.open()


@contextlib.contextmanager
def as_nobody(plug: Plug, mode: int = 0o666) -> Iterator[None]:
    """Root may open anything, so be somebody else for a while."""
    os.chmod(os.ttyname(plug.cable), mode)
    mine = os.geteuid()
    folders = [f for f in plug.path.parents if f.stat().st_uid == mine and f != Path("/")]
    modes = [f.stat().st_mode for f in folders]
    if mine == 0:
        for folder in folders:
            folder.chmod(0o755)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)
        for folder, old in zip(folders, modes, strict=True):
            folder.chmod(old)


def test_a_port_without_permission(plug):
    d = SerialPort("gauge", {"port": str(plug.path), "receive": FRAME})
    with as_nobody(plug, 0), pytest.raises(DriverError, match=r"no permission .*sudo usermod -aG \w+ \$USER, then log"):
        d.open()


@pytest.mark.parametrize("path", ["/dev/null", "/proc/version"])
def test_something_else_than_a_port(path):
    with pytest.raises(DriverError, match=f"{path} is no serial port"):
        SerialPort("gauge", {"port": path, "receive": FRAME}).open()


def test_a_rate_that_the_port_cannot_do(driver, monkeypatch):
    def refuse(self, baudrate):
        raise ValueError(
            f"Failed to set custom baud rate ({baudrate}): [Errno 22] Invalid argument"
        )  # pyserial's words

    monkeypatch.setattr(serial.Serial, "_set_special_baudrate", refuse)
    with pytest.raises(DriverError, match="cannot do baud = 12345: take a rate that device and adapter both have"):
        driver(receive=FRAME, baud=12_345)


def test_pyserial_is_missing(driver, monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(DriverError, match=r'pyserial is missing .*: pip install "hilnode\[serial\]"'):
        driver(receive=FRAME)


def test_a_closed_driver_says_so(driver):
    d = driver(opened=False, receive=LINE, send=LINE)
    for act in (lambda: read_once(d), lambda: d.write(np.zeros(1))):
        with pytest.raises(DriverError, match="not open"):
            act()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"receive": LINE}, 'give either port = "/dev/ttyUSB0" or usb'),
        ({"port": "/dev/x", "usb": "a", "receive": LINE}, "give either port"),
        ({"port": "/dev/x"}, r"give \[drivers.gauge.receive\], \[drivers.gauge.send\] or both"),
        ({"port": 3, "receive": LINE}, "drivers.gauge.port = 3: must be text"),
        ({"port": "/dev/x", "receive": LINE, "baud": "fast"}, "baud = 'fast': must be a whole number from 50"),
        ({"port": "/dev/x", "receive": LINE, "baud": 0}, "baud = 0"),
        ({"port": "/dev/x", "receive": LINE, "bits": "8N3"}, "bits = '8N3': must be one of 5N1"),
        ({"port": "/dev/x", "receive": LINE, "flow": "yes"}, "flow = 'yes': must be one of none, rts/cts, xon/xoff"),
        ({"port": "/dev/x", "receive": LINE, "dtr": 1}, "dtr = 1: must be true or false"),
        ({"port": "/dev/x", "receive": LINE, "bauds": 1}, "drivers.gauge.bauds is no option .*'baud'"),
        ({"port": "/dev/x", "send": LINE, "poll": {"request": "?"}}, r"poll: there is no \[drivers.gauge.receive\]"),
        ({"port": "/dev/x", "receive": LINE, "poll": {}}, "poll.request = None: must be what the device answers to"),
        ({"port": "/dev/x", "receive": LINE, "poll": {"request": "?", "period_ms": 0}}, "poll.period_ms = 0"),
        ({"port": "/dev/x", "send": {**LINE, "on": "demand"}}, "send.on = 'demand': must be one of period, change"),
        ({"port": "/dev/x", "send": {**LINE, "repeat_ms": 5}}, "repeat_ms = 5: goes with on"),
        ({"port": "/dev/x", "receive": {**LINE, "on": "change"}}, "drivers.gauge.receive.on is no option"),
        ({"usb": "04x3:6001", "receive": LINE}, "usb = '04x3:6001': must be .vid:pid"),
        ({"usb": "", "receive": LINE}, "usb = '': must be"),
    ],
)
def test_options_that_make_no_sense(options, says):
    with pytest.raises(OptionError, match=says):
        SerialPort("gauge", options)


# -- with others ------------------------------------------------------------------------------------------------------


def test_the_lines_that_devices_prints_are_taken(tmp_path):
    usb = tmp_path / "sys/devices/usb1/1-1"
    for number, says in {"ttyUSB0": {}, "ttyACM0": {"serial": "75833"}}.items():
        entry = usb.with_name(number) / "1-1:1.0" / number / "tty" / number
        entry.mkdir(parents=True)
        for key, text in {"idVendor": "2341", "idProduct": "0043", **says}.items():
            (usb.with_name(number) / key).write_text(text)
        (entry / "device").symlink_to(f"../../../{number}")
        (tmp_path / "sys/class/tty").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/class/tty" / number).symlink_to(entry)
    found = [d for d in list_devices(tmp_path) if d.kind == "serial"]
    assert len(found) == 2
    for device in found:
        ((name, table),) = tomllib.loads(device.config)["drivers"].items()
        made = registry.create(table.pop("kind"), name, table)
        assert [s.name for s in made.inputs] == ["x"]
    assert 'usb = "2341:0043:75833"' in found[0].config


def test_a_line_through_socat(tmp_path, name):
    """Two terminals that another program joins."""
    ends = tmp_path / "near", tmp_path / "far"
    with contextlib.ExitStack() as stack:
        try:
            joiner = subprocess.Popen(["socat", *(f"pty,raw,echo=0,link={e}" for e in ends)])
        except FileNotFoundError:
            pytest.skip("socat is not installed")
        stack.callback(joiner.wait)
        stack.callback(joiner.kill)
        wait_for(lambda: all(e.exists() for e in ends), "socat")
        near, far = (SerialPort(e.name, {"port": str(e), "receive": FRAME, "send": FRAME}) for e in ends)
        for d in (near, far):
            d.open()
            stack.callback(d.close)
        near.write(np.array([1.5, 99.0]))
        assert read(far) == [1.5, 99.0]
        far.write(np.array([-1.5, 100.0]))
        assert read(near) == [-1.5, 100.0]


def test_the_watchdog_writes_while_the_node_has_the_port(driver, plug):
    node = driver(receive=LINE, send=LINE)
    watchdog = driver(opened=False, receive=LINE, send={**LINE, "on": "change"})
    watchdog.prepare_safe()
    for _ in range(2):
        watchdog.write_safe(np.array([-1.0]))
        assert plug.hear(4) == b":-1\n"
    node.write(np.array([2.0]))
    assert plug.hear(3) == b":2\n"


def test_the_watchdog_finds_a_device_that_was_plugged_in_again(driver, plug):
    watchdog = driver(opened=False, send=LINE)
    watchdog.write_safe(np.zeros(1))
    plug.unplug()
    with pytest.raises(DriverError, match="lost"):
        watchdog.write_safe(np.zeros(1))
    with pytest.raises(DriverError, match="there is no port"):
        watchdog.write_safe(np.zeros(1))
    plug.plug_in()
    watchdog.write_safe(np.zeros(1))
    assert plug.hear(3) == b":0\n"


def test_a_killed_node_leaves_the_device_safe(plug, tmp_path, name):
    text = f"""
plant.kind = "trouble_plant:create"
safety.bumpless_ms = 0
log.timing = false
[drivers.device]
kind = "serial"
port = "{plug.path}"
send = {{ format = "csv", fields = [{{ name = "count", safe = -1.0 }}] }}
[signals.outputs."device.count"]
from = "trouble.count"
"""
    with remote_node(tmp_path, name, text, autostart=True) as node:
        heard = b""

        def last() -> float:
            nonlocal heard
            heard = (heard + plug.hear())[-200:]
            lines = heard.split(b"\n")
            return float(lines[-2]) if len(lines) > 2 else -1.0

        wait_for(lambda: last() > 10, "live values")
        os.kill(node.pid, signal.SIGKILL)
        killed = time.monotonic()
        wait_for(lambda: last() == -1.0, "a safe value", 5.0)
        assert time.monotonic() - killed < 2.0
