"""The topic `driver` as a subscriber hears it: each driver by name, counters that grow, and who is in."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from support import RemoteNode, free_port, remote_node, wait_for
from test_publisher import Subscriber

DRIVERS = """
[drivers.rig]
kind = "loopback"
[drivers.absent]
kind = "serial"
port = "/dev/none"
receive = { format = "csv", fields = ["x"] }
"""


@pytest.fixture
def heard(tmp_path, name) -> Iterator[tuple[RemoteNode, Subscriber]]:
    port = free_port()
    with remote_node(
        tmp_path, name, f'bridge.publish = "tcp://127.0.0.1:{port}"\nlog.timing = false\n{DRIVERS}'
    ) as node:
        subscriber = Subscriber(f"tcp://127.0.0.1:{port}")
        wait_for(lambda: len(subscriber.of("driver")) >= 8, "messages about the drivers")
        yield node, subscriber
        subscriber.close()


def of(subscriber: Subscriber, driver: str) -> dict[str, Any]:
    return subscriber.of("driver")[-1]["drivers"][driver]


def test_every_driver_is_told_of_in_two_frames(heard):
    node, subscriber = heard
    messages = subscriber.of("driver")
    for frames in subscriber.frames:
        assert len(frames) == 2
        msgpack.unpackb(frames[1], strict_map_key=True)
    seq = [m["seq"] for m in messages]
    assert seq == list(range(seq[0], seq[0] + len(seq)))
    for a, b in itertools.pairwise(messages):
        assert 0.15 < b["timestamp"] - a["timestamp"] < 5.0
        assert b["tick"] >= a["tick"]
        assert b["drivers"]["rig"]["frames"] >= a["drivers"]["rig"]["frames"]
    rig, absent = of(subscriber, "rig"), of(subscriber, "absent")
    assert (rig["kind"], rig["state"], rig["twin"], rig["trouble"]) == ("loopback", "up", False, "")
    assert rig["frames"] > 0
    assert 900 < rig["period_p50_us"] <= rig["period_p99_us"]
    assert 0 <= rig["age_s"] < 5
    assert (absent["state"], absent["frames"]) == ("down", 0)
    assert absent["errors"] >= 1
    assert "there is no port /dev/none" in absent["trouble"]
    assert {type(rig[k]) for k in ("age_s", "period_p50_us", "period_p99_us")} == {float}
    node.ask("swap", "absent", "twin")
    wait_for(lambda: of(subscriber, "absent")["twin"] and of(subscriber, "absent")["state"] == "up", "the twin")
    assert of(subscriber, "absent")["trouble"] == ""
    assert of(subscriber, "absent")["swaps"] == 1
