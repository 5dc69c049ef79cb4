"""Lockstep: an ECU and the plant advance together, and nothing depends on how long anybody takes."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support import wait_for

from bridge import Node, NodeError
from bridge.client.pytest_plugin import running_node
from bridge.ecu.client import Ecu, State
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import Col, Schema

TABLES = """
plant.kind = "double_pendulum"
node.pace = "lockstep"
safety.on_trip = "hold"
safety.watchdog_ms = 300
safety.bumpless_ms = 20
[drivers.ecu]
kind = "ecu"
inputs = ["shoulder", "elbow"]
outputs = ["angle", "speed", "torque"]
[signals.inputs."pendulum.shoulder.torque"]
from = "ecu.shoulder"
unit = "N*m"
filter_hz = 40.0
rate_limit = 2000.0
stale_ms = 10.0
stale = "ramp"
ramp_ms = 20.0
[signals.inputs."pendulum.elbow.torque"]
from = "ecu.elbow"
unit = "N*m"
[signals.outputs."ecu.angle"]
from = "pendulum.shoulder.angle"
[signals.outputs."ecu.speed"]
from = "pendulum.shoulder.speed"
[signals.outputs."ecu.torque"]
from = "pendulum.shoulder.torque"
[[signals.faults]]
signal = "pendulum.shoulder.angle"
kind = "noise"
sigma = 0.01
seed = 7
"""


@dataclass
class Bench:
    node: Node
    ecu: Ecu
    ring: Ring
    schema: Schema
    events: Path

    def start(self) -> None:
        """From the initial state on, with inputs at rest."""
        if self.node.status()["state"] != "configured":
            self.node.disarm()
        self.node.reset()
        self.ecu.send([0.0, 0.0])
        self.ecu.receive()
        self.node.arm()
        self.node.run()

    def run(self, moves: Sequence[tuple[float, int]], pauses: Sequence[float]) -> list[State]:
        """A controller whose torque depends on the state and on `moves`: (torque, steps) per message."""
        self.start()
        states, angle = [], 0.0
        for k, (torque, steps) in enumerate(moves):
            if k < len(pauses):
                time.sleep(pauses[k])
            states.append(self.ecu.step([torque - 3.0 * angle, math.sin(k)], steps))
            angle = states[-1].values[0]
        return states

    def rows(self, count: int) -> np.ndarray:
        """What the plant took and gave in the last `count` ticks, without clocks: bits."""
        rows = self.ring.reader(first=len(self.ring) - count, batch=count).read().copy()
        s = self.schema
        kept = [Col.STEP, Col.STATE, Col.STATUS, *range(s.at_inputs, s.words)]
        return rows[:, kept]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("lockstep")
    with running_node(folder, TABLES) as node:
        about = json.loads(next(folder.glob("hil-*/run/run.json")).read_text())
        schema = Schema.from_dict(about["schema"])
        ring = Ring.attach(f"{about['config']['node']['name']}.rows", schema=schema.hash)
        with Ecu(about["config"]["bridge"]["ecu"], timeout=30.0) as ecu:
            yield Bench(node, ecu, ring, schema, next(folder.glob("hil-*/run/events.jsonl")))


def test_each_message_makes_its_steps_with_its_values(bench):
    """The rate limit of 2 per step shows which value each step took."""
    bench.start()
    first = bench.ecu.step([1.0, 0.5])
    assert (first.step, first.granted, first.state, first.live) == (1, 1, "running", True)
    row = bench.ring.reader(first=len(bench.ring) - 1).read()[0]
    assert row[Col.STEP] == 1
    assert row.view(float)[bench.schema.at_inputs + 1] == 0.5
    for k in range(1, 50):
        state = bench.ecu.step([1.0, 0.5 + k])
        row = bench.ring.reader(first=len(bench.ring) - 1).read()[0]
        assert (state.step, state.tick) == (k + 1, first.tick + k)
        assert row.view(float)[bench.schema.at_inputs + 1] == 0.5 + k
        assert state.t == pytest.approx((k + 1) * 1e-3)


def test_several_steps_are_answered_when_the_last_is_done(bench):
    bench.start()
    assert [bench.ecu.step([0.0, 0.0], n).step for n in (1, 10, 100, 1000)] == [1, 11, 111, 1111]


def test_two_runs_are_the_same_to_the_bit_however_long_the_ecu_thinks(bench):
    """With grants so long that the first input goes stale on the way, filters, limits and noise; with and without
    pauses that are longer than its stale_ms."""
    moves = [(5.0, 1)] * 20 + [(-5.0, 40), (2.0, 3), (8.0, 17)] * 6 + [(0.0, 25)]
    steps = sum(n for _, n in moves)
    quick = bench.run(moves, [])
    first = bench.rows(steps)
    slow = bench.run(moves, [0.03] * 25 + [0.2])
    second = bench.rows(steps)
    assert first[0, 0] == 1
    assert first.tobytes() == second.tobytes()
    assert [s.values for s in quick] == [s.values for s in slow]
    shoulder = first[:, 3].view(np.float64)
    assert len(np.unique(shoulder)) > 100  # the inputs did move
    ages = first[:, 3 + len(bench.schema.inputs)].view(np.float64)
    assert ages.max() == pytest.approx(39e-3)  # simulated time since the step that took it


def test_another_controller_gives_another_run(bench):
    moves = [(5.0, 1)] * 50
    bench.run(moves, [])
    first = bench.rows(50)
    bench.run([(5.0, 1)] * 49 + [(5.0 + 1e-12, 1)], [])
    second = bench.rows(50)
    assert first[:49].tobytes() == second[:49].tobytes()
    assert first[49].tobytes() != second[49].tobytes()


def test_the_state_is_that_of_now_though_there_is_no_row_yet(bench):
    """In lockstep the loop waits in its tick: arming and running show in no row before the first step."""
    bench.start()
    rows = len(bench.ring)
    bench.ecu.send()
    assert bench.ecu.receive().state == "running"
    assert len(bench.ring) == rows


def test_nothing_moves_by_itself(bench):
    bench.start()
    state = bench.ecu.step([1.0, 0.0])
    time.sleep(0.2)
    bench.ecu.send([2.0, 0.0])
    still = bench.ecu.receive()
    assert (still.step, still.tick, still.granted) == (state.step, state.tick, 0)
    assert bench.ecu.step([2.0, 0.0]).step == state.step + 1


def test_no_step_is_made_while_it_is_not_running(bench):
    bench.start()
    bench.node.disarm()
    before = bench.node.status()["step"]
    with pytest.raises(NodeError, match="the node is configured, not running"):
        bench.ecu.step([1.0, 0.0])
    assert bench.node.status()["step"] == before


def test_a_trip_on_the_way_is_answered(bench):
    bench.start()
    bench.node.pause()
    bench.ecu.send([1.0, 0.0], step=5)
    with pytest.raises(NodeError, match="sent nothing"):
        bench.ecu.receive(0.2)
    bench.node.trip()
    state = bench.ecu.receive()
    assert (state.state, state.live, state.step) == ("tripped", False, 0)
    bench.node.clear()
    bench.node.arm()
    bench.node.run()
    assert bench.ecu.step([1.0, 0.0]).step == 1


def test_a_second_grant_before_the_answer_is_refused(bench):
    bench.start()
    bench.node.pause()
    bench.ecu.send([1.0, 0.0], step=5)
    bench.ecu.send([1.0, 0.0], step=5)
    with pytest.raises(NodeError, match="not done yet"):
        bench.ecu.receive()
    bench.node.resume()
    assert bench.ecu.receive().step == 5


def test_events_are_not_flooded_by_grants(bench):
    events = bench.events
    bench.start()
    wait_for(lambda: "armed -> running" in events.read_text(), "events")
    time.sleep(0.1)
    before = len(events.read_text().splitlines())
    for _ in range(200):
        bench.ecu.step([1.0, 0.0])
    time.sleep(0.1)
    assert len(events.read_text().splitlines()) - before < 20


def test_an_ecu_that_went_away_is_noticed_and_another_takes_its_seat(bench):
    """Runs last: the first one does not come back."""
    bench.start()
    bench.ecu.step([1.0, 0.0])
    bench.ecu.close()
    health = lambda: bench.node.status()["drivers"]["ecu"]["state"]  # noqa: E731
    wait_for(lambda: health() == "down", "the driver to notice")
    with Ecu(bench.ecu.endpoint) as other:
        assert other.step([2.0, 0.0]).step == 2
        wait_for(lambda: other.send([2.0, 0.0]) and other.receive() and health() == "up", "the driver to come back")
