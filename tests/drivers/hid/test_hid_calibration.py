"""Calibration: what is measured of a device that trembles and has play, the file, and the command."""

import os
import pty
import random
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import hid_bus
import hid_samples
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from drivers.base import DriverError, OptionError
from drivers.hid.calibration import Measurement, write_calibration
from drivers.hid.channels import load_calibration
from drivers.hid.device import HidDevice
from drivers.hid.report import parse
from hilnode.cli.calibrate import Session
from hilnode.cli.main import app

ADDRESS = {"vendor": 0x046D, "product": 0xC215}


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[hid_bus.Bus]:
    bus = hid_bus.install(monkeypatch)
    yield bus
    assert (bus.closed_under_use, bus.opened) == (0, 0)


class Human:
    """Moves the axes of a measurement: each rests somewhere, trembles, and goes from one end to the other."""

    def __init__(self, measurement: Measurement, **axes: tuple[float, float, float]) -> None:
        self.m, self.axes, self.rng = measurement, axes, random.Random(1)
        assert list(axes) == list(measurement.axes)

    def rest(self, noise: float, play: float = 0.0) -> None:
        for _ in range(200):
            self.m.see([c + play + self.rng.uniform(-noise, noise) for _, c, _ in self.axes.values()], resting=True)

    def move(self) -> None:
        for share in np.linspace(0, 1, 50):
            self.m.see([low + share * (high - low) for low, _, high in self.axes.values()], resting=False)


def test_a_stick_a_pedal_and_one_that_nobody_moved() -> None:
    m = Measurement(parse(hid_samples.G29), "wheel", {"steer": "x", "gas": "z", "brake": "rz", "horn": "button 1"})
    human = Human(m, steer=(1000, 32000, 60000), gas=(20, 250, 250), brake=(255, 255, 255))
    human.rest(noise=2)
    human.move()
    m.rest_again()
    human.rest(noise=2, play=4)
    assert m.unmoved() == ["brake"]
    result = m.result()
    steer, gas = result["steer"], result["gas"]
    assert steer["usage"] == "x"
    assert steer["centre"] == pytest.approx(32002, abs=1)
    assert (steer["low"], steer["high"]) == pytest.approx((1590, 59410), abs=5)
    assert steer["dead"] == pytest.approx(1.5 * 4 / 27400, abs=1e-3)  # the play between both rests, and the noise
    assert gas["high"] == pytest.approx(252, abs=1)
    assert (gas["one_sided"], gas["invert"], gas["low"]) == (True, True, pytest.approx(22.3, abs=0.2))
    assert result["brake"] == {"usage": "rz"}
    assert result["horn"] == {"usage": "button_1"}


def test_rest_is_zero_and_the_ends_are_full_whatever_the_device(tmp_path: Path) -> None:
    """The promise of a calibration, on an axis of a T.16000M."""
    raws = st.integers(0, 16383)

    @settings(max_examples=60, deadline=None)
    @given(raws, raws, raws, st.integers(0, 40), st.integers(0, 40))
    def promise(a: int, b: int, c: int, noise: int, play: int) -> None:
        low, centre, high = sorted((a, b, c))
        if high - low < 3000 or noise + play > 0.05 * min(high - centre, centre - low):
            return
        m = Measurement(parse(hid_samples.T16000M), "s", {"x": "x"})
        human = Human(m, x=(low, centre, high))
        human.rest(noise)
        human.move()
        m.rest_again()
        human.rest(noise, play)
        file = tmp_path / "c.toml"
        write_calibration(file, "T.16000M", 1, 2, m.result())
        driver = HidDevice("s", {"vendor": 1, "calibration": str(file)})
        value = reader_of(driver)
        rests = [raw for rest in m.axes["x"].rests for raw in rest]
        assert {value(round(raw)) for raw in rests} == {0.0}
        assert abs(value(high)) == 1.0 or driver.inputs[0].low == 0.0
        assert {driver.inputs[0].low, driver.inputs[0].high} >= {value(low), value(high)} - {0.0}

    promise()


def reader_of(driver: HidDevice):
    from drivers.hid.decoder import Decoder

    decoder = Decoder(parse(hid_samples.T16000M), driver._channels)
    values, stamps = np.zeros(1), np.zeros(1, np.int64)

    def value(raw: int) -> float:
        assert decoder.feed(bytes(3) + raw.to_bytes(2, "little") + bytes(59), values, stamps, 1)
        return float(values[0])

    return value


def test_what_the_config_says_of_sides_wins() -> None:
    for told, keys in (
        (False, {"low", "high", "dead", "one_sided"}),
        (True, {"low", "high", "dead", "one_sided", "invert"}),
    ):
        given_channels = {"x": {"usage": "x", "one_sided": told}}
        m = Measurement(parse(hid_samples.T16000M), "s", given_channels)
        human = Human(m, x=(0, 100, 16000))
        human.rest(3)
        human.move()
        entry = m.result()["x"]
        assert entry.keys() - {"usage"} == keys
        assert entry["one_sided"] is told


def move(m: Measurement) -> None:
    """Rest in the middle, go to both ends, rest again."""
    for raws, resting in ((8000, True), (500, False), (15500, False), (8000, True)):
        m.see([raws] * len(m.axes), resting=resting)


def test_curve_and_direction_are_kept_though_nobody_can_measure_them(tmp_path: Path) -> None:
    """From the config, or from the file that is replaced; the config wins."""
    given_channels = {"boom": {"usage": "x", "expo": 0.4, "invert": True}, "slew": "y", "horn": "button 1"}
    earlier = {
        "a": {"usage": "x", "expo": 0.9, "low": 1.0, "dead": 0.25},
        "b": {"usage": "y", "expo": 0.2, "invert": True},
        "c": {"usage": "button 1", "invert": True},
    }
    m = Measurement(parse(hid_samples.T16000M), "s", given_channels, earlier)
    move(m)
    entries = m.result()
    assert (entries["boom"]["expo"], entries["boom"]["invert"]) == (0.4, True)
    assert (entries["slew"]["expo"], entries["slew"]["invert"]) == (0.2, True)
    assert entries["horn"] == {"usage": "button_1", "invert": True}
    assert entries["boom"]["low"] > 500  # measured, not kept
    assert entries["boom"]["dead"] == 0.0
    write_calibration(tmp_path / "c.toml", "", 0, 0, entries)
    calibrated = HidDevice("s", {**ADDRESS, "calibration": str(tmp_path / "c.toml")})
    said = {c.name: (c.expo, c.invert) for c in calibrated._channels}
    assert said == {"boom": (0.4, True), "slew": (0.2, True), "horn": (0.0, True)}


def test_the_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    channels = {"boom.joint": {"usage": "x", "low": 1.5, "high": 9.0, "one_sided": True}, "b": {"usage": "button_1"}}
    write_calibration(tmp_path / "c.toml", 'Stick "7"\n\x1b[31m', 0x46D, 0xC215, channels)
    back = load_calibration("s", str(tmp_path / "c.toml"))
    assert (back.vendor, back.product, back.channels) == (0x46D, 0xC215, channels)
    assert os.listdir(tmp_path) == ["c.toml"]
    driver = HidDevice("s", {"vendor": 1, "calibration": str(tmp_path / "c.toml")})
    assert [(s.name, s.low) for s in driver.inputs] == [("boom.joint", 0.0), ("b", 0.0)]


def test_names_of_the_config_take_the_measured_shape_by_usage(tmp_path: Path) -> None:
    channels = {"x": {"usage": "x", "low": 10.0, "centre": 20.0, "high": 30.0, "dead": 0.5}, "y": {"usage": "y"}}
    write_calibration(tmp_path / "c.toml", "", 1, 2, channels)
    given_channels = {"swing": {"usage": "X", "dead": 0.25}}
    (channel,) = HidDevice(
        "s", {"vendor": 1, "channels": given_channels, "calibration": str(tmp_path / "c.toml")}
    )._channels
    assert (channel.name, channel.low, channel.centre, channel.dead) == ("swing", 10.0, 20.0, 0.25)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("channels = 3", "has no channels"),
        ("[channels]", "has no channels"),
        ("[channels.x", "cannot be read"),
        ("[channels.x]\nusage = 'nonsense'", "no usage is called that"),
        ("[channels.x]\nusage = 'x'\nlow = 3\nhigh = 2", "must rise"),
        ("[channels.x]\nusage = 'x'\n[device]\nvendor = 'a'", "invalid literal"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(OptionError, match=said) as caught:
        HidDevice("s", {"vendor": 1, "calibration": str(tmp_path / "c.toml")})
    assert str(caught.value).startswith(f"drivers.s.calibration = '{tmp_path}/c.toml': ")


def test_the_calibration_of_another_device_is_refused(bus: hid_bus.Bus, tmp_path: Path) -> None:
    bus.plug(hid_samples.T16000M)
    write_calibration(tmp_path / "c.toml", "", 0x044F, 0xB10A, {"x": {"usage": "x"}})
    driver = HidDevice("s", {**ADDRESS, "calibration": str(tmp_path / "c.toml")})
    with pytest.raises(
        DriverError, match="the calibration is of a 044f:b10a, this is a 046d:c215: `hilnode calibrate s`"
    ):
        driver.open()


# -- the command --------------------------------------------------------------------------------------------------


class Player(threading.Thread):
    """Sends the reports of a T.16000M: rests, and from `move` on goes to all ends."""

    def __init__(self, device: hid_bus.Plugged) -> None:
        super().__init__(daemon=True)
        self.device, self.moving, self.ending = device, False, threading.Event()

    def run(self) -> None:
        k = 0
        while not self.ending.wait(0.002):
            k += 1
            share = abs(k % 40 - 20) / 20
            x = round(500 + share * 15000) if self.moving else 8000 + k % 3
            throttle = round(share * 255) if self.moving else 255
            self.device.say(bytes(2) + b"\x08" + x.to_bytes(2, "little") + bytes([0, 32, 128, throttle]) + bytes(55))


CONFIG = '[drivers.stick]\nkind = "hid"\nvendor = 0x046d\nproduct = 0xc215\n'


def calibrate(folder: Path, *more: str):
    (folder / "bench.toml").write_text(CONFIG)
    return CliRunner().invoke(app, ["calibrate", "stick", "--config", str(folder / "bench.toml"), *more])


def test_the_command_finds_everything_and_writes_it(
    bus: hid_bus.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player(bus.plug(hid_samples.T16000M))
    stepping = Session.step

    def step(session: Session, resting: bool, ended, show) -> None:
        player.moving = not resting
        time.sleep(0.03)
        player.device.reports.clear()
        stepping(session, resting, ended, show)

    monkeypatch.setattr(Session, "step", step)
    player.start()
    answer = calibrate(tmp_path, "--seconds", "0.3", "--out", str(tmp_path / "stick.toml"))
    player.ending.set()
    player.join()
    assert answer.exit_code == 0, answer.output
    assert "2 axes of Extreme 3D" in answer.output
    assert "not moved, left as the device describes them: y, rz" in answer.output
    assert f'calibration = "{tmp_path}/stick.toml"' in answer.output.replace("\n", "")
    document = tomllib.loads((tmp_path / "stick.toml").read_text())
    assert document["device"] == {"vendor": 0x046D, "product": 0xC215}
    channels = document["channels"]
    assert len(channels) == 16 + 2 + 4
    assert channels["x"]["centre"] == pytest.approx(8001, abs=1)
    assert channels["x"]["one_sided"] is False
    assert (channels["slider"]["one_sided"], channels["slider"]["invert"]) == (True, True)
    driver = HidDevice("stick", {**ADDRESS, "calibration": str(tmp_path / "stick.toml")})
    assert [s.name for s in driver.inputs] == list(channels)


def test_bars_on_a_terminal_and_enter_between_the_steps(
    bus: hid_bus.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from hilnode.cli import calibrate as command

    player = Player(bus.plug(hid_samples.T16000M))
    player.moving = True
    player.start()
    master, slave = pty.openpty()
    shown = (tmp_path / "shown").open("w+")
    with os.fdopen(slave) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        timers = [threading.Timer(t, os.write, (master, b"\n")) for t in (0.3, 0.6, 0.9)]
        for timer in timers:
            timer.start()
        console = Console(file=shown, force_terminal=True, width=120)
        command.run("stick", {**ADDRESS, "channels": {"boom": "x"}}, tmp_path / "c.toml", console, None)
        for timer in timers:
            timer.join()
    player.ending.set()
    player.join()
    os.close(master)
    shown.seek(0)
    text = shown.read()
    shown.close()
    assert "step 3 of 3: Let go again, then press Enter." in text
    assert "boom" in text
    assert "█" in text
    assert set(tomllib.loads((tmp_path / "c.toml").read_text())["channels"]) == {"boom"}


def test_what_the_command_says_when_it_cannot(bus: hid_bus.Bus, tmp_path: Path) -> None:
    answer = calibrate(tmp_path)
    assert answer.exit_code == 1
    assert "no HID device fits vendor = 0x046d" in answer.output
    device = bus.plug(hid_samples.KEYBOARD)
    assert "has no axis to calibrate" in calibrate(tmp_path).output
    bus.unplug(device)
    bus.plug(hid_samples.T16000M)
    answer = calibrate(tmp_path, "--seconds", "0.1")
    assert answer.exit_code == 1
    assert "no axis of Extreme 3D was moved: nothing written" in answer.output
    answer = CliRunner().invoke(app, ["calibrate", "wheel", "--config", str(tmp_path / "bench.toml")])
    assert answer.exit_code == 2
    assert "wheel is no driver of kind hid" in answer.output
    assert sorted(os.listdir(tmp_path)) == ["bench.toml"]
