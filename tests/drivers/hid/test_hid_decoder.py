"""From reports to values: reports as others have documented them, shapes of axes, buttons that must not get lost."""

import math
import random

import hid_samples
import numpy as np
import pytest
from hidtools.hid import ReportDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.hid.channels import Channel, channels_of
from drivers.hid.decoder import Decoder, MissingUsage
from drivers.hid.report import DescriptorError, Kind, parse
from drivers.hid.usages import HAT, Pick, picks_of

MS = 1_000_000


class Bench:
    """A decoder with its values."""

    def __init__(self, data: bytes, channels: object, press_ns: int = 0) -> None:
        self.channels = channels_of("stick", channels, None)
        self.decoder = Decoder(parse(data), self.channels, press_ns)
        self.values, self.stamps = np.zeros(len(self.channels)), np.zeros(len(self.channels), np.int64)
        self.now = 0

    def __call__(self, report: bytes, now: int = 0) -> dict[str, float]:
        self.now = now or self.now + MS
        self.taken = self.decoder.feed(report, self.values, self.stamps, self.now)
        return self.state

    @property
    def state(self) -> dict[str, float]:
        return dict(zip([c.name for c in self.channels], self.values.tolist(), strict=True))


# -- what others have written down of devices ---------------------------------------------------------------------


def test_extreme_3d_pro_report_with_its_published_meaning() -> None:
    """A report captured from the device, with what it means, as github.com/touchgadget/joystick_le3dp publishes it:

    FC F1 87 80 00 99 00 is X 508, Y 508, hat 8, twist 128, slider 153, no buttons. The descriptor below is that
    layout: 10, 10, 4, 8, 8, 8 and 8 bits.
    """
    layout = (
        "0501 0904 a101 1500 26ff03 750a 9502 0930 0931 8102 2507 7504 9501 0939 8142 26ff00 7508 0935 8102"
        "0509 1901 2908 2501 7501 9508 8102 0501 26ff00 7508 9501 0936 8102 0509 1909 290c 2501 7501 9504 8102 8101 c0"
    )
    raw = {c: {"usage": c, "as": "raw"} for c in ("x", "y", "rz", "slider")}
    see = Bench(bytes.fromhex(layout), raw | {"hat_x": "hat_x", "hat_y": "hat_y", "trigger": "button 1"})
    assert see(bytes.fromhex("FC F1 87 80 00 99 00")) == {
        "x": 508, "y": 508, "rz": 128, "slider": 153, "hat_x": 0, "hat_y": 0, "trigger": 0
    }  # fmt: skip


G29_BUTTONS = {
    "cross": 0x10, "square": 0x20, "circle": 0x40, "triangle": 0x80, "r1": 0x100, "l1": 0x200, "r2": 0x400,
    "l2": 0x800, "share": 0x1000, "option": 0x2000, "r3": 0x4000, "l3": 0x8000, "gear_1": 0x10000, "gear_6": 0x200000,
    "reverse": 0x400000, "plus": 0x800000, "minus": 0x1000000, "return": 0x8000000,
}  # fmt: skip


def g29(buttons: int = 0, hat: int = 8, rot: int = 0x8000, gas: int = 0xFF, brake: int = 0xFF, clutch: int = 0xFF):
    """A report as git.necronda.net/lorenz.stechauner/Device-Driver, logitech-G29.md describes it."""
    return (buttons | hat).to_bytes(4, "little") + rot.to_bytes(2, "little") + bytes([gas, brake, clutch, 48, 208, 156])


def test_g29_as_its_protocol_was_written_down() -> None:
    pedal = {"one_sided": True, "invert": True}
    channels = {
        "steering": "x", "gas": {"usage": "z", **pedal}, "brake": {"usage": "rz", **pedal},
        "clutch": {"usage": "y", **pedal}, "hat_x": "hat_x", "hat_y": "hat_y",
    }  # fmt: skip
    numbers = {name: round(math.log2(bit)) - 3 for name, bit in G29_BUTTONS.items()}
    see = Bench(hid_samples.G29, channels | {name: f"button {n}" for name, n in numbers.items()})
    rest = dict.fromkeys(see.state, 0.0)
    assert see(g29()) == pytest.approx(rest, abs=1e-4)
    assert see(g29(rot=0))["steering"] == -1.0
    assert see(g29(rot=0xFFFF))["steering"] == 1.0
    assert see(g29(gas=0, brake=0x80)) == pytest.approx(rest | {"gas": 1.0, "brake": 127 / 255}, abs=1e-4)
    assert see(g29(clutch=0))["clutch"] == 1.0
    for name, bit in G29_BUTTONS.items():
        assert see(g29(bit)) == pytest.approx(rest | {name: 1.0}, abs=1e-4)
    for hat, (x, y) in {0: (0, -1), 2: (1, 0), 4: (0, 1), 6: (-1, 0), 1: (1, -1), 8: (0, 0)}.items():
        state = see(g29(hat=hat))
        assert (state["hat_x"], state["hat_y"]) == (x, y)


def test_xbox_one_s_with_the_button_bitmap_of_xpadneo() -> None:
    names = {"a": 1, "b": 2, "x_": 4, "y_": 5, "tl": 7, "tr": 8, "start": 12, "home": 13, "thumbl": 14, "thumbr": 15}
    bitmap = {
        "a": "0100", "b": "0200", "x_": "0800", "y_": "1000", "tl": "4000", "tr": "8000", "start": "0008",
        "home": "0010", "thumbl": "0020", "thumbr": "0040",
    }  # fmt: skip
    others = {"lx": "x", "ly": "y", "rx": "z", "ry": "rz", "lt": "brake", "rt": "accelerator", "dpad": "hat_x"}
    back = {"back": {"usage": "0x0c:0x224", "as": "button"}, "battery": {"usage": "0x06:0x20", "as": "raw"}}
    see = Bench(hid_samples.XBOX_ONE_S, others | {k: f"button {n}" for k, n in names.items()} | back)
    sticks, tail = bytes.fromhex("01 0000 ffff 0080 ff7f ff03 0000"), "00"
    for name, bits in bitmap.items():
        state = see(sticks + bytes.fromhex(f"03 {bits} {tail}"))
        assert {k: v for k, v in state.items() if k in names} == dict.fromkeys(names, 0.0) | {name: 1.0}
    assert (state["lx"], state["ly"], state["lt"], state["rt"], state["dpad"]) == (-1.0, 1.0, 1.0, 0.0, 1.0)
    assert see(sticks + bytes.fromhex("00 0000 01"))["back"] == 1.0
    assert see.state["dpad"] == 0.0  # 0 is no direction: they go from 1 to 8
    assert see(b"\x04\x57")["battery"] == 0x57
    assert see.state["back"] == 1.0


def test_each_report_stamps_its_own_channels() -> None:
    see = Bench(hid_samples.XBOX_ONE_S, {"lx": "x", "battery": {"usage": "0x06:0x20", "as": "raw"}})
    assert not see.decoder.renew(see.stamps, 5)
    see(b"\x04\x10", 7)
    assert see.stamps.tolist() == [0, 7]
    assert see.decoder.renew(see.stamps, 9)
    assert see.stamps.tolist() == [0, 9]
    see(b"\x01" + bytes(16), 11)
    assert see.stamps.tolist() == [11, 9]
    see(b"\x02\x01", 13)
    see(b"\x01\x01", 13)
    assert see.stamps.tolist() == [11, 9]
    counts = see.decoder.counts
    assert (counts.reports, counts.other, counts.short) == (2, 1, 1)


@pytest.mark.parametrize("name", sorted(hid_samples.ALL))
def test_numbers_as_hid_tools_takes_them_out(name: str) -> None:
    data = hid_samples.ALL[name]
    theirs, ours = ReportDescriptor.from_bytes(list(data)), parse(data)
    rng = random.Random(name)
    for report in theirs.input_reports.values():
        number = report.report_ID if report.numbered else 0
        fields = [f for f in ours.of(Kind.INPUT) if f.report == number and not f.is_array]
        seen: dict[int, int] = {}
        channels = []
        for f in fields:
            nth = seen[f.usages[0]] = seen.get(f.usages[0], 0) + 1
            if f.usages[0] != HAT:
                mode = "sum" if f.is_relative else "raw"
                channels.append(Channel(f"c{len(channels)}", Pick(f.usages[0], nth), number, mode))
        for _ in range(20):
            raw = rng.randbytes(ours.size(Kind.INPUT, number))
            raw = bytes([number]) + raw if report.numbered else raw
            values = np.zeros(len(channels))
            assert Decoder(ours, channels).feed(raw, values, np.zeros(len(channels), np.int64), 1)
            wanted = [
                f.get_values(list(raw))[0]
                for f in report.fields
                if not f.is_const and not f.is_array and f.usage not in (0, HAT)
            ]
            assert values.tolist() == wanted


# -- axes ---------------------------------------------------------------------------------------------------------

AXIS8 = bytes.fromhex("0501 0930 1500 26ff00 7508 9501 8102")
SIGNED = bytes.fromhex("0501 0930 1581 257f 7508 9501 8102")


def test_a_signed_axis() -> None:
    see = Bench(SIGNED, ["x"])
    assert [see(bytes([b]))["x"] for b in (0x81, 0x80, 0, 0x7F)] == [-1.0, -1.0, 0.0, 1.0]


def test_calibrated_stick() -> None:
    see = Bench(AXIS8, {"boom": {"usage": "x", "low": 20, "centre": 120, "high": 240, "dead": 0.1}})
    value = {raw: see(bytes([raw]))["boom"] for raw in (0, 20, 65, 110, 111, 132, 186, 240, 255)}
    assert value == pytest.approx(
        {0: -1, 20: -1, 65: -0.5, 110: 0, 111: 0, 132: 0, 186: 0.5, 240: 1, 255: 1}, abs=1e-12
    )


def test_expo_bends_and_keeps_the_ends() -> None:
    see = Bench(SIGNED, {"x": {"usage": "x", "expo": 0.6, "invert": True}})
    assert see(b"\x7f")["x"] == -1.0
    half = 64 / 127
    assert see(b"\x40")["x"] == pytest.approx(-(0.4 * half + 0.6 * half**3))


def test_pedals_rest_at_zero_at_either_end() -> None:
    see = Bench(AXIS8, {"gas": {"usage": "x", "one_sided": True, "low": 50, "high": 250, "dead": 0.1}})
    assert [see(bytes([b]))["gas"] for b in (0, 50, 70, 160, 250, 255)] == pytest.approx([0, 0, 0, 0.5, 1, 1])
    see = Bench(AXIS8, {"gas": {"usage": "x", "one_sided": True, "invert": True, "low": 50, "high": 250, "dead": 0.1}})
    assert [see(bytes([b]))["gas"] for b in (255, 250, 230, 140, 50, 0)] == pytest.approx([0, 0, 0, 0.5, 1, 1])


def test_an_axis_with_a_null_state_holds() -> None:
    see = Bench(bytes.fromhex("0501 0930 150a 2564 7508 9501 8142"), ["x"])
    assert see(b"\x64")["x"] == 1.0
    assert see(b"\x00")["x"] == 1.0
    assert see(b"\x0a")["x"] == -1.0


def test_physical_values() -> None:
    text = "0501 0930 16a2fe 265e01 3688fa 467805 550e 6511 7510 9501 8102"
    see = Bench(bytes.fromhex(text), {"x": {"usage": "x", "as": "physical", "unit": "cm"}})
    assert see((100).to_bytes(2, "little"))["x"] == pytest.approx(4.0)


def test_steps_of_a_mouse_add_up() -> None:
    see = Bench(hid_samples.MOUSE, {"x": {"usage": "x", "as": "sum"}, "y": {"usage": "y", "as": "sum", "invert": True}})
    for _ in range(3):
        see(b"\x00\x05\xff")
    assert see.state == {"x": 15.0, "y": 3.0}
    with pytest.raises(MissingUsage, match='counts steps, as a mouse does: as = "sum"'):
        Bench(hid_samples.MOUSE, ["x"])


@pytest.mark.parametrize("positions", [4, 8])
def test_hats_go_round_clockwise_from_the_top(positions: int) -> None:
    text = f"0501 0939 1501 25{positions:02x} 7508 9501 8142"
    see = Bench(bytes.fromhex(text), ["hat_x", "hat_y"])
    around = [(0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1)][:: 8 // positions]
    for k, (x, y) in enumerate(around):
        assert see(bytes([k + 1])) == {"hat_x": x, "hat_y": y}
    for let_go in (0, positions + 1, 255):
        assert see(bytes([let_go])) == {"hat_x": 0, "hat_y": 0}


# -- buttons ------------------------------------------------------------------------------------------------------

BUTTONS = bytes.fromhex("0509 1901 2908 1500 2501 7501 9508 8102")


def test_a_press_within_one_batch_is_held_for_its_time() -> None:
    see = Bench(BUTTONS, ["button 1", "button 2"], press_ns=10 * MS)
    see(b"\x00", 100 * MS)
    see(b"\x01", 105 * MS)
    assert see(b"\x00", 105 * MS) == {"button_1": 1, "button_2": 0}
    assert see.decoder.next_release() == 115 * MS
    assert not see.decoder.release(see.values, 114 * MS)
    assert see.state["button_1"] == 1
    assert see.decoder.release(see.values, 115 * MS)
    assert see.state["button_1"] == 0
    assert see.decoder.next_release() is None
    see(b"\x02", 200 * MS)
    assert see(b"\x00", 210 * MS)["button_2"] == 0  # long enough by itself
    assert see.decoder.counts.presses == 2


def test_a_second_press_ends_the_holding_of_the_first() -> None:
    see = Bench(BUTTONS, ["button 1"], press_ns=10 * MS)
    for k, byte in enumerate(b"\x00\x01\x00\x01"):
        see(bytes([byte]), (100 + k) * MS)
    assert not see.decoder.release(see.values, 150 * MS)
    assert see.state == {"button_1": 1}
    assert see.decoder.counts.presses == 2


def test_inverted_buttons_are_held_too() -> None:
    see = Bench(BUTTONS, {"closed": {"usage": "button 1", "invert": True}}, press_ns=10 * MS)
    assert see(b"\x00", 100 * MS)["closed"] == 1
    see(b"\x01", 101 * MS)
    assert see(b"\x00", 102 * MS)["closed"] == 0
    see.decoder.release(see.values, 111 * MS)
    assert see.state["closed"] == 1


def test_presses_are_counted_exactly() -> None:
    see = Bench(BUTTONS, {"n": {"usage": "button 3", "as": "count"}, "m": {"usage": "button 1", "as": "count"}})
    rng, before, presses = random.Random(3), 4, 0
    see(bytes([before]))
    for _ in range(500):
        after = rng.randrange(256)
        presses += bool(after & 4 and not before & 4)
        before = after
        see(bytes([after]))
    assert see.state["n"] == presses > 50


def test_what_is_pressed_at_the_first_report_counts_for_nothing() -> None:
    see = Bench(BUTTONS, {"n": {"usage": "button 1", "as": "count"}, "b": "button 1"})
    assert see(b"\x01") == {"n": 0, "b": 1}
    assert see.decoder.counts.presses == 0


def test_an_analog_trigger_as_a_button() -> None:
    see = Bench(AXIS8, {"fire": {"usage": "x", "as": "button"}})
    assert [see(bytes([b]))["fire"] for b in (0, 127, 128, 255, 0)] == [0, 0, 1, 1, 0]


def test_keys_in_an_array_whatever_their_place() -> None:
    """The boot keyboard: foot switches often pretend to be one."""
    keys = {"a": "0x07:0x04", "b": "0x07:0x05", "shift": "0x07:0xe1", "n": {"usage": "0x07:0x04", "as": "count"}}
    see = Bench(hid_samples.KEYBOARD, keys)
    see(bytes(8))
    assert see(bytes([2, 0, 5, 0, 0, 0, 0, 4])) == {"a": 1, "b": 1, "shift": 1, "n": 1}
    assert see(bytes([0, 0, 4, 0, 0, 0, 0, 0])) == {"a": 1, "b": 0, "shift": 0, "n": 1}
    assert see(bytes(8))["a"] == 0
    with pytest.raises(MissingUsage, match="list of pressed keys"):
        Bench(hid_samples.KEYBOARD, {"a": {"usage": "0x07:0x04", "as": "raw"}})


def test_what_the_device_lacks_is_said_with_what_it_has() -> None:
    with pytest.raises(MissingUsage) as caught:
        Bench(hid_samples.G29, {"boom": "slider"})
    assert str(caught.value) == (
        "boom: the device has no slider; it has hat_x, hat_y, x, z, rz, y, button_1 to button_25"
    )
    with pytest.raises(MissingUsage, match="has no x in report 9"):
        Bench(hid_samples.G29, {"boom": {"usage": "x", "report": 9}})
    with pytest.raises(MissingUsage, match="which must rise"):
        Bench(AXIS8, {"boom": {"usage": "x", "low": 300}})


# -- anything -----------------------------------------------------------------------------------------------------


@st.composite
def devices(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(sorted(hid_samples.ALL.values()))))
    for _ in range(draw(st.integers(0, 6))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@settings(max_examples=120, deadline=None)
@given(devices(), st.lists(st.one_of(st.binary(max_size=80), st.binary(min_size=60, max_size=70)), max_size=12))
def test_whatever_comes_values_stay_in_range_and_counters_add_up(data: bytes, reports: list[bytes]) -> None:
    try:
        descriptor = parse(data)
    except DescriptorError:
        return
    kept = []
    for pick in picks_of(descriptor.of(Kind.INPUT)):
        (channel,) = channels_of("s", {"c": {"usage": pick.name, "dead": 0.05, "expo": 0.3}}, None)
        try:
            Decoder(descriptor, [channel])
        except MissingUsage:
            continue  # a range that is none
        kept.append(channel)
    decoder = Decoder(descriptor, kept, press_ns=5)
    values, stamps = np.zeros(len(kept)), np.zeros(len(kept), np.int64)
    for k, report in enumerate(reports):
        before = stamps.copy()
        if not decoder.feed(report, values, stamps, k + 1):
            assert (stamps == before).all()
        decoder.release(values, k + 1)
        for channel, value in zip(kept, values.tolist(), strict=True):
            assert channel.signal.low <= value <= channel.signal.high
    c = decoder.counts
    assert c.reports + c.other + c.short == len(reports)
