"""Report descriptors: of real devices and made up, against the parser of hid-tools, which the kernel's tests use."""

import struct

import hid_samples
import pytest
from hidtools.hid import ReportDescriptor
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drivers.hid.report import MOST_BITS, MOST_FIELDS, Descriptor, DescriptorError, Field, Kind, parse
from drivers.hid.usages import Pick, find, pick_from, picks_of

THEIRS = {Kind.INPUT: "input_reports", Kind.OUTPUT: "output_reports", Kind.FEATURE: "feature_reports"}


def by_hid_tools(data: bytes) -> list[tuple[object, ...]]:
    """Every field that hid-tools finds and that says what it is."""
    parsed = ReportDescriptor.from_bytes(list(data))
    found = []
    for kind, reports in THEIRS.items():
        for report in getattr(parsed, reports).values():
            for f in report.fields:
                usages = tuple(f.usages or ()) if f.is_array else (f.usage,)
                if not f.is_const and usages and any(usages):
                    start = f.start - 8 * report.numbered
                    number = report.report_ID if report.numbered else 0
                    limits = (f.logical_min, f.logical_max, f.physical_min, f.physical_max)
                    found.append((kind, number, start, f.size, f.count, usages, *limits))
    return sorted(found)


def by_us(data: bytes) -> list[tuple[object, ...]]:
    return sorted(
        (f.kind, f.report, f.bit, f.size, f.count, f.usages, f.low, f.high, f.physical_low, f.physical_high)
        for f in parse(data).fields
    )


@pytest.mark.parametrize("name", sorted(set(hid_samples.ALL)))
def test_real_devices_as_hid_tools_reads_them(name: str) -> None:
    assert by_us(hid_samples.ALL[name]) == by_hid_tools(hid_samples.ALL[name])


def test_t16000m_as_windows_reads_it() -> None:
    """The value caps of Windows' own parser, published beside the descriptor."""
    descriptor = parse(hid_samples.T16000M)
    values = {f.usages[0]: f for f in descriptor.of(Kind.INPUT) if f.usages[0] >> 16 == 1}
    caps = {u: (f.size, f.low, f.high, f.physical_low, f.physical_high, f.unit) for u, f in values.items()}
    assert caps == {
        0x10039: (4, 0, 7, 0, 0x13B, 0x14),
        0x10030: (14, 0, 0x3FFF, 0, 0x3FFF, 0),
        0x10031: (14, 0, 0x3FFF, 0, 0x3FFF, 0),
        0x10036: (8, 0, 0xFF, 0, 0xFF, 0),
        0x10035: (8, 0, 0xFF, 0, 0xFF, 0),
    }
    assert [f.usages[0] for f in descriptor.of(Kind.INPUT) if f.usages[0] >> 16 == 9] == [
        0x90000 + n for n in range(1, 17)
    ]
    assert descriptor.longest(Kind.INPUT) + 1 == 0x41  # InputReportByteLength counts an id that is not there


def test_a_maximum_is_unsigned_where_the_minimum_is_not_negative() -> None:
    fields = parse(hid_samples.FLIGHT_STICK_360).fields
    assert [(f.low, f.high) for f in fields if f.size == 16] == [(0, 65535)] * 4
    (signed,) = parse(bytes.fromhex("0501 0930 1581 25ff 7508 9501 8102")).fields
    assert (signed.low, signed.high) == (-127, -1)


def test_a_maximum_that_comes_before_its_minimum() -> None:
    (f,) = parse(bytes.fromhex("0501 0930 25ff 1581 7508 9501 8102")).fields
    assert (f.low, f.high) == (-127, -1)


def test_push_and_pop_bring_back_the_range() -> None:
    y = find(parse(hid_samples.WINGMAN_FORMULA).fields, pick_from("y"), None)
    assert y is not None
    assert (y.bit, y.size, y.low, y.high) == (16, 8, 0, 255)  # without the pop it would be one bit


def test_a_pop_brings_back_the_report_too() -> None:
    text = "8501 0501 1500 25ff 7508 9501 a4 8502 0930 8102 b4 0931 8102"
    assert [(f.report, f.usages[0]) for f in parse(bytes.fromhex(text)).fields] == [(2, 0x10030), (1, 0x10031)]


def test_usages_take_the_page_of_the_main_item_and_wide_ones_their_own() -> None:
    (late,) = parse(bytes.fromhex("0501 0930 0502 1500 25ff 7508 9501 8102")).fields
    assert late.usages == (0x20030,)
    (wide,) = parse(bytes.fromhex("0501 0b c4000200 1500 25ff 7508 9501 8102")).fields
    assert wide.usages == (0x200C4,)
    wide_range = parse(bytes.fromhex("0501 1b 01000900 2b 03000900 1500 2501 7501 9503 8102")).fields
    assert [f.usages[0] for f in wide_range] == [0x90001, 0x90002, 0x90003]


def test_the_first_of_alternative_usages_counts() -> None:
    fields = parse(bytes.fromhex("0501 a901 0930 0931 a900 0932 1500 25ff 7508 9502 8102")).fields
    assert [f.usages[0] for f in fields] == [0x10030, 0x10032]


@pytest.mark.parametrize(
    ("exponent", "power"), [("550e", 1e-2), ("550f", 1e-1), ("5502", 1e2), ("55fe", 1e-2), ("560eff", 1e-8)]
)
def test_physical_units(exponent: str, power: float) -> None:
    """A range of -350..350 counts that stands for -1400..1400, as 3Dconnexion's devices have it."""
    text = f"0501 0930 16a2fe 265e01 3688fa 467805 {exponent} 6511 7510 9501 8102"
    factor, offset = parse(bytes.fromhex(text)).fields[0].scale
    assert (350 * factor + offset, -350 * factor + offset) == pytest.approx((1400 * power, -1400 * power))


def test_without_a_physical_range_the_number_measures_itself() -> None:
    assert parse(bytes.fromhex("0501 0930 1581 257f 7508 9501 8102")).fields[0].scale == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("05", "ends within the item at byte 0"),
        ("0501 26ff", "ends within the item at byte 2"),
        ("b4", "a pop without a push"),
        ("a4" * 65, "more than 64 pushes"),
        ("8500", "report id 0"),
        ("860001", "report id 256"),
        ("0509 1901 29ff 7520 97ffffff7f 8102", "more than 16384 bytes"),
        ("0509 0901 7500 97ffffff7f 8102", "more than 16384 bytes"),
        ("0509 0901 7501 960110 8102", "more than 4096 fields"),
        ("0509 1900 2affff", "more than 12288 usages"),
    ],
)
def test_broken_descriptors_are_refused(text: str, why: str) -> None:
    with pytest.raises(DescriptorError, match=why):
        parse(bytes.fromhex(text))


def test_long_items_are_stepped_over() -> None:
    assert len(parse(bytes.fromhex("fe0390aabbcc 0501 0930 7508 9501 8102")).fields) == 1


# -- made up ------------------------------------------------------------------------------------------------------


def item(prefix: int, value: int, *, signed: bool) -> bytes:
    for code, form in ((1, "b" if signed else "B"), (2, "h" if signed else "H"), (3, "i" if signed else "I")):
        try:
            return bytes([prefix | code]) + struct.pack(f"<{form}", value)
        except struct.error:
            continue
    raise AssertionError(value)


@st.composite
def descriptors(draw: st.DrawFn) -> bytes:
    """Descriptors as careful engineers write them, so that two parsers must agree."""
    out = bytearray(b"\x05\x01\x09\x04\xa1\x01")
    numbered, depth = draw(st.booleans()), 0
    for _ in range(draw(st.integers(1, 8))):
        if numbered:  # each time: a pop brings the old one back, but not for hid-tools
            out += bytes([0x85, draw(st.integers(1, 4))])
        if draw(st.booleans()):
            out += b"\xa4"
            depth += 1
        out += item(0x04, draw(st.sampled_from([1, 2, 9, 0xFF00])), signed=False)
        low = draw(st.integers(-40000, 100))
        high = draw(st.integers(max(low + 1, 0), 2**30))  # hid-tools takes maxima as unsigned always; Linux does not
        out += item(0x14, low, signed=True) + item(0x24, high, signed=True)
        out += item(0x34, low, signed=True) + item(0x44, high, signed=True)
        count = draw(st.integers(1, 12))
        out += bytes([0x75, draw(st.integers(1, 32)), 0x95, count])
        if draw(st.booleans()):
            first = draw(st.integers(1, 60))
            out += bytes([0x19, first, 0x29, first + draw(st.integers(0, 20))])
        else:
            for _ in range(draw(st.integers(1, count))):
                out += item(0x08, draw(st.integers(1, 0x3FF)), signed=False)
        flags = draw(st.sampled_from([0x00, 0x02, 0x06, 0x42, 0x03]))
        out += bytes([draw(st.sampled_from([0x81, 0x91, 0xB1])), flags])
        if depth and draw(st.booleans()):
            out += b"\xb4"
            depth -= 1
    return bytes(out) + b"\xc0"


@settings(max_examples=150, deadline=None)
@given(descriptors())
def test_made_up_descriptors_as_hid_tools_reads_them(data: bytes) -> None:
    assert by_us(data) == by_hid_tools(data)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(sorted(hid_samples.ALL.values()))))
    for _ in range(draw(st.integers(1, 12))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


def fields_lie_within_their_reports(descriptor: Descriptor) -> None:
    assert len(descriptor.fields) <= MOST_FIELDS
    for f in descriptor.fields:
        assert isinstance(f, Field)
        assert f.bit >= 0
        assert f.bit + f.size * f.count <= descriptor.bits[f.kind, f.report] <= MOST_BITS


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=200), mutated()))
@example(b"\xfe")
@example(b"\xfe\xff")
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        descriptor = parse(data)
    except DescriptorError:
        return
    fields_lie_within_their_reports(descriptor)
    for pick in picks_of(descriptor.of(Kind.INPUT)):
        assert pick_from(pick.name) == pick
        assert find(descriptor.of(Kind.INPUT), pick, None) is not None


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pick"),
    [
        ("x", Pick(0x10030)),
        (" RZ ", Pick(0x10035)),
        ("button 12", Pick(0x9000C)),
        ("button_12", Pick(0x9000C)),
        ("slider 2", Pick(0x10036, 2)),
        ("slider_2", Pick(0x10036, 2)),
        ("hat_x", Pick(0x10039, 1, "x")),
        ("hat y", Pick(0x10039, 1, "y")),
        ("hat_y_2", Pick(0x10039, 2, "y")),
        ("toe brake", Pick(0x200BF)),
        ("led 3", Pick(0x80003)),
        ("0x0c:0x224", Pick(0xC0224)),
        ("0xff00:0x21 3", Pick(0xFF000021, 3)),
    ],
)
def test_names_of_usages(text: str, pick: Pick) -> None:
    assert pick_from(text) == pick
    assert pick_from(pick.name) == pick


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("slidr", "did you mean 'slider'"),
        ("button", 'such as "button 1"'),
        ("x 0", "has the number 1"),
        ("", "must be a usage"),
        ("7", "must be a usage"),
        ("0x12345:0x1", "must be a usage"),
    ],
)
def test_names_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        pick_from(text)


def test_names_of_the_simulation_page_as_the_usage_tables_have_them() -> None:
    """hid-tools carries the usage tables of the USB forum."""
    from hidtools.hut import HUT

    from drivers.hid.usages import NAMES

    for usage, name in NAMES.items():
        official = HUT[usage >> 16][usage & 0xFFFF].name.lower().replace("-", " ").replace("/", " ")
        ours = name.replace("_", " ").replace("dpad", "d pad")
        assert ours.split()[0] in official, (hex(usage), name, official)
