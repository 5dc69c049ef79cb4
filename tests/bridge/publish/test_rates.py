"""The rates of topics: within their limits, as near as they can be, told to everybody, and kept."""

import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from support import wait_for

from bridge import Node, NodeError
from bridge.client.pytest_plugin import running_node
from bridge.publish.rates import LIMITS, USUAL, Rates

MS = 1_000_000  # [ns]


def times_due(rates: Rates, topic: str, seconds: float) -> int:
    return sum(rates.is_due(topic, moment * MS) for moment in range(round(1000 * seconds)))


def test_without_a_word_they_are_as_documented():
    rates = Rates(1000, 100.0)
    assert rates.as_dict() == {"state": 100.0, "timing": 1.0, "driver": 5.0, "ecu": 5.0}
    assert {topic: times_due(rates, topic, 10.0) for topic in USUAL} == {"timing": 10, "driver": 50, "ecu": 50}


@given(st.floats(0.01, 20_000.0), st.sampled_from([100, 1000, 20_000]))
def test_state_comes_every_so_many_ticks(hz: float, ticks: int) -> None:
    rates = Rates(ticks, 100.0)
    told = rates.set(hz)
    assert told == {"topic": "state", "hz": ticks / rates.every}
    assert abs(rates.every - ticks / hz) <= 0.5 or (rates.every == 1 and hz > ticks)


@pytest.mark.parametrize("topic", USUAL)
def test_each_has_its_own(topic):
    rates = Rates(1000, 100.0)
    others = {t: hz for t, hz in rates.as_dict().items() if t != topic}
    assert rates.set(0.5, topic) == {"topic": topic, "hz": 0.5}
    assert rates.as_dict() == {**others, topic: 0.5}
    assert times_due(rates, topic, 10.0) == 5


def test_whoever_asks_for_more_does_not_wait_for_what_was_planned():
    rates = Rates(1000, 100.0)
    rates.set(0.1, "driver")
    assert rates.is_due("driver", 1000 * MS)
    assert not rates.is_due("driver", 1001 * MS)
    rates.set(50.0, "driver")
    assert rates.is_due("driver", 1002 * MS)
    assert not rates.is_due("driver", 1003 * MS)


@pytest.mark.parametrize("topic", LIMITS)
def test_beyond_its_limits_nothing_changes(topic):
    rates, (low, high) = Rates(1000, 100.0), LIMITS[topic]
    before = rates.as_dict()
    for hz in (0.0, -1.0, 0.99 * low, 1.01 * high):
        with pytest.raises(ValueError, match=f"{topic} must lie between"):
            rates.set(hz, topic)
    assert rates.as_dict() == before
    for hz in (low, high):
        assert rates.set(hz, topic)["hz"] == pytest.approx(min(hz, 1000.0))


def test_a_topic_without_a_rate_of_its_own_is_refused_with_those_that_have_one():
    with pytest.raises(ValueError, match=r"rate.topic = 'drivers': did you mean 'driver'"):
        Rates(1000, 100.0).set(1.0, "drivers")


BENCH = """
plant.kind = "double_pendulum"
node.max_overruns = 0
[drivers.rig]
kind = "loopback"
[drivers.ecu]
kind = "ecu"
inputs = ["x"]
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder: Path = tmp_path_factory.mktemp("rates")
    with running_node(folder, BENCH) as made:
        made.arm()
        made.run()
        yield made


def messages(node: Node, topic: str, count: int) -> list[dict[str, Any]]:
    """The next ones; the first two are left out: they may have been planned before."""
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.linger = 0
        socket.connect(node.about["publish"])
        socket.subscribe(topic)
        found = []
        while len(found) < count + 2:
            assert socket.poll(20_000), f"no {topic}"
            found.append(msgpack.unpackb(socket.recv_multipart()[1]))
        return found[2:]


def gaps(found: list[dict[str, Any]]) -> list[float]:
    return [b["timestamp"] - a["timestamp"] for a, b in itertools.pairwise(found)]


@pytest.mark.parametrize("topic", ["driver", "ecu"])
def test_a_topic_comes_as_often_as_it_was_asked_for(node, topic):
    assert node.set_rate(20.0, topic) == 20.0
    seen = gaps(messages(node, topic, 20))
    assert min(seen) >= 0.05
    assert statistics.median(seen) < 0.1  # it was 0.2 before
    node.set_rate(5.0, topic)
    assert min(gaps(messages(node, topic, 5))) >= 0.2


def test_timing_has_every_row_at_any_rate(node):
    node.set_rate(4.0, "timing")
    found = messages(node, "timing", 8)
    for before, message in itertools.pairwise(found):
        assert message["rows"] == message["tick"] - before["tick"]
    assert statistics.median(m["rows"] for m in found) < 600  # some 250, and 1000 before
    node.set_rate(1.0, "timing")


def test_the_old_form_is_that_of_state(node):
    assert node.ask("rate", hz=50.0)["hz"] == 50.0
    found = messages(node, "state", 10)
    assert {b["tick"] - a["tick"] for a, b in itertools.pairwise(found)} == {20}
    node.set_rate(100.0)


def test_everybody_is_told(node):
    node.set_rate(10.0, "driver")
    wait_for(lambda: messages(node, "bridge", 1)[-1]["rates"]["driver"] == 10.0, "the rate in the topic bridge")
    node.set_rate(5.0, "driver")


def test_what_can_not_be_is_refused(node):
    for topic, hz, why in (("ecu", 51.0, "between 0.1 and 50"), ("raw", 1.0, "rate.topic")):
        with pytest.raises(NodeError, match=why) as caught:
            node.set_rate(hz, topic)
        assert caught.value.reason == "refused"
