"""The client against a node that runs: commands take effect at the tick they say, rows come whole."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import children, wait_for

from bridge import Node, NodeError
from bridge.client import aio
from bridge.client.pytest_plugin import running_node
from bridge.protocol.rows import Recording

PENDULUM = """
plant.kind = "double_pendulum"
safety.on_trip = "hold"
node.max_overruns = 0
safety.watchdog_ms = 300
"""
ELBOW, TORQUE = "pendulum.elbow.angle", "pendulum.shoulder.torque"


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[tuple[Node, Path]]:
    """One node for all tests, and the folder with its files."""
    folder = tmp_path_factory.mktemp("client")
    with running_node(folder, PENDULUM) as node:
        node.arm()
        node.run()
        yield node, next(folder.glob("hil-*/run"))


@pytest.fixture
def node(running) -> Node:
    """It runs, and nothing is forced."""
    node = running[0]
    node.release()
    if node.status()["state"] != "running":
        node.arm()
        node.run()
    node.resume()
    return node


def test_what_is_set_is_in_the_rows_from_the_tick_that_was_answered(node):
    async def both() -> tuple[int, Recording]:
        async with aio.Node(node.endpoint) as other:
            recording = asyncio.create_task(other.record([TORQUE], 1.0))
            await asyncio.sleep(0.3)
            tick = await other.set(TORQUE, 0.4)
            return tick, await recording

    tick, record = asyncio.run(both())
    assert record.lost == 0
    assert np.array_equal(np.diff(record.tick), np.ones(len(record) - 1))
    values = record[TORQUE]
    assert not values[record.tick < tick].any()
    assert (values[record.tick >= tick] == 0.4).all()
    assert (record.tick < tick).any()
    assert (record.tick >= tick).any()


def test_waiting_ends_at_the_row_that_fulfils_it(node):
    node.set(TORQUE, 5.0)
    first = node.wait_until(TORQUE, gt=4.9)
    assert node.wait_until(TORQUE, gt=4.9) > first
    with pytest.raises(TimeoutError, match=r"torque > 100: not within 0.2 s, it was 5"):
        node.wait_until(TORQUE, gt=100.0, timeout=0.2)
    with pytest.raises(ValueError, match="gt="):
        node.wait_until(TORQUE)
    with pytest.raises(KeyError, match="elbow"):
        node.wait_until("pendulum.elbo.angle", gt=1.0)


def test_a_recording_has_every_tick_and_is_a_data_frame_if_wished(node):
    record = node.record([ELBOW, TORQUE], 0.5)
    assert len(record) == 501
    assert np.allclose(np.diff(record.t), 1e-3)
    assert list(record) == [ELBOW, TORQUE]
    pandas = pytest.importorskip("pandas")
    frame = record.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[record.t[10], ELBOW] == record[ELBOW][10]
    df = record
    assert df.loc[record.t[10], ELBOW] == record[ELBOW][10]
    assert df.iloc[-1][TORQUE] == record[TORQUE][-1]
    assert df.describe()[ELBOW]["max"] == df[ELBOW].max() == df.max()[ELBOW]
    assert list(df[[TORQUE]].columns) == list(df[[TORQUE]].to_pandas().columns) == [TORQUE]
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = df.no_such_thing


def test_the_plant_stands_while_paused_and_goes_the_steps_it_is_granted(node):
    node.pause()
    before = node.status()["step"]
    assert node.step(7) == before + 7
    wait_for(lambda: node.status()["step"] == before + 7, "the steps")
    node.resume()
    wait_for(lambda: node.status()["step"] > before + 100, "more steps")


def test_a_trip_a_clearing_and_a_new_start(node):
    node.trip()
    wait_for(lambda: node.status()["state"] == "tripped", "the trip")
    with pytest.raises(NodeError, match="not possible now"):
        node.run()
    node.clear()
    node.arm()
    node.run()
    assert node.status()["state"] == "running"


def test_limits_and_names_are_checked(node):
    with pytest.raises(NodeError, match="outside its range"):
        node.set(TORQUE, 1e9)
    with pytest.raises(NodeError, match=r"did you mean 'pendulum\.shoulder\.torque'"):
        node.set("pendulum.shoulder.tork", 1.0)


def test_faults_and_waves_come_and_go(node):
    slot = node.inject(TORQUE, "bias", value=2.0)
    node.wait_until(TORQUE, eq=2.0)
    node.heal(slot)
    node.wait_until(TORQUE, eq=0.0)
    with pytest.raises(NodeError, match="not in use"):
        node.heal(slot)
    slot = node.stimulate(TORQUE, "constant", value=3.0)
    node.wait_until(TORQUE, eq=3.0)
    node.calm(slot)
    node.wait_until(TORQUE, eq=0.0)


def test_a_session_is_loaded_at_once(node):
    other = "pendulum.elbow.torque"
    loaded = node.load_session(forces={TORQUE: 1.5}, faults=[{"signal": other, "kind": "bias", "value": 2.5}])
    node.wait_until(TORQUE, eq=1.5)
    node.wait_until(other, eq=2.5)
    node.heal(*loaded["faults"])


def test_a_session_with_one_mistake_does_nothing(node):
    other, before = "pendulum.elbow.torque", node.status()
    good = {"signal": other, "kind": "bias", "value": 1.0}
    for wrong, why in (
        ({"faults": [good, {"signal": other, "kind": "bia"}]}, r"faults\[1\]"),
        ({"faults": [good, {"kind": "bias"}]}, r"faults\[1\] needs signal"),
        ({"stimuli": [{"signal": ELBOW, "kind": "constant", "value": 1.0}]}, r"stimuli\[0\].*no input"),
        ({"stimuli": [{"signal": TORQUE, "kind": "constant", "value": 1.0}] * 100}, "slots are needed"),
        ({"parameters": {"pendulum.damping": -1e9}}, "outside its range"),
    ):
        with pytest.raises(NodeError, match=why):
            node.load_session(forces={TORQUE: 1.5}, **wrong)
    after = node.status()
    assert (after["forced"], after["parameters"]) == (before["forced"], before["parameters"])
    assert not node.record([other], 0.05)[other].any()
    assert (
        node.inject(TORQUE, "bias", value=0.0)
        == node.load_session(faults=[{"signal": TORQUE, "kind": "bias", "value": 0.0}])["faults"][0] - 1
    )
    node.heal(0)
    node.heal(1)


def test_a_small_session_takes_effect_in_one_tick(node):
    other = "pendulum.elbow.torque"

    async def both() -> tuple[int, Recording]:
        async with aio.Node(node.endpoint) as fellow:
            recording = asyncio.create_task(fellow.record([TORQUE, other], 1.0))
            await asyncio.sleep(0.3)
            loaded = await fellow.load_session(forces={TORQUE: 1.0, other: 2.0})
            return loaded["answer"], await recording

    tick, record = asyncio.run(both())
    for name, value in ((TORQUE, 1.0), (other, 2.0)):
        assert (record[name][record.tick >= tick] == value).all()
        assert not record[name][record.tick < tick].any()


def test_in_slow_motion_a_recording_is_as_long_as_it_should_be(node):
    node.set_speed(0.05)
    try:
        patient = Node(node.endpoint, timeout=1.0)
        with patient:
            record = patient.record([ELBOW], 0.1)  # two seconds: longer than it waits for an answer
    finally:
        node.set_speed(1.0)
    assert len(record) == 101
    assert record.t[-1] - record.t[0] == pytest.approx(0.1)


def test_the_bridge_comes_back_when_it_is_killed(running):
    """A new bridge has new sessions: the client greets it again, and the node has not noticed."""
    node, files = running
    step = node.status()["step"]
    words = f"--out\0{files}\0".encode()
    mine = next(int(p.name) for p in Path("/proc").glob("[0-9]*") if words in _command_line(p))
    os.kill(children(mine, "bridge.publish.server")[0], signal.SIGKILL)
    wait_for(lambda: _answers(node.endpoint), "the next bridge")
    with Node(node.endpoint) as again:
        assert again.status()["step"] > step
        assert again.status()["state"] == "running"
    assert node.status()["state"] == "running"  # greets the new bridge by itself


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def _answers(endpoint: str) -> bool:
    try:
        Node(endpoint, timeout=0.3).close()
    except NodeError:
        return False
    return True


def test_a_stopped_node_ends_well(hil):
    node = hil(PENDULUM)
    node.stop()
    wait_for(lambda: not _answers(node.endpoint), "the end")


def test_a_node_that_cannot_start_fails_the_test_with_its_own_words(hil):
    with pytest.raises(NodeError, match="Did you mean 'rate_hz'"):
        hil("node.rate_h = 3\nnode.cpu = 'none'\n")
