"""A configuration is read whole, refused in sentences, and resolved into numbers."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from hilnode.config.config import PLAIN_TABLES, Config, ConfigError, load, overlay, schema
from hilnode.config.wiring import resolve
from hilnode.core import problems as config_errors
from hilnode.core import toml_source
from hilnode.core.problems import keys
from hilnode.core.signals import Signal
from hilnode.core.toml_source import locate

TOP = Path(__file__).resolve().parents[3]

FULL = """\
[node]
name = "bench-2"
rate_hz = 500
pace = "lockstep"
cpu = 3
[plant]
options = { links = 2 }
parameters = { "pendulum.mass" = 2.5 }
[drivers.stick]
kind = "hid"
required = true
port = 5005
axes = ["x", "y"]
[drivers.cell]
kind = "daq"
[drivers.valve]
kind = "vendor.daq:Card"
[signals.inputs."pendulum.shoulder.torque"]
from = "cell.load"
scale = 2.0
offset = 0.5
clamp = [-4, 4]
rate_limit = 100.0
filter_hz = 50.0
stale_ms = 20
stale = "ramp"
ramp_ms = 250
default = 1.0
[signals.outputs."valve.angle"]
from = "pendulum.elbow.angle"
safe = 5.0
[signals.outputs."valve.echo"]
from = "pendulum.shoulder.torque"
[[signals.stimulus]]
signal = "pendulum.elbow.torque"
kind = "sine"
amplitude = 1.0
frequency_hz = 2.0
to_s = 1.5
[[signals.faults]]
signal = "valve.echo"
kind = "delay"
ms = 10
from_s = 2.0
[[signals.faults]]
signal = "pendulum.elbow.angle"
kind = "stuck"
[[safety.alarms]]
signal = "pendulum.elbow.angle"
below = -1.0
for_ms = 5
action = "set"
set = "valve.echo"
value = 3.0
[[safety.alarms]]
name = "elbow"
signal = "pendulum.elbow.angle"
outside = [-2, 2]
"""

PLANT = {
    "plant_inputs": [
        Signal("pendulum.shoulder.torque", "N*m", 0.0, -5.0, 5.0),
        Signal("pendulum.elbow.torque", "N*m", 0.0, -5.0, 5.0),
    ],
    "plant_outputs": [Signal("pendulum.shoulder.angle", "rad"), Signal("pendulum.elbow.angle", "rad")],
    "plant_parameters": [Signal("pendulum.mass", "kg", 1.0, 0.1, 10.0), Signal("pendulum.length", "m", 0.3, 0.0, 1.0)],
    "device_inputs": {"stick": [Signal("x"), Signal("y")], "cell": [Signal("temp", "degC"), Signal("load", "kN*m")]},
    "device_outputs": {"valve": [Signal("angle", "deg", 0.0, -90.0, 90.0), Signal("echo", "", 0.0, -10.0, 10.0, 1.0)]},
}


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def problems(call, *args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        call(*args, **kwargs)
    assert str(caught.value)
    return caught.value.problems


def test_an_empty_file_gives_the_defaults(write):
    config = load(write(""))
    assert config == Config()
    node, safety, log = config.node, config.safety, config.log
    assert (node.name, node.rate_hz, node.pace, node.speed) == ("bench", 1000.0, "real-time", 1.0)
    assert (node.overrun, node.catch_up_limit, node.max_overruns, node.warmup_ms) == ("skip", 10, 1000, 500.0)
    assert (node.priority, node.cpu, node.lock_memory, node.spin_us, node.autostart) == (80, "auto", True, 0.0, True)
    assert (config.plant.kind, config.plant.options, config.plant.parameters) == ("double_pendulum", {}, {})
    assert (safety.watchdog_ms, safety.watchdog, safety.bumpless_ms, safety.stop_deadline_ms) == (50, True, 200, 1000)
    assert config.bridge.model_dump() == {
        "enabled": True, "publish": "tcp://127.0.0.1:9872", "commands": "tcp://127.0.0.1:9873",
        "ecu": "tcp://127.0.0.1:9874", "keys": None, "role": "admin", "metrics": None,
        "state_hz": 100.0, "raw": True,
    }  # fmt: skip
    assert (log.directory, log.timing, log.ring_seconds) == ("runs", True, 10)
    assert (log.blackbox_seconds, log.blackbox_first) == (2, 8)


def test_a_driver_keeps_the_keys_of_its_kind(write):
    stick = load(write(FULL)).drivers["stick"]
    assert (stick.kind, stick.required, stick.period_ms) == ("hid", True, 1.0)
    assert stick.options == {"port": 5005, "axes": ["x", "y"]}


def test_nothing_can_be_changed_afterwards(write):
    with pytest.raises(ValidationError):
        load(write("")).node.rate_hz = 1.0


def test_a_dump_is_a_document_again(write):
    config = load(write(FULL))
    assert Config.model_validate(config.model_dump(by_alias=True, exclude_none=True)) == config


@pytest.mark.parametrize(("rate", "period"), [(1000, 1_000_000), (3000, 333_333), (20_000, 50_000), (0.5, 2 * 10**9)])
def test_the_period_is_whole_nanoseconds(write, rate, period):
    got = load(write(f"[node]\nrate_hz = {rate}")).node.period_ns
    assert got == period
    assert isinstance(got, int)


def test_a_problem_reads_like_this(write, monkeypatch):
    path = write("#\n" * 10 + "[node]\nrate_hz = -3\n")
    monkeypatch.chdir(path.parent)
    with pytest.raises(ConfigError) as caught:
        load("a.toml")
    assert str(caught.value) == "a.toml:12: node.rate_hz = -3: must be greater than 0. Try rate_hz = 1000."


STIMULUS = '[[signals.stimulus]]\nsignal = "a.b"\n'
ALARM = '[[safety.alarms]]\nsignal = "a.b"\n'
INPUT = '[signals.inputs."a.b"]\n'
REFUSED = [
    ("[node]\nrate_hz = 20001", 2, "node.rate_hz", "at most 20000"),
    ("[node]\nrate_hz = '1'", 2, "node.rate_hz", "must be a number"),
    ("[node]\nrate_hz = true", 2, "node.rate_hz", "must be a number"),
    ("[node]\nrate_hz = nan", 2, "node.rate_hz", "finite"),
    ("[node]\nrate_hz = inf", 2, "node.rate_hz", "finite"),
    ("[node]\nrate_hz = 1" + "0" * 400, 2, "node.rate_hz", "too large"),
    ("[node]\nrate_hz = 1979-05-27 07:32:00", 2, "node.rate_hz", "must be a number"),
    ("[node]\nrate_hz = 1e-5", 2, "node.rate_hz", "slower than one tick"),
    ("[node]\nspin_us = 1000", 2, "node.spin_us", "shorter than the period of 1000 µs"),
    ("[node]\npriority = 1.0", 2, "node.priority", "whole number"),
    ("[node]\npriority = 0x" + "f" * 5000, 2, "node.priority = (a number of 20000 bits)", "at most 99"),
    ("[node]\npriority = 100", 2, "node.priority", "at most 99"),
    ("[node]\nlock_memory = 'yes'", 2, "node.lock_memory", "true or false"),
    ("[node]\npace = 'Free'", 2, "node.pace", '"real-time", "free" or "lockstep".*mean \'free\''),
    ("[node]\npace = {}", 2, "node.pace = { ... }", "must be"),
    ("[node]\nname = 'My bench'", 2, "node.name", "lower-case letters, digits and dashes"),
    (f"[node]\nname = '{'a' * 41}'", 2, "node.name", "at most 40 characters"),
    ("[node]\nname = 3", 2, "node.name", "text in quotes"),
    ("[node]\ncpu = 'all'", 2, "node.cpu", '"auto", "none" or the number'),
    ("[node]\nrate_hertz = 1", 2, "node.rate_hertz", "not a key of .node.*'rate_hz'"),
    ("[node]\nwatchdog_ms = 1", 2, "node.watchdog_ms", r"belongs in \[safety\]"),
    ("[nodes]", 1, "nodes", "not a key.*'node'"),
    ("node = 1", 1, "node", r"must be a table.*\[node\]"),
    ("[plant]\nkind = 'no good'", 2, "plant.kind", "module:attribute"),
    ("[plant]\noptions = 3", 2, "plant.options", "table"),
    ("[plant.options]\na = [1,\n{ b = nan }]", 3, "plant.options.a[1].b = nan", "must be a finite"),
    ("[plant.options]\na = 99999999999999999999", 2, "plant.options.a", "64 bits"),
    ("[plant.options]\na = " + "[" * 20 + "]" * 20, 2, "plant.options.a" + "[0]" * 16, "levels deep"),
    ("[plant.parameters]\nB = 1", 2, "plant.parameters.B", "its name must be lower-case words"),
    ("[drivers.x-1]\nkind = 'udp'", 1, "drivers.x-1", "its name must be lower-case letters, digits and underscores"),
    ("[drivers.x]\nport = 3", 1, "drivers.x.kind", 'is missing.*kind = "udp"'),
    ("[drivers.x]\nkind = 'udp'\ngain = -inf", 3, "drivers.x.gain = -inf", "must be a finite"),
    ("drivers = { x = 1 }", 1, "drivers.x", "must be a table"),
    (INPUT + "from = 'x'", 2, 'signals.inputs."a.b".from', "driver and its channel"),
    (INPUT + "clamp = [1]", 2, 'signals.inputs."a.b".clamp', "two numbers"),
    (INPUT + "clamp = [1, 2, 3]", 2, 'signals.inputs."a.b".clamp', "two numbers"),
    (INPUT + "clamp = [2, 1]", 2, 'signals.inputs."a.b".clamp', "lower one first"),
    (INPUT + "clamp = 'x'", 2, 'signals.inputs."a.b".clamp', "two numbers"),
    (INPUT + "unit = '9**9'", 2, 'signals.inputs."a.b".unit', "not written like a unit"),
    (INPUT + "rate_limit = 0", 2, 'signals.inputs."a.b".rate_limit', "greater than 0"),
    (INPUT + "stale = 'freeze'", 2, 'signals.inputs."a.b".stale', '"hold", "default", "ramp" or "trip"'),
    (INPUT + "source = 'a.b'", 2, 'signals.inputs."a.b".source', "not a key"),
    ("[signals.outputs.'v.a']", 1, 'signals.outputs."v.a".from', "is missing"),
    (STIMULUS, 1, "signals.stimulus[0].kind", 'is missing. Allowed are "constant"'),
    (STIMULUS + "kind = 'sinus'", 3, "signals.stimulus[0].kind", "must be .*mean 'sine'"),
    (STIMULUS + "kind = []", 3, "signals.stimulus[0].kind", 'must be "constant"'),
    (STIMULUS + "kind = 'constant'\nvalue = 'x'", 4, "signals.stimulus[0].value", "must be a number"),
    (
        STIMULUS + "kind = 'constant'\nvalue = 1\nduty = 1",
        5,
        "signals.stimulus[0].duty",
        r"of \[\[signals.stimulus\]\]",
    ),
    (STIMULUS + "kind = 'noise'\nsigma = 1\nto_s = 0", 5, "signals.stimulus[0].to_s", "later than from_s = 0"),
    (STIMULUS + "kind = 'noise'\nsigma = 1\nseed = -1", 5, "signals.stimulus[0].seed", "at least 0"),
    (STIMULUS + "kind = 'csv'\nfile = \"a\\u0000\"", 4, "signals.stimulus[0].file", "control characters"),
    (STIMULUS.replace("[[", "[").replace("]]", "]"), 1, "signals.stimulus", "list.*two brackets"),
    ("[signals]\nfaults = [1]", 2, "signals.faults[0]", "must be a table"),
    (ALARM, 1, "safety.alarms[0]", "exactly one of above, below and outside"),
    (ALARM + "above = 1\nbelow = 0", 1, "safety.alarms[0]", "exactly one"),
    (ALARM + "above = 1\naction = 'set'", 1, "safety.alarms[0]", "needs the keys set"),
    (ALARM + "above = 1\nvalue = 2", 1, "safety.alarms[0]", 'need action = "set"'),
    ("[safety]\nwatchdog_ms = 9", 2, "safety.watchdog_ms", "at least 10"),
    ("[bridge]\npublish = 'localhost'", 2, "bridge.publish", "address such as"),
    ("[bridge]\npublish = 'tcp://a:70000'", 2, "bridge.publish", "port from 1 to 65535"),
    ("[bridge]\npublish = 'tcp://*:9872'", 2, "bridge.publish", "hilnode keys new"),
    ("[bridge]\ncommands = 'tcp://10.0.0.1:9873'", 2, "bridge.commands", "hilnode keys new"),
    ("[bridge]\nmetrics = 'tcp://*:9875'", 2, "bridge.metrics", "on this PC"),
    ("[bridge]\ncommands = 'tcp://127.0.0.1:9872'", 2, "bridge.commands", "bridge.publish too"),
    ("[log]\ndirectory = ''", 2, "log.directory", "must be text"),
    ("[log]\nring_seconds = 1", 2, "log.ring_seconds", "at least blackbox_seconds = 2"),
    ("[log]\nblackbox_seconds = 20", 2, "log.blackbox_seconds", "at most ring_seconds = 10"),
]


@pytest.mark.parametrize(("text", "line", "key", "says"), REFUSED)
def test_refused_with_line_key_and_sentence(write, text, line, key, says):
    (problem,) = problems(load, write(text))
    assert (problem.line, problem.key) == (line, key.split(" = ")[0])
    assert key in str(problem)
    assert re.search(says, str(problem))


def test_a_bad_name_and_a_bad_value_are_two_problems(write):
    name, value = problems(load, write("[plant.parameters]\n'[key]' = 'x'"))
    assert name.key == value.key == 'plant.parameters."[key]"'
    assert name.message.startswith("its name must be lower-case words")
    assert value.message == "must be a number"


def test_all_problems_come_at_once_in_the_order_of_the_file(write):
    text = '[log]\ndirectory = 1\n[bridge]\nraw = 1\n[[safety.alarms]]\nsignal = "A"\nabove = "x"\n[node]\nspeed = 0\n'
    assert [p.line for p in problems(load, write(text))] == [2, 4, 6, 7, 9]


def test_a_flood_of_problems_is_counted(write):
    with pytest.raises(ConfigError) as caught:
        load(write("[node]\n" + "".join(f"k{i} = 1\n" for i in range(250))))
    assert len(caught.value.problems) == 100
    assert str(caught.value).endswith("and 150 more problems.")


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("[node]\nrate_hz = = 3", 2, 11, "no value"),
        ("[node]\npace = free", 2, 8, "Text needs quotes"),
        ("[node]\n\n[node]", 3, 6, "given twice"),
        ("a = 1\na = 2", 2, 6, "given twice"),
        ("[node]\nrate_hz 3", 2, 9, "followed by ="),
        ("[node]\nname = 'x", 2, 10, "not closed"),
        ("a = [1", 1, 7, "not closed"),
        ("a = 1 b = 2", 1, 7, "new line"),
        ("a = '\x01'", 1, 6, "control character"),
    ],
)
def test_a_syntax_error_shows_the_spot(write, text, line, column, says):
    (problem,) = problems(load, write(text))
    assert (problem.line, f"column {column}:" in problem.message) == (line, True), str(problem)
    assert says in str(problem)
    *_, shown, caret = str(problem).split("\n")
    assert shown[4:].replace("\\x01", "\x01") == text.split("\n")[line - 1]
    assert caret.index("^") == 4 + column - 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", "binary file"),
        ("[node]\nname = 'é'".encode("latin-1"), "not UTF-8 text (byte 0xe9)"),
        ("[node]".encode("utf-16"), "binary file"),
        (b"a" * 4_000_001, "larger than 4 MB"),
        (b"x = " + b"[" * 100_000, "nested too deeply"),
        (b"x = " + b"{a=" * 100_000, "nested too deeply"),
        (b"x = " + b"9" * 10_000, "too many digits"),
        (b"a." * 1_000_000 + b"a = 1", "more than 32 parts"),
        (b"['a'" + b" . 'a'" * 100_000 + b"]", "more than 32 parts"),
    ],
)
def test_what_is_no_configuration_gets_one_sentence(write, data, says):
    path = write(data)
    (problem,) = problems(load, path)
    assert says in problem.message
    assert str(path) in str(problem)


def test_what_is_no_file_gets_one_sentence(tmp_path, write):
    write("", "bench.toml")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        tmp_path: "is a folder",
        tmp_path / "benhc.toml": "no such file.*mean 'bench.toml'",
        tmp_path / "no" / "a.toml": "no such file",
        tmp_path / "pipe": "pipe or socket",
        tmp_path / ("x" * 300): "cannot be read",
        "a\0b": "cannot be read",
        tmp_path / "\udcff.toml": "no such file",
    }
    for path, says in cases.items():
        (problem,) = problems(load, path)
        assert re.search(says, str(problem))
        str(problem).encode()


def test_a_file_one_may_not_read_gets_one_sentence(write, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = write("")
    monkeypatch.setattr(toml_source, "open", refuse, raising=False)
    (problem,) = problems(load, path)
    assert problem.message == "cannot be read (permission denied)"


def test_a_byte_order_mark_and_windows_line_ends_are_read(write):
    assert load(write(b"\xef\xbb\xbf[node]\r\nname = 'x'\r\n")).node.name == "x"
    (problem,) = problems(load, write(b"[node]\r\n\r\nnam = 'x'\r\n"))
    assert problem.line == 3


TRICKY = '''\
top = 1 # comment = 2
"quo.ted" = """
[not.a.table]
x = 1
"quotes" inside \\""" and at the end"""""
[a . "b.c" . 'd'] # [e]
lit = \'\'\'
[no] \'\'\'
list = [ 1, # one
  [2, "]"],
  { k = "}", m.n = 3 }, ]
when = 1979-05-27 07:32:00
p.q.r = { s = { t = 1 } }
[[arr]]
x = 1
[[arr.sub]]
y = 2
[arr.sub.deep]
z = 3
[[arr.sub]]
[[arr]]
x = '\\'
[[arr.sub]]
"\\u0061b" = 1
'''


def test_lines_of_a_tricky_text():
    lines = locate(TRICKY)

    def paths(value, loc=()):
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return {loc} | {p for k, v in pairs for p in paths(v, (*loc, k))}

    assert set(lines) == paths(tomllib.loads(TRICKY)) - {()}
    assert lines["top",] == 1
    assert lines["quo.ted",] == 2
    assert lines["a", "b.c", "d"] == 6
    assert lines["a", "b.c", "d", "list", 1, 1] == 10
    assert lines["a", "b.c", "d", "list", 2, "m", "n"] == 11
    assert lines["a", "b.c", "d", "p", "q", "r", "s", "t"] == 13
    assert lines["arr", 0, "sub", 0, "deep", "z"] == 19
    assert lines["arr", 0, "sub", 1] == 20
    assert lines["arr", 1, "x"] == 22
    assert lines["arr", 1, "sub", 0, "ab"] == 24


def test_an_override_is_checked_and_named(write):
    config = load(write("[node]\nname = 'x'\n[signals.inputs.'pendulum.elbow.torque']\nfilter_hz = 100"))
    changed = overlay(config, rate_hz=250, directory=Path("here"), speed=None, **{"bridge.raw": False})
    assert (changed.node.rate_hz, changed.node.name, changed.node.speed) == (250, "x", 1.0)
    assert (changed.log.directory, changed.bridge.raw, config.node.rate_hz) == ("here", False, 1000.0)
    (problem,) = problems(overlay, config, rate_hz=-3)
    assert str(problem) == "override: node.rate_hz = -3: must be greater than 0. Try rate_hz = 1000."
    (problem,) = problems(overlay, config, alarms=[{"signal": "a.b", "above": "x"}])
    assert str(problem).startswith('override: safety.alarms[0].above = "x": must be a number.')
    (problem,) = problems(overlay, config, rate_hs=3)
    assert "rate_hs: is not a key. Did you mean 'rate_hz'" in str(problem)
    (problem,) = problems(resolve, overlay(config, rate_hz=200), **PLANT)
    assert (problem.line, problem.message) == (4, "must be below 100 Hz, half of node.rate_hz")


def test_an_override_needs_only_the_key():
    names = [k for t in PLAIN_TABLES for k in keys(type(getattr(Config(), t)))]
    assert len(names) == len(set(names))


def test_resolved_inputs_and_parameters(write):
    made = resolve(load(write(FULL)), **PLANT)
    shoulder, elbow = made.inputs
    assert shoulder.source == ("cell", 1)
    assert (shoulder.scale, shoulder.offset) == pytest.approx((2000.0, 0.5))
    assert (shoulder.low, shoulder.high, shoulder.rate_limit, shoulder.filter_hz) == (-4, 4, 100, 50)
    assert (shoulder.stale_ns, shoulder.stale, shoulder.ramp_ns, shoulder.default) == (
        20_000_000,
        "ramp",
        250_000_000,
        1,
    )
    assert (elbow.source, elbow.scale, elbow.offset, elbow.low, elbow.high) == (None, 1.0, 0.0, -5.0, 5.0)
    assert (elbow.rate_limit, elbow.filter_hz, elbow.default) == (math.inf, math.inf, 0.0)
    assert made.parameters == (2.5, 0.3)


def test_an_offset_in_the_unit_comes_before_scale_and_offset(write):
    text = "[drivers.cell]\nkind = 'x'\n[signals.inputs.'oil.temp']\nfrom = 'cell.temp'\nscale = 2\noffset = 1"
    hot = {**PLANT, "plant_inputs": [Signal("oil.temp", "K", 300.0)]}
    (oil,) = resolve(load(write(text)), **hot).inputs
    assert oil.scale * 20.0 + oil.offset == pytest.approx(2 * (20.0 + 273.15) + 1)


def test_resolved_commands(write):
    angle, echo = resolve(load(write(FULL)), **PLANT).commands
    assert angle.signal == Signal("valve.angle", "deg", 5.0, -90.0, 90.0, 5.0)
    assert (angle.driver, angle.channel, angle.source, angle.safe) == ("valve", 0, 3, 5.0)
    assert angle.scale == pytest.approx(180 / math.pi)
    assert (echo.channel, echo.source, echo.scale, echo.safe) == (1, 0, 1.0, 1.0)  # a plain number is not converted


def test_resolved_stimuli_faults_and_alarms(write):
    made = resolve(load(write(FULL)), **PLANT)
    names = [s.name for s in made.signals]
    (sine,) = made.stimuli
    assert (sine.signal, sine.spec.kind, sine.from_ns, sine.to_ns) == (1, "sine", 0, 1_500_000_000)
    delay, stuck = made.faults
    assert (names[delay.signal], delay.ticks, delay.from_ns, delay.to_ns) == ("valve.echo", 5, 2 * 10**9, 2**63 - 1)
    assert names[stuck.signal] == "pendulum.elbow.angle"
    assert math.isnan(stuck.amount)
    below, outside = made.alarms
    assert (below.low, below.high, below.for_ns, below.action) == (-1.0, math.inf, 5_000_000, "set")
    assert (names[below.target], below.value, below.name) == ("valve.echo", 3.0, "pendulum.elbow.angle below -1")
    assert (outside.name, outside.low, outside.high, outside.target) == ("elbow", -2.0, 2.0, None)


DRIVERS = "[drivers]\ncell = { kind = 'x' }\nvalve = { kind = 'x' }\n"
SHOULDER = DRIVERS + "[signals.inputs.'pendulum.shoulder.torque']\n"
ANGLE = DRIVERS + "[signals.outputs.'valve.angle']\nfrom = 'pendulum.elbow.angle'\n"
UNRESOLVED = [
    ("[plant.parameters]\n'pendulum.mas' = 1", 2, "no parameter of the plant.*'pendulum.mass'"),
    ("[plant.parameters]\n'pendulum.mass' = 11", 2, r"outside the range \[0.1, 10\]"),
    ("[signals.inputs.'pendulum.elbow.torqu']", 1, "no input of the plant.*'pendulum.elbow.torque'"),
    ("[signals.inputs.'pendulum.elbow.angle']", 1, "That is an output of the plant"),
    (SHOULDER + "from = 'sell.load'", 5, "no driver 'sell'.*'cell'"),
    (SHOULDER + "from = 'cell.lod'", 5, "no input channel 'lod'.*'cell.load'"),
    (SHOULDER + "from = 'valve.angle'", 5, "driver 'valve' has no input channel 'angle'"),
    (SHOULDER + "from = 'cell.temp'", 4, "cannot convert 'degC' into 'N.m'.*write unit = \"N.m\""),
    (SHOULDER + "from = 'cell.load'\nunit = 'V'", 6, "cannot convert 'V' into 'N.m'"),
    (SHOULDER + "clamp = [-6, 0]", 5, r"beyond the range \[-5, 5\]"),
    (SHOULDER + "clamp = [1, 2]", 4, r"the default 0 lies outside the range \[1, 2\]"),
    (SHOULDER + "default = 7", 5, "the default 7 lies outside"),
    (SHOULDER + "filter_hz = 500", 5, "below 500 Hz, half of node.rate_hz"),
    (ANGLE.replace("elbow.angle", "elbow.angel"), 5, "no signal of the plant.*'pendulum.elbow.angle'"),
    (ANGLE.replace("valve.angle", "valve.angel"), 4, "no output channel 'angel'.*'valve.angle'"),
    (ANGLE + "safe = 91", 6, "the safe value 91 lies outside"),
    (ANGLE + "unit = 'N'", 6, "cannot convert 'rad' into 'N'"),
    ("[[signals.stimulus]]\nsignal = 'pendulum.elbow.angle'\nkind = 'constant'\nvalue = 1", 2, "is an output"),
    (
        "[[signals.stimulus]]\nsignal = 'pendulum.elbow.torque'\nkind = 'sine'\namplitude = 1\nfrequency_hz = 500",
        5, "below 500 Hz",
    ),
    ("[[signals.faults]]\nsignal = 'pendulum.elbow.angle'\nkind = 'delay'\nms = 4096", 4, "4096 ticks.*1 to 4095"),
    ("[[signals.faults]]\nsignal = 'pendulum.elbow.angle'\nkind = 'delay'\nms = 0.1", 4, "0 ticks"),
    (DRIVERS + "[[signals.faults]]\nsignal = 'valve.echo'\nkind = 'off'", 5, "write .signals.outputs.\"valve.echo"),
    (ANGLE + "[[safety.alarms]]\nsignal = 'valve.angl'\nabove = 1", 7, "no input, output or command"),
    (
        ANGLE + "[[safety.alarms]]\nsignal = 'valve.angle'\nabove = 1\naction = 'set'\nset = 'valve.angle'\nvalue = 91",
        11, r"outside the range \[-90, 90\]",
    ),
    (ANGLE + "[[safety.alarms]]\nsignal = 'valve.angle'\nabove = 1\n" * 2, 9, "two alarms are called 'valve.angle a"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "says"), UNRESOLVED)
def test_unresolved_with_line_and_sentence(write, text, line, says):
    (problem,) = problems(resolve, load(write(text)), **PLANT)
    assert problem.line == line, str(problem)
    assert re.search(says, str(problem))


def test_a_command_may_not_be_called_like_a_plant_signal(write):
    text = "[drivers.pendulum]\nkind = 'x'\n[signals.outputs.'pendulum.elbow.angle']\nfrom = 'pendulum.elbow.angle'"
    given = {**PLANT, "device_outputs": {"pendulum": [Signal("elbow.angle", "rad")]}}
    (problem,) = problems(resolve, load(write(text)), **given)
    assert "same name" in problem.message


CSV = "[[signals.stimulus]]\nsignal = 'pendulum.elbow.torque'\nkind = 'csv'\nfile = 'in/t.csv'\n"


def test_a_csv_stimulus_is_read_beside_the_configuration(write, tmp_path):
    (tmp_path / "in").mkdir()
    write("\ufeffvalue, other, time\r\n1.5,x,0\r\n\r\n-2,y,1e-3\r\n", "in/t.csv")
    (made,) = resolve(load(write(CSV)), **PLANT).stimuli
    assert (made.times, made.values) == ((0.0, 0.001), (1.5, -2.0))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("time,value\n0,1\n1,x\n", 3, 'value = "x": must be a number'),
        ("time,value\n0,1\n1\n", 3, 'value = "": must be a number'),
        ("time,value\n0,inf\n", 2, "finite"),
        ("time,value\n0,1\n\n0,2\n", 4, "later than 0"),
        ("time,valu\n0,1\n", 1, "no column 'value'.*'valu'"),
        ("", 1, "no column 'time'"),
        ("time,value\n", 2, "too few rows"),
        ("time,value\n0,\xff\n".encode("latin-1"), 2, "not UTF-8"),
        (f"time,value\n0,{'1' * 200_000}\n", 2, "not a CSV file"),
        (None, None, "no such file"),
    ],
)
def test_a_csv_problem_names_file_and_line(write, tmp_path, text, line, says):
    (tmp_path / "in").mkdir()
    if text is not None:
        write(text, "in/t.csv")
    (problem,) = problems(resolve, load(write(CSV)), **PLANT)
    assert problem.where_file == str(tmp_path / "in" / "t.csv")
    assert problem.line == line
    assert re.search(says, str(problem))
    assert str(problem).endswith("a.toml:4.")


def test_a_repeating_csv_needs_two_rows(write, tmp_path):
    (tmp_path / "in").mkdir()
    write("time,value\n0,1\n", "in/t.csv")
    (problem,) = problems(resolve, load(write(CSV + "repeat = true")), **PLANT)
    assert "too few rows" in problem.message


def test_every_pattern_has_its_sentence():
    patterns = {json.loads(p) for p in re.findall(r'(?:"pattern": )?("\^.*\$")', schema())}
    assert len(patterns) >= 6
    assert patterns <= set(config_errors.PATTERNS)


def test_the_schema_file_is_current():
    assert (TOP / "configs" / "hilnode.schema.json").read_text() == schema(), "run: python -m hilnode.config"


def test_the_reference_page_is_current_and_its_example_loads(write):
    spec = importlib.util.spec_from_file_location("config_docs", TOP / "tools" / "config_docs.py")
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    page = (TOP / "docs" / "config.md").read_text()
    assert page == docs.render(), "run: python tools/config_docs.py"
    assert load(write(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])).node.name == "pendulum-bench"
    for definition in json.loads(schema())["$defs"].values():
        for key in definition["properties"]:
            assert f"`{key}`" in page or f"{key}]" in page or f".{key}." in page or key == "kind", key


def test_importing_it_brings_in_no_heavy_library():
    code = "import sys, hilnode.config.wiring; print(*{m.partition('.')[0] for m in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert {"pydantic", "tomllib"} <= loaded
    assert not loaded & {"numba", "numpy", "scipy", "pint", "zmq", "rich", "typer", "plant", "drivers", "bridge"}
