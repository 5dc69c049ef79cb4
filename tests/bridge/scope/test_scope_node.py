"""The scope against a node that runs: it fires at the tick that the node itself names."""

import asyncio
import csv
import time
from collections.abc import Iterator

import numpy as np
import pytest
from screen_text import text_of
from support import free_port
from typer.testing import CliRunner, Result

from bridge import Node, NodeError
from bridge.client.pytest_plugin import running_node
from bridge.scope.app import Scope
from bridge.scope.capture import Capture, Stage
from bridge.scope.source import ScopeError, Source, take
from bridge.scope.trigger import Trigger
from hilnode.cli.main import app as command_line

PENDULUM = """
plant.kind = "double_pendulum"
safety.on_trip = "hold"
node.max_overruns = 0
safety.watchdog_ms = 300
"""
TORQUE, ELBOW = "pendulum.shoulder.torque", "pendulum.elbow.angle"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Node]:
    with running_node(tmp_path_factory.mktemp("scope"), PENDULUM) as client:
        yield client


@pytest.fixture
def node(running: Node) -> Node:
    """It runs, and nothing is forced."""
    running.release()
    state = running.status()["state"]
    if state == "tripped":
        running.clear()
    if state != "running":
        running.arm()
        running.run()
    return running


@pytest.fixture
def source(node: Node) -> Iterator[Source]:
    made = Source(node.endpoint)
    yield made
    made.close()


def ready(source: Source, trigger: str, *, pre: int, rows: int) -> Capture:
    """A scope that waits for its trigger."""
    capture = Capture(source.schema, [ELBOW, TORQUE], rows=rows, pre=pre, trigger=Trigger.parse(trigger))
    until = time.monotonic() + 30
    while capture.stage is not Stage.WAITING:
        source.feed(capture, wait=0.05)
        assert time.monotonic() < until
    return capture


def test_it_fires_at_the_tick_at_which_the_node_applied_the_command(node, source):
    capture = ready(source, f"{TORQUE} rising 0.2", pre=50, rows=100)
    tick = node.set(TORQUE, 0.4)
    take(source, capture, timeout=10)
    shot = capture.shot()
    assert len(shot.recording) == 150
    assert shot.at == 50
    assert shot.recording.tick[50] == tick
    assert np.array_equal(shot.recording.tick, tick + np.arange(-50, 100))
    assert shot.recording.lost == 0
    assert not shot.recording[TORQUE][:50].any()
    assert (shot.recording[TORQUE][50:] == 0.4).all()


def test_what_happened_before_a_trip(node, source):
    capture = ready(source, "state == tripped", pre=20, rows=5)
    tick = node.trip()
    take(source, capture, timeout=10)
    assert capture.shot().recording.tick[20] in (tick, tick + 1)  # the row in which the state is a new one
    assert len(capture.shot().recording) == 25


def test_a_trigger_that_does_not_come(source):
    capture = ready(source, f"{TORQUE} > 40", pre=1, rows=1)
    with pytest.raises(ScopeError, match=r"torque > 40: not within 0\.2 s, it was 0 at last"):
        take(source, capture, timeout=0.2)


def test_a_node_that_is_not_there():
    with pytest.raises(NodeError, match="did not answer to hello"):
        Source(f"tcp://127.0.0.1:{free_port()}", timeout=0.2)


def scope(node: Node, *arguments: str) -> Result:
    """`hilnode scope` in this process, which is quicker."""
    return CliRunner().invoke(command_line, ["scope", *arguments, f"--endpoint={node.endpoint}"])


def test_from_the_command_line(node, tmp_path):
    table, picture = tmp_path / "shot.csv", tmp_path / "shot.png"
    trigger = f"--trigger={ELBOW} > -1e9"
    got = scope(node, ELBOW, TORQUE, trigger, "--pre=0.05", "--for=0.1", f"--csv={table}", f"--png={picture}")
    assert got.exit_code == 0, got.output
    assert f"{ELBOW} > -1e+09 at tick" in got.stderr
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    assert float(rows[50]["since_trigger"]) == 0.0
    assert picture.read_bytes().startswith(b"\x89PNG")
    drawn = scope(node, ELBOW, "--for=0.1")
    assert drawn.exit_code == 0, drawn.output
    assert "100 rows" in drawn.stdout
    assert any(0x2800 < ord(c) < 0x2900 for c in drawn.stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["pendulum.elbo.angle"], 2, "did you mean 'pendulum.elbow.angle'"),
        ([ELBOW, "--trigger=x >> 3"], 2, "write 'SIGNAL > 0.5'"),
        ([ELBOW, "--csv=/no-such-folder/shot.csv"], 2, "there is no folder /no-such-folder"),
        ([ELBOW, "--for=1e9"], 2, "too many for one shot"),
        ([ELBOW, "--key=/no-such-key"], 1, "hilnode keys new"),
    ],
)
def test_mistakes_are_told_before_anything_is_waited_for(node, arguments, code, said):
    got = scope(node, *arguments)
    assert got.exit_code == code
    assert said in " ".join(got.stderr.split())


def test_cursors_zoom_files_and_another_shot_on_the_screen(node, source, tmp_path):
    capture = Capture(source.schema, [ELBOW, TORQUE], rows=200, pre=100, trigger=Trigger.parse(f"{TORQUE} rising 0.2"))

    async def until(app: Scope, *words: str) -> str:
        end = time.monotonic() + 20
        while not all(word in (shown := text_of(app)) for word in words):
            assert time.monotonic() < end, shown
            await asyncio.sleep(0.05)
        return shown

    async def run() -> None:
        app = Scope(source, capture, tmp_path)
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(app, f"waiting for the trigger: {TORQUE} rising 0.2")
            await pilot.press("s")
            await until(app, "there is no shot yet")
            app.clear_notifications()
            tick = await asyncio.to_thread(node.set, TORQUE, 0.5)
            shown = await until(app, f"at tick {tick}", "A 0 s  B 0.199 s  dt 0.199 s")
            assert "A 0.5  B 0.5  B-A 0" in shown
            await pilot.press("comma")
            await until(app, "A -0.001 s  B 0.199 s  dt 0.2 s", "A 0  B 0.5  B-A 0.5")
            await pilot.press("tab", *["left"] * 5)
            await until(app, "A -0.001 s  B 0.179 s")  # 300 rows over 69 columns: 4 rows each
            await pilot.press("tab", "plus")
            assert app.drawn.view.last - app.drawn.view.first == 149
            await pilot.press("s")
            await until(app, f"scope-{tick}.csv and scope-{tick}.png")
            await pilot.press("n")
            await until(app, "waiting for the trigger")

    asyncio.run(run())
    assert len(list(tmp_path.glob("scope-*.csv"))) == 1
