"""hid: finding, reading, losing and finding again, writing, and what is said when it fails.

Errors come from the real hidapi where it can make them without a device; devices that come and go from `hid_bus`.
"""

import os
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import hid_bus
import hid_samples
import numpy as np
import pytest
from support import wait_for

from drivers import registry
from drivers.base import HELD, DriverError, OptionError
from drivers.hid.device import HidDevice
from drivers.runner import Runner
from hilnode.cli.devices import list_devices
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

STICK = {"vendor": 0x046D, "product": 0xC215, "channels": {"x": "x", "fire": "button 1", "rolls": "hat_x"}}


def t16000m(buttons: int = 0, hat: int = 8, x: int = 8192) -> bytes:
    return buttons.to_bytes(2, "little") + bytes([hat]) + x.to_bytes(2, "little") + bytes(59)


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[hid_bus.Bus]:
    bus = hid_bus.install(monkeypatch)
    yield bus
    assert (bus.closed_under_use, bus.overlaps) == (0, 0)


class Reader:
    """A driver that is read by hand."""

    def __init__(self, **options: object) -> None:
        self.driver = HidDevice("stick", {**STICK, **options})
        n = len(self.driver.inputs)
        self.values, self.stamps = np.zeros(n), np.zeros(n, np.int64)
        self.driver.open()

    def __call__(self) -> int:
        return self.driver.read(self.values, self.stamps)


def test_it_is_a_kind_and_comes_as_a_twin() -> None:
    real, twin = registry.create("hid", "stick", STICK), registry.create("hid", "stick", {**STICK, "twin": True})
    assert isinstance(real, HidDevice)
    assert [(s.name, s.low, s.high) for s in twin.inputs] == [("x", -1, 1), ("fire", 0, 1), ("rolls", -1, 1)]


# -- reading ------------------------------------------------------------------------------------------------------


def test_the_newest_report_counts_and_all_are_looked_at(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    read = Reader(press_ms=40)
    device.say(t16000m(), t16000m(buttons=1, hat=2), t16000m(x=0))
    before = time.monotonic_ns()
    assert read()
    assert read.values.tolist() == [-1.0, 1.0, 0.0]  # released again, and yet seen
    assert all(before <= s <= time.monotonic_ns() for s in read.stamps)
    assert (read.driver.counts.reports, read.driver.counts.superseded, read.driver.counts.presses) == (3, 2, 1)
    wait_for(lambda: read() and read.values[1] == 0.0, "the release", 2)
    assert time.monotonic_ns() - before > 40e6
    read.driver.close()


def test_a_silent_device_rests_or_grows_stale(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    for silence, fresh in (("rest", True), ("stale", False)):
        read = Reader(silence=silence)
        assert not read()  # nothing heard yet: nothing to hold
        device.say(t16000m())
        assert read()
        stamped = read.stamps[0]
        assert read() == (HELD if fresh else 0)
        assert bool(read.stamps[0] > stamped) is fresh
        read.driver.close()


def test_a_resting_stick_is_renewed_before_its_values_go_stale(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    for stale_ms in (3, 10, 1000):
        read = Reader()
        read.driver.stale_ns = stale_ms * 1_000_000
        device.say(t16000m())
        assert read() == 1
        gaps = []
        for _ in range(9):
            before = int(read.stamps[0])
            assert read() == HELD
            gaps.append((int(read.stamps[0]) - before) * 1e-6)
        assert sorted(gaps)[4] < stale_ms  # the middle one: the machine may be busy
        read.driver.close()


def test_a_release_comes_through_though_silence_is_stale(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    read = Reader(silence="stale", press_ms=5)
    device.say(t16000m(), t16000m(buttons=1), t16000m())
    assert read()
    stamped = read.stamps.tolist()
    assert read.values[1] == 1.0
    assert read()
    assert read.values[1] == 0.0
    assert read.stamps.tolist() == stamped
    read.driver.close()


def test_asked_for_its_state_it_need_not_be_touched_first(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    device.state[0] = t16000m(x=16383)
    read = Reader(ask=True)
    assert read()
    assert read.values[0] == 1.0
    read.driver.close()
    device.state.clear()  # one that does not answer is waited for as ever
    read = Reader(ask=True)
    assert not read()
    read.driver.close()


def test_a_flood_of_reports_does_not_keep_a_read_for_ever(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M)
    read = Reader()
    device.say(*[t16000m(x=k) for k in range(200)])
    assert read()
    assert read.driver.counts.reports == 64
    assert len(device.reports) == 200 - 64
    while device.reports:
        assert read()
    assert read.driver.counts.reports == 200  # none lost on the way
    read.driver.close()


class Running:
    """A driver with its threads."""

    def __init__(self, driver: HidDevice) -> None:
        self.driver, self.health = driver, np.zeros(HEALTH_WORDS, np.int64)
        self.inbox = Mailbox.create(f"hid-{os.getpid()}-in", channels=len(driver.inputs)) if driver.inputs else None
        self.live = True
        self.out = Mailbox.create(f"hid-{os.getpid()}-out", channels=len(driver.outputs)) if driver.outputs else None
        self.runner = Runner(
            driver, inbox=self.inbox, outbox=self.out, used=np.arange(len(driver.outputs)),
            safe=np.array([s.safe for s in driver.outputs], float), health=self.health,
            live=lambda: self.live, period=0.002,
        )  # fmt: skip

    def __enter__(self) -> "Running":
        self.runner.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.runner.stop(time.monotonic() + 5)
        for box in (self.inbox, self.out):
            if box:
                box.close()

    def see(self, what: str, wanted: list[float]) -> None:
        assert self.inbox is not None
        wait_for(lambda: self.inbox.take()[1].tolist() == wanted, what, 10)  # type: ignore[union-attr]


def test_unplugged_and_plugged_in_under_another_number(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.T16000M, "/dev/hidraw3")
    presses = {"x": "x", "fire": {"usage": "button 1", "as": "count"}}
    with Running(HidDevice("stick", {**STICK, "channels": presses})) as r:
        device.say(t16000m(x=0), t16000m(x=0, buttons=1))
        r.see("the first values", [-1.0, 1.0])
        bus.unplug(device)
        wait_for(lambda: r.health[H.STATE] == Health.DOWN, "the loss", 10)
        assert "lost Extreme 3D at /dev/hidraw3" in r.runner.trouble or "no HID device fits" in r.runner.trouble
        device = bus.plug(hid_samples.T16000M, "/dev/hidraw7")
        wait_for(lambda: r.health[H.RECONNECTS] == 1, "the device again", 10)
        device.say(t16000m(x=16383, buttons=1), t16000m(x=16383), t16000m(x=16383, buttons=1))
        r.see("the values of the new one, and the count going on", [1.0, 2.0])
        assert r.health[H.STATE] == Health.UP
    assert bus.opened == 0


# -- writing ------------------------------------------------------------------------------------------------------

LAMPS = {"vendor": 0x046D, "outputs": {"caps": "led 2", "num": {"usage": "led 1", "safe": 1.0}}}


def test_lamps_are_written_when_they_change(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.KEYBOARD)
    driver = HidDevice("lamps", LAMPS)
    assert [(s.name, s.safe, s.high) for s in driver.outputs] == [("caps", 0.0, 1.0), ("num", 1.0, 1.0)]
    driver.open()
    for values in ([0, 0], [1, 0], [1, 0], [0.4, 1], [7, np.nan]):
        driver.write(np.array(values, float))
    assert device.written == [b"\0\0", b"\0\2", b"\0\1", b"\0\2"]
    driver.close()
    driver.open()
    driver.write(np.array([7, np.nan]))
    assert device.written[-1] == b"\0\2"
    assert len(device.written) == 5  # a device that was away is told again
    driver.close()


def test_motors_by_usage_in_a_numbered_report(bus: hid_bus.Bus) -> None:
    """The magnitudes of an Xbox One S controller: 0 to 100 in bytes 1 to 4 of report 3."""
    device = bus.plug(hid_samples.XBOX_ONE_S)
    outputs = {"left": "0x0f:0x70 3", "right": "0x0f:0x70 4", "on": {"usage": "0x0f:0x97", "report": 3}}
    driver = HidDevice("pad", {"vendor": 0x046D, "outputs": outputs})
    driver.open()
    driver.write(np.array([0.5, 1.0, 1.0]))
    assert device.written == [bytes([3, 1, 0, 0, 50, 100, 0, 0, 0])]
    driver.close()


def test_templates(bus: hid_bus.Bus) -> None:
    """The constant force of Logitech's wheels (Linux, hid-lg4ff.c): 0x80 in the middle is no force."""
    device = bus.plug(hid_samples.G25)
    force = {"name": "force", "low": -1.0, "high": 1.0, "scale": 127.0, "offset": 128.0}
    options = {
        "vendor": 0x046D, "start": [[0, 0xF5, 0, 0, 0, 0, 0, 0]], "refresh_ms": 5.0,
        "templates": [[0, 0x11, 0x08, force, 0x80, 0, 0, 0], [0, 0xF8, 0x12, "lamps", 0, 0, 0, 0]],
    }  # fmt: skip
    driver = HidDevice("wheel", options)
    driver.open()
    driver.write(np.array([0.0, 31 / 255]))
    driver.write(np.array([-5.0, np.inf]))
    assert [w.hex() for w in device.written] == [
        "00f5000000000000",
        "0011088080000000", "00f8121f00000000",
        "0011080080000000", "00f8120000000000",
    ]  # fmt: skip
    time.sleep(0.006)
    driver.write(np.array([-5.0, np.inf]))
    assert len(device.written) == 7
    driver.close()


def test_a_refused_report_is_trouble_and_a_vanished_device_a_loss(bus: hid_bus.Bus, tmp_path: Path) -> None:
    (tmp_path / "hidraw0").touch()
    device = bus.plug(hid_samples.KEYBOARD, str(tmp_path / "hidraw0"))
    device.refuses = True
    driver = HidDevice("lamps", LAMPS)
    driver.open()
    with pytest.raises(ValueError, match="Extreme 3D refuses the report 00 01 of 2 bytes"):
        driver.write(np.array([0.0, 1.0]))
    (tmp_path / "hidraw0").unlink()
    with pytest.raises(DriverError, match="lost Extreme 3D"):
        driver.write(np.array([0.0, 1.0]))
    driver.close()


def test_the_runner_writes_live_then_safe_values(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.KEYBOARD)
    with Running(HidDevice("lamps", LAMPS)) as r:
        assert r.out is not None
        r.out.put(np.array([1.0, 0.0]), np.zeros(2, np.int64))
        wait_for(lambda: b"\0\2" in device.written, "the live value", 10)
    assert device.written[-1] == b"\0\1"


def test_the_watchdog_writes_beside_the_node_and_after_a_replug(bus: hid_bus.Bus) -> None:
    device = bus.plug(hid_samples.KEYBOARD)
    dog = HidDevice("lamps", LAMPS | {"start": [[0, 9]]})
    dog.prepare_safe()
    dog.write_safe(np.array([0.0, 1.0]))
    dog.write_safe(np.array([0.0, 1.0]))
    assert device.written == [b"\0\1", b"\0\1"]  # every time, and nothing else
    bus.unplug(device)
    with pytest.raises(DriverError):
        dog.write_safe(np.array([0.0, 1.0]))
    again = bus.plug(hid_samples.KEYBOARD, "/dev/hidraw9")
    dog.write_safe(np.array([0.0, 1.0]))
    assert again.written == [b"\0\1"]
    HidDevice("stick", STICK).write_safe(np.zeros(0))  # nothing to make safe: nothing opened
    dog.close()


def test_closing_waits_for_the_reader(bus: hid_bus.Bus) -> None:
    """The real library would be read after its memory was given back."""
    bus.plug(hid_samples.T16000M)
    read = Reader()
    ended: list[str] = []

    def look() -> None:
        try:
            while True:
                read()
        except DriverError as error:
            ended.append(str(error))

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(20):
        read.driver.close()
        read.driver.open()
        time.sleep(0.002)
    read.driver.close()
    thread.join(5)
    assert ended == ["not open"]


def test_several_devices_are_opened_one_after_another(bus: hid_bus.Bus) -> None:
    """The library's lists are common to all its devices; the fixture looks whether two threads were in it at once."""
    for k in range(4):
        bus.plug(hid_samples.T16000M, f"/dev/hidraw{k}", serial_number=str(k))

    def work(k: int) -> None:
        for _ in range(15):
            assert opened_path(serial=str(k)) == f"/dev/hidraw{k}"
            done[k] += 1

    done = [0] * 4
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert done == [15] * 4


# -- finding ------------------------------------------------------------------------------------------------------


def opened_path(**address: object) -> str:
    driver = HidDevice("s", {"channels": ["x"], **address})
    driver.open()
    assert driver._opened is not None
    path = driver._opened.handle.path
    driver.close()
    return path


def test_the_address_picks_one(bus: hid_bus.Bus) -> None:
    bus.plug(hid_samples.T16000M, "/dev/hidraw0", serial_number="A")
    bus.plug(hid_samples.T16000M, "/dev/hidraw1", serial_number="B")
    bus.plug(hid_samples.G29, "/dev/hidraw2", product_id=0xC24F, product_string="G29 Driving Force")
    bus.plug(hid_samples.G29, "/dev/hidraw4", product_id=0xC24F, interface_number=1, usage_page=0xFF00)
    assert opened_path(vendor=0x046D, product=0xC215, serial="B") == "/dev/hidraw1"
    assert opened_path(serial="A") == "/dev/hidraw0"
    assert opened_path(name="driving force") == "/dev/hidraw2"
    assert opened_path(path="/dev/hidraw1") == "/dev/hidraw1"
    assert opened_path(vendor=0x046D, product=0xC24F) == "/dev/hidraw2"  # the interface that is a joystick
    assert opened_path(product=0xC24F, vendor=0x046D, interface=1) == "/dev/hidraw4"
    with pytest.raises(DriverError) as caught:
        opened_path(vendor=0x046D, product=0xC215)
    assert str(caught.value) == (
        'vendor = 0x046d, product = 0xc215 fits several devices: 046d:c215 Extreme 3D (/dev/hidraw0, serial "A"), '
        '046d:c215 Extreme 3D (/dev/hidraw1, serial "B"). Give its serial number, interface or path'
    )


def test_a_link_that_udev_makes(bus: hid_bus.Bus, tmp_path: Path) -> None:
    node, link = tmp_path / "hidraw5", tmp_path / "left_stick"
    node.touch()
    link.symlink_to(node)
    bus.plug(hid_samples.T16000M, str(node))
    assert opened_path(path=str(link)) == str(node)


def test_what_hidapi_itself_finds_here() -> None:
    with pytest.raises(DriverError, match=r"no HID device fits vendor = 0xffff, product = 0xfffe: is it plugged in"):
        opened_path(vendor=0xFFFF, product=0xFFFE)
    with pytest.raises(DriverError, match=r"there is no /dev/hidraw9999: is it plugged in\? `hilnode devices`"):
        opened_path(path="/dev/hidraw9999")
    with pytest.raises(DriverError, match=r"cannot open /dev/null .*is it a HID device"):
        opened_path(path="/dev/null")


def test_hidapi_has_what_the_stand_in_has() -> None:
    import hidraw

    theirs, ours = hidraw.device, hid_bus.Bus().device
    for name in vars(ours):
        assert name.startswith("_") or hasattr(theirs, name), name
    device = hidraw.device()
    with pytest.raises(ValueError, match="not open"):
        device.read(64, 1)
    with pytest.raises(ValueError, match="not open"):
        device.write(b"\0")
    with pytest.raises(OSError, match="open failed"):
        device.open_path(b"/dev/null")


def test_no_permission_comes_with_the_rule(bus: hid_bus.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "hidraw0"
    node.touch()
    device = bus.plug(hid_samples.T16000M, str(node))
    monkeypatch.setattr("drivers.hid.find.os.access", lambda *_: False)
    monkeypatch.setattr(bus.device, "open_path", lambda *_: (_ for _ in ()).throw(OSError("open failed")))
    with pytest.raises(DriverError) as caught:
        Reader()
    said = str(caught.value)
    assert "\n" not in said
    assert 'KERNEL=="hidraw*", KERNELS=="*:046D:C215.*", GROUP="input", MODE="660"' in said
    assert device.entry["path"].decode() in said


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hidraw", None)
    monkeypatch.setitem(sys.modules, "hid", None)
    with pytest.raises(DriverError, match=r'library hidapi is missing .*pip install "hilnode\[hid\]"'):
        Reader()
    monkeypatch.setitem(sys.modules, "hid", ModuleType("hid"))
    with pytest.raises(DriverError, match="the module hid here is of another package"):
        Reader()


def test_where_there_is_only_libusb(bus: hid_bus.Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hid", bus)
    monkeypatch.setitem(sys.modules, "hidraw", None)
    bus.plug(hid_samples.T16000M, "1-2:1.0")
    assert opened_path(vendor=0x046D) == "1-2:1.0"


def test_a_device_that_does_not_fit_is_let_go(bus: hid_bus.Bus) -> None:
    bus.plug(b"\x05")
    with pytest.raises(DriverError, match=r"/dev/hidraw0 \(Extreme 3D\): its report descriptor is broken"):
        Reader()
    bus.plugged.clear()
    bus.plug(hid_samples.WINGMAN_FORMULA)
    with pytest.raises(DriverError, match="Extreme 3D: rolls: the device has no hat_x; it has x, y, button_1 to"):
        Reader()
    with pytest.raises(DriverError, match="lamp: the device has no output led_1; it has none"):
        Reader(channels=["x"], outputs={"lamp": "led 1"})
    assert bus.opened == 0


# -- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channels": ["x"]}, "drivers.s: say which device: vendor = 0x046d"),
        ({"vendor": 0x46D}, "drivers.s: name its axes and buttons: channels = {"),
        ({"vendor": 70000, "channels": ["x"]}, "drivers.s.vendor = 70000: must be a whole number from 0 to 65535"),
        ({"vendor": 1, "chanels": ["x"]}, "drivers.s.chanels is no option of this kind: did you mean 'channels'?"),
        ({"vendor": 1, "channels": "x"}, "drivers.s.channels = 'x': must be a list of usages"),
        ({"vendor": 1, "channels": [7]}, "drivers.s.channels: 7: must be such as"),
        ({"vendor": 1, "channels": {"a": "slidr"}}, "drivers.s.channels.a.usage = 'slidr': no usage is called that"),
        ({"vendor": 1, "channels": {"A": "x"}}, "drivers.s.channels: signal name 'A': use lower-case words"),
        ({"vendor": 1, "channels": {"a": {"usage": "x", "as": "key"}}}, "as = 'key': must be one of axis, button"),
        ({"vendor": 1, "channels": {"a": {"usage": "hat_x", "as": "raw"}}}, "leave `as` out"),
        ({"vendor": 1, "channels": {"a": {"usage": "x", "low": 9, "high": 3}}}, "must rise in this order"),
        (
            {"vendor": 1, "channels": {"a": {"usage": "x", "dead": 2}}},
            "drivers.s.channels.a.dead = 2: must be a number",
        ),
        ({"vendor": 1, "channels": {"a": {}}}, "drivers.s.channels.a.usage = None: must be"),
        ({"vendor": 1, "channels": ["x", "x"]}, ""),
        ({"vendor": 1, "outputs": {"l": "led"}}, "drivers.s.outputs.l.usage = 'led': \"led\" needs a number"),
        ({"vendor": 1, "outputs": ["l"]}, "must be a table such as"),
        ({"vendor": 1, "outputs": {"l": {"usage": "led 1", "safe": 3}}}, "drivers.s.outputs.l: signal l: safe value"),
        ({"vendor": 1, "templates": [["a"]]}, "the first byte is the report's id, a number"),
        ({"vendor": 1, "templates": [[0, 256]]}, "drivers.s.templates[0]: 256: must be a list of bytes"),
        ({"vendor": 1, "templates": [[0, "a", "a"]]}, "two signals are called 'a'"),
        ({"vendor": 1, "templates": [[0, {"scale": 2}]]}, "drivers.s.templates[0].name = None"),
        ({"vendor": 1, "channels": ["x"], "start": 3}, "drivers.s.start = 3: must be a list of reports"),
        ({"vendor": 1, "channels": ["x"], "start": [["a"]]}, "drivers.s.start[0]: 'a': must be a list of bytes"),
        ({"vendor": 1, "channels": ["x"], "silence": "no"}, "must be one of rest, stale"),
        ({"vendor": 1, "calibration": "/none.toml"}, "there is no such file; `hilnode calibrate s` writes it"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], said: str) -> None:
    if not said:  # named twice in a list is once: the same channel
        assert len(HidDevice("s", options).inputs) == 1
        return
    with pytest.raises(OptionError) as caught:
        HidDevice("s", options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_and_ranges_by_default() -> None:
    usages = ["x", "slider 2", "brake", "button 3", "hat_y", "0x0c:0x224"]
    inputs = HidDevice("s", {"vendor": 1, "channels": usages}).inputs
    assert [(s.name, s.low) for s in inputs] == [
        ("x", -1), ("slider_2", -1), ("brake", 0), ("button_3", 0), ("hat_y", -1), ("usage_0c_224", -1),
    ]  # fmt: skip


def test_the_stanza_of_hilnode_devices_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the descriptor that Linux shows, the lines to paste name what the device has."""
    monkeypatch.setattr("hilnode.cli.devices._daq", list)
    node = tmp_path / "sys/class/hidraw/hidraw0/device"
    node.mkdir(parents=True)
    (node / "uevent").write_text("HID_ID=0003:0000044F:0000B10A\nHID_NAME=Thrustmaster T.16000M\n")
    (node / "report_descriptor").write_bytes(hid_samples.T16000M)
    (found,) = list_devices(tmp_path)
    ((name, stanza),) = tomllib.loads(found.config)["drivers"].items()
    driver = registry.create(stanza.pop("kind"), name, stanza)
    assert [s.name for s in driver.inputs] == [
        *(f"button_{n}" for n in range(1, 17)), "hat_x", "hat_y", "x", "y", "rz", "slider",
    ]  # fmt: skip
