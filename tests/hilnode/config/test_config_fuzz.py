"""Whatever a file holds, it gives a configuration or a ConfigError that a person can read."""

import copy
import datetime
import json
import re
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilnode.config.config import Config, ConfigError, load, overlay
from hilnode.config.wiring import SignalMap, resolve
from hilnode.core.signals import Signal
from hilnode.core.toml_source import locate

JARGON = re.compile(
    r"Input should|pydantic|https?://|validat|literal|\bdict\b|\bstr\b|\bint\b|\bfloat\b|NoneType|Traceback|tuple|"
    r"discriminator|Extra inputs|Field required|<class|None\b|\{[a-z_]+\}|\bmodel\b"
)
FULL = """\
[node]
name = "bench-2"
rate_hz = 500
pace = "lockstep"
cpu = 3
lock_memory = false
[plant]
kind = "double_pendulum"
options = { links = 2, deep = { list = [1, 2.5, "x"] } }
parameters = { "arm.mass" = 2.5 }
[drivers.stick]
kind = "hid"
axes = ["x", "y"]
[drivers.valve]
kind = "vendor.daq:Card"
period_ms = 2
[signals.inputs."arm.torque"]
from = "stick.x"
unit = "kN*m"
clamp = [-4, 4]
filter_hz = 50.0
stale = "ramp"
default = 1.0
[signals.outputs."valve.angle"]
from = "arm.angle"
rate_limit = 100.0
safe = 5.0
[[signals.stimulus]]
signal = "arm.force"
kind = "sine"
amplitude = 1.0
frequency_hz = 2.0
to_s = 1.5
[[signals.stimulus]]
signal = "arm.force"
kind = "noise"
sigma = 0.5
seed = 7
[[signals.stimulus]]
signal = "arm.force"
kind = "step"
after = 1
at_s = 2
[[signals.faults]]
signal = "valve.angle"
kind = "delay"
ms = 10
[[signals.faults]]
signal = "arm.angle"
kind = "stuck"
[safety]
watchdog_ms = 20
[[safety.alarms]]
signal = "arm.angle"
below = -1.0
action = "set"
set = "valve.angle"
value = 3.0
[[safety.alarms]]
name = "far"
signal = "arm.angle"
outside = [-2, 2]
[bridge]
publish = "ipc:///tmp/x"
[log]
ring_seconds = 5
"""
BASE = tomllib.loads(FULL)
PLANT = {
    "plant_inputs": [Signal("arm.torque", "N*m", 0.0, -5.0, 5.0), Signal("arm.force", "N", 0.0, -5.0, 5.0)],
    "plant_outputs": [Signal("arm.angle", "rad")],
    "plant_parameters": [Signal("arm.mass", "kg", 1.0, 0.1, 10.0)],
    "device_inputs": {"stick": [Signal("x"), Signal("y", "deg")]},
    "device_outputs": {"valve": [Signal("angle", "deg", 0.0, -90.0, 90.0), Signal("lamp")]},
}

quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "fuzzed.toml"


def check(path, data: bytes) -> Config | None:
    """Load the bytes; the configuration, or None after a readable refusal."""
    path.write_bytes(data)
    try:
        config = load(path)
    except ConfigError as error:
        readable(error, path, data)
        return None
    assert isinstance(config, Config)
    return config


def readable(error: ConfigError, path, data: bytes) -> None:
    text = str(error)
    assert error.problems
    assert str(path) in text
    text.encode()
    rows = data.replace(b"\r\n", b"\n").decode("utf-8", "replace").split("\n")
    for problem in error.problems:
        assert len(problem.message) > 8
        assert problem.line is None or 1 <= problem.line <= len(rows)
        assert not JARGON.search(problem.message + problem.hint.partition("\n")[0]), str(problem)
        assert len(str(problem)) < 1500
        last = re.search(r"(?:^|\.)([a-z_]+)$", problem.key)
        if problem.value and problem.line and last and "\n[" not in problem.value:
            assert last[1] in rows[problem.line - 1], str(problem)


def toml(value) -> str:
    """A value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case dict():
            return "{ " + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return repr(value)


def written(document: dict) -> str:
    """A document as TOML: headings for the tables at the top, everything below them on one line each."""
    lines = [f"{toml(k)} = {toml(v)}" for k, v in document.items() if not isinstance(v, dict)]
    for name, table in document.items():
        if isinstance(table, dict):
            lines += [f"[{toml(name)}]", *(f"{toml(k)} = {toml(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


words = st.one_of(
    st.sampled_from(["", "a", "A", "a.b", "a.b.c", "x y", "auto", "none", "free", "set", "sine", "csv", "drop"]),
    st.sampled_from(["valve.angle", "valve.lamp", "stick.y", "arm.angle", "arm.force", "N*m", "9**9", "deg"]),
    st.sampled_from(["tcp://a:0", "a\0b", "\u202e", "\U0001f980", "é" * 50]),
)
numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2, 10, 1000, 2**31, 2**63, -(2**64), 10**400, 0.5, -0.0, 1e-300, 1e300, 1e400]),
    st.sampled_from([float("nan"), float("-inf"), float("inf")]),
    st.integers(),
    st.floats(),
)
dates = st.sampled_from([datetime.date(2024, 2, 29), datetime.time(1, 2, 3), datetime.datetime(2024, 1, 1, 2, 3, 4)])
plain = st.one_of(words, numbers, st.booleans(), dates, st.text(st.characters(codec="utf-8"), max_size=8))
keys = st.one_of(
    words,
    st.sampled_from(
        ["kind", "signal", "from", "unit", "value", "rate_hz", "sine", "[key]", "options", "clamp", "to_s"]
    ),
    st.sampled_from([k for table in BASE.values() for k in table]),
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


def places(value):
    """Every container within a document."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from places(inner)


@st.composite
def documents(draw):
    """The full configuration after one to four accidents."""
    document = copy.deepcopy(BASE)
    for _ in range(draw(st.integers(1, 4))):
        spot = draw(st.sampled_from(list(places(document))))
        if isinstance(spot, list):
            spot[:] = draw(st.sampled_from([[*spot, draw(values)], spot[1:], spot * 2]))
            continue
        key = draw(st.sampled_from([*spot, None]))
        action = draw(st.sampled_from(["replace", "replace", "delete", "add", "rename", "wrap"]))
        if key is None or action == "add":
            spot[draw(keys)] = draw(values)
        elif action == "replace":
            spot[key] = draw(values)
        elif action == "wrap":
            spot[key] = draw(st.sampled_from([[spot[key]], {key: spot[key]}]))
        else:
            old = spot.pop(key)
            if action == "rename":
                spot[key[:-1] + draw(st.sampled_from(["", "s", "_"]))] = old
    return document


def test_the_writer_of_this_test_writes_what_it_was_given():
    assert tomllib.loads(written(BASE)) == BASE


@settings(quick, max_examples=300)
@given(document=documents())
def test_a_damaged_configuration(path, document):
    data = written(document).encode()
    config = check(path, data)
    if config is None:
        return
    assert Config.model_validate(config.model_dump(by_alias=True, exclude_none=True)) == config
    try:
        assert isinstance(resolve(config, **PLANT), SignalMap)
    except ConfigError as error:
        readable(error, path, data)


@settings(quick, max_examples=100)
@given(data=st.binary(max_size=200))
def test_any_bytes(path, data):
    check(path, data)


@settings(quick, max_examples=150)
@given(
    cuts=st.lists(
        st.tuples(st.integers(0, len(FULL)), st.integers(0, 30), st.text("[]{}=.,#'\"\\\n ax0\0é", max_size=5))
    )
)
def test_a_torn_text(path, cuts):
    text = FULL
    for at, length, put in cuts[:4]:
        text = text[:at] + put + text[at + length :]
    check(path, text.encode())


@settings(quick, max_examples=100)
@given(document=st.dictionaries(keys, values, max_size=5))
def test_every_key_has_its_line(document):
    text = written(document)

    def paths(value, loc=()):
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return {loc} | {p for k, v in pairs for p in paths(v, (*loc, k))}

    lines = locate(text)
    assert set(lines) == paths(tomllib.loads(text)) - {()}
    rows = text.split("\n")
    for loc, line in lines.items():
        assert isinstance(loc[-1], int) or toml(loc[-1]) in rows[line - 1]


@settings(quick, max_examples=50)
@given(changes=st.dictionaries(st.sampled_from(["rate_hz", "cpu", "options", "alarms", "log.timing", "x"]), values))
def test_any_override(changes):
    said = "override"
    try:
        assert isinstance(overlay(Config(), **changes), Config)
    except ConfigError as error:
        said = str(error)
    assert "override" in said
    assert not JARGON.search(said)
