"""A node as a whole, in this process: its life, its commands, its rows, and what is left of it afterwards (nothing)."""

import gc
import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import trouble_plant
from support import (
    SAFE,
    Device,
    children,
    free_port,
    is_alive,
    left_in_memory,
    make_config,
    trouble,
    wait_for,
)

from hilnode.node.node import Node
from hilnode.shared.codes import Answer
from hilnode.shared.command_ring import CommandRefused
from hilnode.shared.lockfree.segment import Segment, SegmentBusy
from hilnode.shared.row import HEADER, Col, Flag, State

PLANT = 'plant.kind = "trouble_plant:create"\nsafety.bumpless_ms = 0\n'
ALONE = PLANT + "safety.watchdog = false\n"
CABLE = """
[drivers.cable]
kind = "loopback"
channels = 2
[signals.outputs."cable.out.0"]
from = "trouble.count"
safe = -1.0
[signals.inputs."trouble.x"]
from = "cable.in.1"
"""


@pytest.fixture
def make(tmp_path, name):
    """Nodes of this test; closed at its end."""
    made: list[Node] = []

    def one(text: str = ALONE, **more: object) -> Node:
        made.append(Node(make_config(tmp_path, name, text), **more))
        return made[-1]

    yield one
    for node in made:
        node.close()


@pytest.fixture
def node(make) -> Iterator[Node]:
    made = make()
    made.start()
    return made


def rows_of(node: Node) -> np.ndarray:
    """All rows so far, by tick."""
    rows = node._rows.reader(first=0, batch=20_000).read()
    assert rows[:, Col.TICK].tolist() == list(range(len(rows)))
    return rows


def await_tick(node: Node, tick: int) -> None:
    wait_for(lambda: len(node._rows) > tick, f"tick {tick}")


def columns(node: Node, *names: str) -> list[np.ndarray]:
    """Signals in all rows so far, each as long as the others."""
    s = node.schema
    rows = rows_of(node).view(np.float64)
    found = []
    for name in names:
        at = [x.name for x in s.signals].index(name)
        found.append(rows[:, at + (s.at_inputs if at < len(s.inputs) else s.at_outputs - len(s.inputs))])
    return found


def column(node: Node, name: str) -> np.ndarray:
    """A signal in all rows so far."""
    return columns(node, name)[0]


# -- the node's life ---------------------------------------------------------------------------------------------


def test_a_whole_life(node):
    """Each command takes effect at the very tick it answers with, and state, control block and rows agree."""
    life = [("", State.CONFIGURED, 0)]
    for command, state in [
        ("arm", State.ARMED),
        ("run", State.RUNNING),
        ("trip", State.TRIPPED),
        ("clear", State.CLEARED),
        ("arm", State.ARMED),
        ("run", State.RUNNING),
        ("disarm", State.CONFIGURED),
        ("arm", State.ARMED),
    ]:
        life.append((command, state, getattr(node, command)()))
        assert node.state == state, command
        assert (node.tripped is not None) == (state == State.TRIPPED)
        await_tick(node, life[-1][2] + 5)
    states = rows_of(node)[:, Col.STATE]
    for (_, state, begin), (_, _, end) in itertools.pairwise(life):
        assert states[begin:end].tolist() == [state] * (end - begin)


def test_the_plant_steps_in_running_only(node):
    node.arm()
    began = node.run()
    await_tick(node, began + 50)
    ended = node.trip()
    await_tick(node, ended + 20)
    rows = rows_of(node)
    stepped = (rows[:, Col.FLAGS] & Flag.PAUSED) == 0
    assert np.flatnonzero(stepped).tolist() == list(range(began, ended))
    assert rows[-1, Col.STEP] == ended - began == node.steps
    assert column(node, "trouble.count")[began:ended].tolist() == list(range(ended - began))


def test_pause_step_and_resume(node):
    node.arm()
    began = node.run()
    await_tick(node, began + 20)
    paused = node.pause()
    await_tick(node, paused + 20)
    at = node.steps
    assert node.step(3) == at + 3
    wait_for(lambda: node.steps == at + 3, "three granted steps")
    assert node.step() == at + 4
    resumed = node.resume()
    await_tick(node, resumed + 10)
    rows = rows_of(node)
    stepped = (rows[:, Col.FLAGS] & Flag.PAUSED) == 0
    assert stepped[began:paused].all()
    assert stepped[paused:resumed].sum() == 4
    assert stepped[resumed:].all()
    assert node.state == State.RUNNING


def test_a_pause_leaves_the_devices_as_they_are(make):
    node = make(ALONE + CABLE)
    node.start()
    node.arm()
    node.run()
    paused = node.pause()
    await_tick(node, paused + 30)
    told = column(node, "cable.out.0")
    assert set(told[paused:].tolist()) == {told[paused - 1]}
    assert told[paused - 1] != SAFE


def test_what_is_not_possible_now_is_refused(node):
    for command in ("run", "pause", "resume", "step", "clear", "disarm"):
        with pytest.raises(CommandRefused, match=f"{command}: not possible now") as caught:
            getattr(node, command)()
        assert caught.value.answer == Answer.WRONG_STATE
        assert caught.value.detail == State.CONFIGURED
    assert node.state == State.CONFIGURED


def test_a_tripped_node_runs_only_after_clear_and_arm(node):
    node.arm()
    node.run()
    node.trip()
    assert "asked for by the operator" in node.tripped.sentence
    for command in ("run", "arm", "pause", "step"):
        with pytest.raises(CommandRefused):
            getattr(node, command)()
    node.trip()  # once more is no error and no second trip
    node.clear()
    with pytest.raises(CommandRefused):
        node.run()
    node.arm()
    node.run()
    assert node.state == State.RUNNING


def test_reset_begins_again_but_not_while_running(node):
    node.arm()
    began = node.run()
    await_tick(node, began + 30)
    with pytest.raises(CommandRefused):
        node.reset()
    node.disarm()
    assert node.steps >= 30
    done = node.reset()
    await_tick(node, done + 1)
    assert node.steps == 0
    node.arm()
    again = node.run()
    await_tick(node, again)
    assert column(node, "trouble.count")[again] == 0.0


def test_it_ends_after_the_last_tick(make):
    node = make(last_tick=200)
    node.start()
    assert node.wait(10.0)
    node.close()
    assert len(rows_of(node)) == 200
    assert node.timing().rows == 200
    assert node.state == State.STOPPED
    assert node.exit_code == 0


def test_real_time_at_one_kilohertz(node):
    """On the whole: 300 deadlines a millisecond apart, whatever single ticks were late."""
    await_tick(node, 300)
    deadlines = rows_of(node)[:, Col.DEADLINE]
    apart = np.diff(deadlines)
    assert (apart % 1_000_000 == 0).all()
    assert np.median(apart) == 1_000_000


def test_the_tick_has_what_the_machine_allows(node):
    thread = next(t for t in threading.enumerate() if t.name == "tick")
    said = " ".join(node.notes)
    if "SCHED_FIFO" not in said:
        assert os.sched_getscheduler(thread.native_id) == os.SCHED_FIFO
        assert os.sched_getparam(thread.native_id).sched_priority == 80
    if "not pinned" not in said:
        assert os.sched_getaffinity(thread.native_id) == {node.cpu}
    locked = int(next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmLck" in x).split()[1])
    assert (locked > 0) != ("memory not locked" in said)


# -- values by hand ----------------------------------------------------------------------------------------------


def test_a_forced_input_reaches_the_plant_and_is_flagged(node):
    node.arm()
    node.run()
    forced = node.force("trouble.x", 3.0)
    await_tick(node, forced + 10)
    released = node.release("trouble.x")
    await_tick(node, released + 10)
    x, y = columns(node, "trouble.x", "trouble.y")
    flags = rows_of(node)[:, Col.FLAGS] & Flag.FORCED
    assert set(x[forced:released]) == {3.0}
    assert set(y[forced:released]) == {2.0 * 3.0}  # the plant's gain is 2
    assert set(x[released:]) == {0.0}
    assert set(y[released:]) == {0.0}
    assert np.flatnonzero(flags).tolist() == list(range(forced, released))


def test_a_forced_output_is_what_the_devices_see_while_the_row_keeps_the_truth(make):
    node = make(ALONE + CABLE)
    node.start()
    node.arm()
    node.run()
    forced = node.force("trouble.count", 1e6)
    await_tick(node, forced + 5)
    released = node.release()
    await_tick(node, released + 5)
    count, told = columns(node, "trouble.count", "cable.out.0")
    assert (np.diff(count[forced - 1 :]) == 1).all()
    assert set(told[forced:released]) == {1e6}
    assert told[released:].tolist() == count[released:].tolist()


def test_a_forced_command_goes_to_the_device_alone(make):
    node = make(ALONE + CABLE)
    node.start()
    node.arm()
    node.run()
    forced = node.force("cable.out.0", 42.0)
    await_tick(node, forced + 5)
    assert set(column(node, "cable.out.0")[forced:]) == {42.0}
    tripped = node.trip()
    await_tick(node, tripped + 5)
    assert set(column(node, "cable.out.0")[tripped:]) == {SAFE}  # safety is stronger than force


def test_a_parameter_acts_from_the_tick_it_answers_with(node):
    node.arm()
    node.run()
    node.force("trouble.x", 1.0)
    changed = node.set_parameter("trouble.gain", 7.0)
    await_tick(node, changed + 5)
    y = column(node, "trouble.y")
    assert y[changed - 1] == 2.0
    assert set(y[changed:]) == {7.0}


def test_an_unknown_name_gets_a_hint(node):
    for command, wrong, hint in [
        ("force", "trouble.knd", "did you mean 'trouble.kind'"),
        ("release", "troubel.count", "did you mean 'trouble.count'"),
        ("set_parameter", "trouble.gian", "did you mean 'trouble.gain'"),
        ("set_parameter", "zzz", "known: trouble.gain"),
    ]:
        arguments = [wrong] if command == "release" else [wrong, 1.0]
        with pytest.raises(KeyError, match=hint) as caught:
            getattr(node, command)(*arguments)
        assert wrong in str(caught.value)


def test_a_value_outside_the_range_is_refused(node):
    for value in (10.5, -11.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=r"trouble\.x = .*\[-10, 10\] m"):
            node.force("trouble.x", value)


def test_commands_may_come_from_many_threads(node):
    """Every one is answered, once, with its own answer."""
    with ThreadPoolExecutor(8) as pool:
        ticks = list(pool.map(lambda k: node.force("trouble.x", k / 100), range(200)))
    assert len(ticks) == 200
    await_tick(node, max(ticks) + 1)
    assert column(node, "trouble.x")[max(ticks)] in {k / 100 for k in range(200)}
    node.release()


@pytest.mark.alone  # the age of what comes back
def test_what_is_told_to_a_device_comes_back_through_a_cable(make):
    """Plant output -> command -> driver's threads -> input, in order, within the run."""
    text = ALONE + CABLE.replace("cable.in.1", "cable.in.0")
    node = make(text + "clamp = [-10, 10]\n")
    node.start()
    node.arm()
    node.run()
    wait_for(lambda: node.last_row().get("trouble.x") == 10.0, "the count to come back")
    came = column(node, "trouble.x")
    assert (np.diff(came[came > 0]) >= 0).all()
    ages = rows_of(node).view(np.float64)[:, node.schema.at_ages + 1]
    assert 0 < ages[-1] < 1.0


# -- scripts -----------------------------------------------------------------------------------------------------


def test_a_script_is_called_about_every_so_many_steps(node):
    called: list[int] = []
    node.every(50, called.append)
    node.arm()
    node.run()
    wait_for(lambda: len(called) >= 5, "five calls")
    assert called == sorted(called)
    later = called[1:]
    assert len({step // 50 for step in later}) == len(later)  # never twice within the same fifty


def test_a_script_that_fails_is_not_called_again_and_harms_no_other(node, caplog):
    bad: list[int] = []
    good: list[int] = []

    def fail(step: int) -> None:
        bad.append(step)
        raise RuntimeError("on purpose")

    node.every(10, fail)
    node.every(10, good.append)
    node.arm()
    node.run()
    wait_for(lambda: len(good) >= 5, "five calls")
    assert len(bad) == 1
    assert "will not be called again" in caplog.text
    assert node.state == State.RUNNING


def test_a_script_may_give_commands(node):
    took: list[int] = []
    node.every(1_000_000, lambda step: took.append(node.force("trouble.x", 4.0)))
    wait_for(lambda: took, "the script's command to be answered", 3.0)


def test_a_script_goes_on_after_a_reset(node):
    called: list[int] = []
    node.every(10, called.append)
    node.arm()
    node.run()
    wait_for(lambda: len(called) >= 10, "ten calls")
    node.disarm()
    node.reset()
    called.clear()
    node.arm()
    node.run()
    wait_for(lambda: len(called) >= 2 and called[1] < 80, "calls after the reset", 2.0)


def test_a_script_every_0_steps_is_refused(make):
    with pytest.raises(ValueError, match="0"):
        make().every(0, print)


# -- trouble -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (trouble_plant.STATUS, "the plant gave up: as it was told to"),
        (trouble_plant.NAN, "plant output trouble.y is not a finite number"),
    ],
)
def test_a_plant_that_fails_trips_the_node_and_is_reset_before_the_next_run(make, kind, says):
    node = make(ALONE + CABLE)
    node.start()
    node.arm()
    began = node.run()
    await_tick(node, began + 20)
    at = node.force("trouble.kind", kind)
    wait_for(lambda: node.tripped, "a trip")
    assert says in node.tripped.sentence
    assert node.tripped.tick == at
    assert node.exit_code == 3
    await_tick(node, at + 5)
    told = column(node, "cable.out.0")
    assert set(told[at:]) == {SAFE}  # not one command from the bad step
    node.release()
    node.clear()
    node.arm()
    again = node.run()
    await_tick(node, again + 2)
    assert column(node, "trouble.count")[again] == 0.0


def test_devices_are_safe_before_the_run_after_the_trip_and_at_the_end(make):
    with Device() as device:
        node = make(trouble(device.port, "safety.watchdog = false"))
        node.start()
        wait_for(lambda: len(device.got) >= 10, "datagrams before arming")
        node.arm()
        wait_for(lambda: len(device.got) >= 30, "datagrams while armed")
        assert set(device.values()) == {SAFE}
        node.run()
        device.await_live()
        node.trip()
        device.await_safe(device.got[-1][0])
        settled = time.monotonic_ns()
        wait_for(lambda: len(device.values(settled)) >= 30, "datagrams after the trip")
        assert set(device.values(settled)) == {SAFE}
        node.clear()
        node.arm()
        asked = time.monotonic_ns()
        node.run()
        device.await_live(asked)
        node.close()
        wait_for(lambda: device.values()[-1] == SAFE, "the last datagram")


def test_a_full_disc_does_not_make_the_node_deaf(make, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.jsonl").symlink_to("/dev/full")
    said: list[str] = []
    node = make(ALONE + "log.timing = false\n", directory=tmp_path / "run", say=said.append)
    node.start()
    for command in ("arm", "run", "trip", "clear"):
        getattr(node, command)()
    assert any("No space left on device" in line for line in said)


def test_a_second_node_of_the_same_name_is_refused(make, node):
    with pytest.raises(SegmentBusy) as caught:
        make()
    assert caught.value.pid == os.getpid()
    node.arm()
    node.run()  # the first one goes on


# -- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_no_helper_runs_on_the_cpu_of_the_tick_while_it_starts(make, tmp_path):
    """Looked at as soon as they are there, and the youngest first: it has not read its first line by then."""
    ports = f'bridge.publish = "tcp://127.0.0.1:{free_port()}"\nweb.address = "http://127.0.0.1:{free_port()}"\n'
    node = make(PLANT + ports + "log.record = true\n" + CABLE, directory=tmp_path / "run")
    assert len(node.helpers) >= 4  # both recorders, the bridge and the page
    for helper in [*reversed(node.helpers), node.watchdog]:
        assert node.cpu not in os.sched_getaffinity(helper.process.pid), helper.name


def test_nothing_is_left_when_it_is_closed(make, name, tmp_path):
    threads, callbacks, affinity = set(threading.enumerate()), list(gc.callbacks), os.sched_getaffinity(0)
    node = make(PLANT + CABLE, directory=tmp_path / "run")
    node.start()
    node.arm()
    node.run()
    helpers = children(os.getpid(), "hilnode.node.watchdog") + children(os.getpid(), "hilnode.node.timing_recorder")
    assert len(helpers) == 2
    assert len(left_in_memory(name)) >= 6
    node.close()
    assert left_in_memory(name) == []
    assert set(threading.enumerate()) == threads
    assert [pid for pid in helpers if is_alive(pid)] == []
    assert gc.callbacks == callbacks
    assert os.sched_getaffinity(0) == affinity
    assert gc.get_freeze_count() == 0
    node.close()
    assert node.exit_code == 0
    assert not node.stuck


def test_a_node_that_was_never_started_closes(make, name):
    node = make()
    node.close()
    node.close()
    assert left_in_memory(name) == []


def test_a_node_with_devices_that_was_never_started_closes(tmp_path, name):
    node = Node(make_config(tmp_path, name, PLANT + CABLE))
    try:
        node.close()
    finally:
        node.runners.clear()
        node.close()


def test_a_node_that_cannot_be_built_leaves_nothing_in_memory(tmp_path, name):
    holder = Segment.create(f"{name}.out.cable", kind=1, words=1)
    with pytest.raises(SegmentBusy):
        Node(make_config(tmp_path, name, PLANT + CABLE))
    holder.close()
    assert left_in_memory(name) == []


def test_a_node_that_cannot_be_built_leaves_no_process(tmp_path, name, monkeypatch):
    def fail(self: Node) -> None:
        raise OSError("on purpose")

    monkeypatch.setattr(Node, "_start_helpers", fail)
    with pytest.raises(OSError, match="on purpose"):
        Node(make_config(tmp_path, name, PLANT))
    assert children(os.getpid(), "hilnode.node.watchdog") == []


def test_four_nodes_in_a_row_leak_nothing(tmp_path, name):
    """Files, threads and mappings after four nodes are as many as after the first."""

    def live() -> tuple[int, int]:
        node = Node(make_config(tmp_path, name, ALONE + CABLE), last_tick=20)
        node.start()
        assert node.wait(10.0)
        node.close()
        del node
        gc.collect()
        maps = Path("/proc/self/maps").read_text().count(f"hilnode.{name}")
        return len(os.listdir("/proc/self/fd")), maps

    first = live()
    assert [live() for _ in range(3)] == [first] * 3


def test_rows_have_the_documented_width(node):
    await_tick(node, 1)
    assert rows_of(node).shape[1] == HEADER + 2 + 2 + 2  # inputs, their ages, outputs; no commands, no bodies
