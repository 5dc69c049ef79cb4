"""Who sits in an ECU's seat, when an ECU closes and the next one comes between any two looks of the lane.

The lane is stepped by hand here, so that things happen in the order that a busy machine brings about now and then.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import recordings
import zmq
from support import wait_for

from bridge.ecu.lane import IDLE_POLL_S, EcuLane
from bridge.protocol.audit import Audit
from bridge.protocol.endpoints import bound
from bridge.protocol.operations import Role
from hilnode.shared.control import Control, Word
from hilnode.shared.ecu_link import SILENT, E, EcuLinks
from hilnode.shared.health import HEALTH_KIND, HEALTH_WORDS
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.lockfree.segment import Segment
from hilnode.shared.row import Col, State

SILENT_NS = 10**9


class Ecu:
    """An ECU with a connection of its own, closed at the end at the latest; `name`: the routing id it gives itself."""

    def __init__(self, lab: "Lab", name: bytes = b"") -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        lab.stack.callback(self.close)
        if name:
            self.socket.setsockopt(zmq.ROUTING_ID, name)
        self.socket.connect(lab.endpoint)

    def say(self, *numbers: int) -> None:
        for seq in numbers:
            self.socket.send(msgpack.packb({"v": 1, "seq": seq, "t": 0.0}))

    def heard(self) -> dict[str, Any]:
        """The next message of the node; empty: none."""
        return dict(msgpack.unpackb(self.socket.recv())) if self.socket.poll(2000) else {}

    def close(self) -> None:
        """Once what it has said is on its way."""
        self.socket.close(2000)
        self._context.term()


class Lab:
    """A lane without a node: rows come when the test says so."""

    def __init__(self, stack: contextlib.ExitStack, name: str, folder: Path) -> None:
        schema, self.stack = recordings.SCHEMA, stack
        self._words, self._rows = (
            schema.words,
            Ring.create(f"{name}.rows", capacity=64, width=schema.words, schema=schema.hash),
        )
        for part in (
            Control.create(name),
            self._rows,
            Ring.create(f"{name}.grants", capacity=64, width=8),
            EcuLinks.create(name, 1),
            Mailbox.create(f"{name}.in.ecu", channels=1),
            Segment.create(f"{name}.health", kind=HEALTH_KIND, words=HEALTH_WORDS),
        ):
            stack.callback(part.close)
        ecu = {"name": "ecu", "inputs": ["x"], "outputs": [], "commands": [], "mapped": [], "safe": [], "record": 0}
        spec = {"node": name, "schema": schema.as_dict(), "grants": f"{name}.grants", "step_op": 1, "pace": "real-time"}
        context = zmq.Context()
        stack.callback(context.term)
        socket = bound(context, None, zmq.ROUTER, "bridge.ecu", "tcp://127.0.0.1:*")
        self.endpoint, self.audit = socket.getsockopt_string(zmq.LAST_ENDPOINT), folder / "audit.jsonl"
        audit = Audit(self.audit, lambda _line: None)
        spec |= {"ecus": [ecu | {"silent_ns": SILENT_NS, "every": 1}]}
        self.lane = EcuLane(spec, socket, lambda _who: Role.OPERATE, audit, keyed=False)
        stack.callback(self.lane.close)
        self.seat = self.lane.seats[0]
        self._tick = 0

    def row(self) -> None:
        """A tick is done, and the lane sees it."""
        row = np.zeros(self._words, np.int64)
        row[Col.TICK], row[Col.STATE], self._tick = self._tick, State.RUNNING, self._tick + 1
        self._rows.push(row)
        self.lane._take_rows()

    def receive(self, *, until: int) -> None:
        """Take what comes until so many ECUs have had a seat."""

        def seated() -> bool:
            self.lane._receive()
            return len(self.connects()) >= until

        wait_for(seated, f"seat number {until}")

    def connects(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line.get("asked", {}).get("op") == "connect"]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()] if self.audit.exists() else []


@pytest.fixture
def lab(name: str, tmp_path: Path) -> Iterator[Lab]:
    with contextlib.ExitStack() as stack:
        yield Lab(stack, name, tmp_path)


def seated_ecu(lab: Lab, number: int = 1, **options: bytes) -> Ecu:
    """An ECU that sits and has had a state."""
    ecu = Ecu(lab, **options)
    ecu.say(0)
    lab.receive(until=number)
    lab.row()
    assert ecu.heard()["tick"] >= 0
    return ecu


def closes_with_words_unread(ecu: Ecu) -> None:
    ecu.say(1, 2)
    ecu.close()
    time.sleep(0.2)  # both are at the lane now, its words and its end


def test_whoever_has_no_route_any_more_does_not_come_back_by_what_it_said_before(lab: Lab) -> None:
    """A row is sent between its end and the reading of its last words: that is what the seat is lost by."""
    closes_with_words_unread(seated_ecu(lab))
    lab.row()
    assert not lab.seat.identity
    second = Ecu(lab)
    second.say(0)
    time.sleep(0.2)
    lab.lane._receive()
    lab.row()
    assert second.heard().get("tick") == 2
    assert len(lab.connects()) == 2


def test_nor_whoever_was_silent_for_too_long_before_it_closed(lab: Lab) -> None:
    first = seated_ecu(lab)
    lab.lane._leave(lab.seat)
    closes_with_words_unread(first)
    lab.lane._receive()
    assert not lab.seat.identity
    assert len(lab.connects()) == 1


def test_who_says_nothing_while_rows_come_loses_its_seat_and_the_driver_knows_why(lab: Lab) -> None:
    ecu = seated_ecu(lab)
    lab.lane._row_at = lab.seat.link[E.HEARD] + SILENT_NS
    lab.lane._report()
    assert lab.seat.identity
    lab.lane._row_at += 1
    lab.lane._report()
    assert not lab.seat.identity
    assert lab.seat.link[E.SEATED] == SILENT
    ecu.say(1)
    lab.receive(until=2)
    assert lab.seat.link[E.SEATED] == 1


def test_who_waits_for_a_dead_node_keeps_its_seat_and_is_told_the_end(lab: Lab) -> None:
    """It answers states, and none have come for long: it must not be left with the live values of the last one."""
    ecu = seated_ecu(lab)
    lab.seat.link[E.HEARD] -= 10 * SILENT_NS
    lab.lane._row_at = lab.seat.link[E.HEARD] + 1
    lab.lane._report()
    lab.lane._tell_all(ended=True)
    last = ecu.heard()
    assert (last["state"], last["live"]) == ("stopped", False)


def test_one_that_closed_before_it_was_heard_takes_no_seat(lab: Lab) -> None:
    hasty = Ecu(lab)
    hasty.say(0)
    time.sleep(0.2)
    closes_with_words_unread(hasty)
    second = Ecu(lab)  # as a rule it gets the number of the descriptor that has just become free
    second.say(0)
    time.sleep(0.2)
    lab.lane._receive()
    lab.row()
    assert second.heard().get("tick") == 0


def test_a_name_of_its_own_may_come_back(lab: Lab) -> None:
    seated_ecu(lab, name=b"left-arm").close()
    time.sleep(0.2)
    lab.lane._see_who_left()
    assert not lab.seat.identity
    seated_ecu(lab, 2, name=b"left-arm")
    assert lab.seat.identity == b"left-arm"


def test_two_that_are_open_do_not_get_one_seat(lab: Lab) -> None:
    seated_ecu(lab)
    second = Ecu(lab)
    second.say(0)

    def refused() -> bool:
        lab.lane._receive()
        return second.socket.poll(0) > 0

    wait_for(refused, "an answer")
    assert "one at a time" in second.heard()["error"]
    assert len(lab.connects()) == 1


def test_the_lane_rests_while_nobody_is_there_to_be_told(lab: Lab) -> None:
    """It is there on every run, and a look at each row costs a seventh of a CPU."""

    def rest() -> float:
        lab.row()
        return lab.lane._pause(lab.lane._row_at)

    lab.lane._control[Word.PERIOD] = 1_000_000
    assert rest() == IDLE_POLL_S
    ecu = seated_ecu(lab)
    assert rest() <= 1e-3
    ecu.close()

    def empty() -> bool:
        lab.lane._see_who_left()
        return not lab.seat.identity

    wait_for(empty, "its end")
    assert rest() == IDLE_POLL_S
