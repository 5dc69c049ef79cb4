"""The command line, as a person or a script meets it: exit codes, messages without tracebacks, documented keys."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import HILNODE, children, cli, config_text, events, free_port, left_in_memory, started, wait_for
from typer.testing import CliRunner

from hilnode.cli.main import app
from hilnode.shared import timinglog
from hilnode.shared.row import Col

COMMANDS = ["run", "check", "jitter", "doctor", "devices", "probe", "drivers", "swap", "headroom", "version"]
PLANT = 'plant.kind = "trouble_plant:create"\n'
QUIET = PLANT + "log.timing = false\n"
AT_ONCE = '[[signals.stimulus]]\nsignal = "trouble.kind"\nkind = "constant"\nvalue = {kind}\n'
runner = CliRunner()


@pytest.fixture
def config(tmp_path, name):
    """Writes a config that starts by itself and gives its path."""

    def write(text: str = PLANT, **more: object) -> Path:
        path = tmp_path / "bench.toml"
        path.write_text(config_text(name, text, **{"autostart": True, "on_trip": "exit", **more}))
        return path

    return write


def clear(text: str) -> None:
    """Whatever went wrong, a person can read it."""
    assert "Traceback" not in text
    assert text.strip()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command):
    done = runner.invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output
    assert len(done.output.splitlines()) > 5


def test_help_names_every_command_and_the_exit_codes():
    said = runner.invoke(app, ["--help"]).output
    assert all(re.search(rf"\b{command}\b", said) for command in COMMANDS)
    assert all(str(code) in said for code in (0, 2, 3, 4, 5))


def test_help_and_version_do_not_load_the_compiler():
    """A start of the command line must stay quick."""
    code = (
        "import sys, hilnode.cli.main as c; c.app(['version'], standalone_mode=False); sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("command", [["drivers"], ["swap", "rig", "twin"]])
def test_commands_for_a_node_that_is_not_there(command, name):
    done = runner.invoke(app, [*command, "--node", name])
    assert done.exit_code == 1
    assert "running" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def three_seconds(tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A run of three seconds and its folder."""
    folder = tmp_path_factory.mktemp("three")
    name = f"t{os.getpid()}-three"
    (folder / "bench.toml").write_text(config_text(name, PLANT, autostart=True))
    done = cli("run", folder / "bench.toml", "--for", 3, "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    assert left_in_memory(name) == []
    return done, folder / "run"


def test_run_says_what_it_did_and_writes_down_what_ran(three_seconds):
    done, folder = three_seconds
    clear(done.stderr)
    assert "3000 ticks" in done.stderr
    assert str(folder) in done.stderr
    about = json.loads((folder / "run.json").read_text())
    assert about["config"]["plant"]["kind"] == "trouble_plant:create"
    assert about["schema"]["header"] == [c.name.lower() for c in Col]
    assert [e["what"] for e in events(folder) if e["event"] == "state"] == [
        "configured -> armed",
        "armed -> running",
        "running -> stopped",
    ]


def test_every_tick_of_three_seconds_is_logged(three_seconds):
    log = timinglog.read(three_seconds[1] / timinglog.FILE_NAME)
    assert log.tick.tolist() == list(range(3000))
    assert (log.missing, log.lost, log.damaged_blocks, log.total, log.closed) == (0, 0, 0, 3000, True)
    assert log.step.tolist() == list(range(1, 3001))
    times = np.stack([log.deadline, log.wake, log.start, log.end, log.done])
    assert (np.diff(times, axis=0) >= 0).all()
    assert (np.diff(log.wake) == log.period[1:]).all()
    assert (np.diff(log.deadline) == 1_000_000 * (1 + log.missed[1:])).all()
    assert len(log.samples) > 20


def test_jitter_gives_the_documented_keys(three_seconds):
    read = runner.invoke(app, ["jitter", str(three_seconds[1]), "--json"])
    assert read.exit_code == 0
    report = json.loads(read.output)
    assert {"ticks", "missing", "overruns", "wake_us", "step_us", "period_error_us"} <= set(report)
    log = timinglog.read(three_seconds[1] / timinglog.FILE_NAME)
    late = (log.wake - log.deadline) / 1e3
    percents = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "p9999": 99.99, "max": 100}
    for key in ("wake_us", "step_us", "period_error_us"):
        assert set(report[key]) == set(percents)
        assert list(report[key].values()) == sorted(report[key].values())
    assert report["wake_us"] == {k: pytest.approx(np.percentile(late, p), abs=0.001) for k, p in percents.items()}
    assert (report["ticks"], report["missing"]) == (3000, 0)


def test_a_folder_that_cannot_be_written_is_one_clear_line(config):
    done = cli("run", config(), "--for", 1, "--out", "/proc/none/run", "-q")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "/proc/none: No such file or directory; --out names another folder"


@pytest.mark.alone  # it has the default name and ports, which others may want
def test_run_without_a_config_needs_no_hardware(tmp_path):
    """The default machine, in a folder where somebody keeps files of their own that are called like our packages."""
    for word in ("drivers", "bridge", "plant", "hilnode"):
        (tmp_path / f"{word}.py").write_text("raise SystemExit('the wrong file')\n")
    script = Path(sys.executable).with_name("hilnode")  # unlike `python -m`, it does not look into the current folder
    command = [script, "run", "--for", "0.2", "-q"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if done.returncode == 5:
        assert re.search(r"process \d+", done.stderr)
        pytest.skip("somebody else's node has the default name or port")
    assert done.returncode == 0, done.stderr
    clear(done.stderr)
    (folder,) = (tmp_path / "runs").iterdir()
    assert {"run.json", "events.jsonl"} <= {p.name for p in folder.iterdir()}
    for log in ("watchdog.log", "recorder.log", "bridge.log"):
        assert (folder / log).read_text() == ""


@pytest.mark.slow
def test_free_pace_runs_ahead_of_the_clock(config, tmp_path):
    done = cli("run", config(), "--for", 60, "--free", "--out", tmp_path / "run", "-q", seconds=30)
    assert done.returncode == 0, done.stderr
    assert "tick 60000: running -> stopped" in done.stderr


def test_exit_2_for_a_bad_config(config, tmp_path):
    done = cli("run", config("node.rate_hz = -5\n"), "--out", tmp_path / "run")
    assert done.returncode == 2
    clear(done.stderr)
    assert "rate_hz" in done.stderr
    assert "-5" in done.stderr
    assert not (tmp_path / "run").exists()


def test_exit_3_after_a_trip(config, tmp_path, name):
    done = cli("run", config(QUIET + AT_ONCE.format(kind="2.0")), "--for", 5, "--out", tmp_path / "run", "-q")
    assert done.returncode == 3, done.stderr
    clear(done.stderr)
    assert "as it was told to" in done.stderr
    assert left_in_memory(name) == []


@pytest.mark.alone  # five seconds are all it has
def test_a_trip_ends_the_run_even_if_nobody_reads_its_messages(config, tmp_path):
    """`hilnode run 2>&1 | head -1`, or a terminal that was closed: every message fails from then on."""
    later = '[[signals.stimulus]]\nsignal = "trouble.kind"\nkind = "step"\nafter = 2.0\nat_s = 0.5\n'
    with started([*HILNODE, "run", str(config(QUIET + later)), "--out", str(tmp_path / "run"), "-q"]) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.stderr.close()
        process.stderr = None  # nothing more to collect from it
        wait_for(lambda: process.poll() is not None, "the run to end", 5.0)
        assert process.returncode == 3


@pytest.mark.slow
def test_exit_3_when_a_required_device_never_comes(config, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        driver = f'[drivers.stick]\nkind = "udp"\nlisten = "127.0.0.1:{port}"\ninputs = ["x"]\nrequired = true\n'
        done = cli("run", config(PLANT + driver), "--for", 60, "--out", tmp_path / "run", "-q")
    assert done.returncode == 3, done.stderr
    clear(done.stderr)
    assert re.search(
        rf"required driver stick is down: cannot listen on 127\.0\.0\.1:{port}: the port is taken", done.stderr
    )


def test_exit_4_after_an_overrun_halt(config, tmp_path):
    text = QUIET + 'node.overrun = "halt"\nnode.warmup_ms = 0\n' + AT_ONCE.format(kind="4.0")
    done = cli("run", config(text), "--for", 5, "--out", tmp_path / "run", "-q")
    assert done.returncode == 4, done.stderr
    clear(done.stderr)
    assert "halt: work ended" in done.stderr


def test_exit_5_for_a_second_node_of_the_same_name_or_port(config, tmp_path, name):
    """Refused with the pid of the first (for the port: of its bridge); the first one goes on."""
    port = free_port()
    text = QUIET + f'bridge.publish = "tcp://127.0.0.1:{port}"\n'
    path = config(text)
    other = tmp_path / "other.toml"
    other.write_text(path.read_text().replace(name, name + "x"))
    with started([*HILNODE, "run", str(path), "--out", str(tmp_path / "run"), "-q"]) as first:
        wait_for(lambda: _listens(port), "the bridge to listen")
        same_name = cli("run", path, "--out", tmp_path / "second", "-q")
        same_port = runner.invoke(app, ["run", str(other), "--out", str(tmp_path / "third"), "-q"])
        bridge = children(first.pid, "bridge.publish.server")
        assert first.poll() is None
    assert (same_name.returncode, same_port.exit_code) == (5, 5), same_name.stderr + same_port.output
    clear(same_name.stderr)
    assert f"process {first.pid}" in same_name.stderr
    said = " ".join(same_port.output.split())
    assert re.search(rf"bridge\.publish = 'tcp://127\.0\.0\.1:{port}' is in use by process {bridge[0]}\b", said)
    assert left_in_memory(name + "x") == []


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_check_a_good_config(config):
    path = config(PLANT + '[drivers.cable]\nkind = "loopback"\n')
    done = runner.invoke(app, ["check", str(path)])
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert "is good: trouble_plant:create at 1000 Hz, 2 inputs, 2 outputs, 0 device commands, 1 drivers" in said
    assert json.loads(runner.invoke(app, ["check", str(path), "--json"]).output)["config"]["node"]["rate_hz"] == 1000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate = 1000\n[node]\n", "rate"),
        ("[node]\nrate_hz = 'fast'\n", "rate_hz"),
        ("[plant]\nkind = 'double_pendulun'\n", "did you mean 'double_pendulum'"),
        ("[plant]\nkind = 'no_such_module:create'\n", "no_such_module"),
        ("[plant]\nkind = 'json:dumps'\n", "json:dumps"),
        ("[plant]\noptions = { angel1 = 1.0 }\n", "did you mean 'angle1'"),
        ("[plant]\noptions = { angle1 = 'up' }\n", "angle1"),
        ("[drivers.a]\nkind = 'upd'\n", "did you mean 'udp'"),
        ("[drivers.a]\nkind = 'udp'\ninputs = ['x']\n", "drivers.a.listen"),
        ("[drivers.a]\nkind = 'udp'\nlisten = '127.0.0.1'\ninputs = ['x']\n", "host:port"),
        ("[drivers.a]\nkind = 'udp'\ninputs = 3\n", "drivers.a.inputs"),
        ("[drivers.a]\nkind = 'udp'\ninput = ['x']\n", "did you mean 'inputs'"),
        ("[drivers.a]\nkind = 'loopback'\nchannels = 0\n", "drivers.a.channels"),
        ("[signals.inputs.'pendulum.shoulder.torqe']\nfrom = 'a.b'\n", "pendulum.shoulder.torque"),
        ("[plant]\nkind = 'math:pi'\n", "math:pi"),
        ("[plant]\nkind = 'builtins:int'\n", "builtins:int"),
        ("[drivers.a]\nkind = 'math:pi'\n", "math:pi"),
        ("[drivers.a]\nkind = 'json:dumps'\n", "json:dumps"),
        ("[drivers.a]\nkind = 'udp'\nlisten = '1.2.3.4:\u00b2'\ninputs = ['x']\n", "host:port"),
        ("[drivers.a]\nkind = 'udp'\ntype = ['int16']\n", "drivers.a.type"),
        ("[drivers.a]\nkind = 'udp'\norder = {}\n", "drivers.a.order"),
    ],
)
def test_check_a_bad_config(tmp_path, text, says):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    done = runner.invoke(app, ["check", str(path)])
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.output.split())
    assert isinstance(done.exception, SystemExit)


def test_check_a_plant_whose_module_fails(tmp_path, monkeypatch):
    (tmp_path / "half_written.py").write_text("def create(dt:\n")
    (tmp_path / "bad.toml").write_text("[plant]\nkind = 'half_written:create'\n")
    monkeypatch.syspath_prepend(tmp_path)
    done = runner.invoke(app, ["check", str(tmp_path / "bad.toml")])
    assert done.exit_code == 2
    assert "half_written" in done.output


@pytest.mark.parametrize("arguments", [["check", "no/such.toml"], ["run", "no/such.toml"], ["check", "."]])
def test_a_file_that_is_not_there(arguments):
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert arguments[1] in " ".join(done.output.split())


@pytest.mark.parametrize(
    "arguments", [["run", "--for", "0"], ["run", "--for", "-1"], ["run", "--for", "x"], ["run", "--nonsense"], ["walk"]]
)
def test_wrong_arguments(arguments):
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)


def test_jitter_without_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["jitter"], ["jitter", "nowhere"], ["jitter", "."]):
        done = runner.invoke(app, arguments)
        assert done.exit_code == 1
        assert "run" in done.output
        assert isinstance(done.exception, SystemExit)


GOOD = """\
[node]
name = "fuzz"
rate_hz = 500
cpu = 0
[plant]
kind = "double_pendulum"
options = { angle1 = 0.5 }
parameters = { "pendulum.mass1" = 2.0 }
[drivers.io]
kind = "udp"
listen = "127.0.0.1:5001"
send = "127.0.0.1:5002"
inputs = ["x", { name = "y", unit = "deg", low = -90.0, high = 90.0 }]
outputs = [{ name = "a", safe = 1.0 }]
type = "int16"
[drivers.cable]
kind = "loopback"
channels = 2
delay_ms = 1.5
[signals.inputs."pendulum.shoulder.torque"]
from = "io.x"
scale = 0.1
stale = "ramp"
[signals.outputs."io.a"]
from = "pendulum.tip.x"
clamp = [-1, 2]
[[signals.stimulus]]
signal = "pendulum.elbow.torque"
kind = "sine"
amplitude = 1.0
frequency_hz = 1.0
[[safety.alarms]]
signal = "pendulum.tip.z"
above = 1.0
action = "trip"
"""
LINES = GOOD.splitlines()
VALUES = [
    "-1",
    "0",
    "1e400",
    "nan",
    '""',
    '"\u00b2"',
    "[]",
    "[[]]",
    "{}",
    "true",
    "1979-05-27",
    '"\\u0000"',
    "9" * 30,
    '"a"',
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The good file with a line lost, doubled, cut, or with another value; or with bytes changed anywhere."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 3))):
        k = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["lose", "double", "cut", "value", "value", "key"])):
            case "lose":
                lines[k] = ""
            case "double":
                lines.insert(k, lines[k])
            case "cut":
                lines[k] = lines[k][: draw(st.integers(0, len(lines[k])))]
            case "value" if " = " in lines[k]:
                lines[k] = lines[k].partition(" = ")[0] + " = " + draw(st.sampled_from(VALUES))
            case _:
                lines[k] = draw(st.sampled_from(["x", "kind", "[node", "\u00e9"])) + lines[k]
    data = "\n".join(lines).encode()
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at:]
    return data


def test_the_file_that_is_damaged_below_is_good(tmp_path):
    (tmp_path / "good.toml").write_text(GOOD)
    assert runner.invoke(app, ["check", str(tmp_path / "good.toml")]).exit_code == 0


def is_a_sentence(path: Path, data: bytes) -> None:
    """`check` takes the file or says what is wrong with it: where, and never by a traceback."""
    path.write_bytes(data)
    done = runner.invoke(app, ["check", str(path)])
    assert done.exit_code in (0, 2), (data, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.exit_code == 0 or re.search(rf"{path.name}|driver|plant", done.output)


FUZZ = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(FUZZ, max_examples=60, derandomize=True)
@given(data=damaged())
def test_check_of_a_damaged_file_is_a_sentence(tmp_path, data):
    is_a_sentence(tmp_path / "fuzz.toml", data)


@pytest.mark.slow
@settings(FUZZ, max_examples=3000)
@given(data=damaged())
def test_check_of_many_damaged_files_is_a_sentence(tmp_path, data):
    is_a_sentence(tmp_path / "fuzz.toml", data)


@pytest.mark.parametrize("spoilt", ["nowhere", "node", "clients"])
def test_keys_that_can_not_be_read_are_told_before_anything_starts(tmp_path, spoilt):
    """A node that starts its bridge again and again, for ever, helps nobody."""
    folder = tmp_path / "keys"
    if spoilt != "nowhere":
        assert runner.invoke(app, ["keys", "new", "anna", "--folder", str(folder)]).exit_code == 0
        (folder / f"{spoilt}.toml").write_text("public = 1\n")
    path = tmp_path / "bench.toml"
    path.write_text(f'plant.kind = "double_pendulum"\nbridge.keys = "{folder}"\n')
    for command in (["check", str(path)], ["run", str(path), "--for", "1", "--out", str(tmp_path / "run")]):
        done = runner.invoke(app, command)
        assert done.exit_code == 2, done.output
        assert "bridge.keys" in done.output
        assert str(folder).replace("-", "") in done.output.replace("\n", "").replace("-", "")
