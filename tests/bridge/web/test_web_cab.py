"""Holding the controls from a page: who has them, what reaches the plant, and that silence ends it."""

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from support import wait_for
from web_node import STALE_MS, Digger, digging, opened
from web_page import FakePage

from bridge.protocol.operations import Refused, Role
from bridge.web.cab import SILENT_S, Cab


@pytest.fixture(scope="module")
def digger(tmp_path_factory) -> Iterator[Digger]:
    with digging(tmp_path_factory.mktemp("dig"), "cab") as made:
        made.start()
        yield made


@pytest.fixture
def page(digger) -> Iterator[FakePage]:
    with opened(digger.address) as made:
        made.until(lambda: made.last("cab").get("holder") == "nobody", "free controls")
        wait_for(lambda: value(digger, "dig.lift") == 0.0, "the input's default")
        yield made


class Hand:
    """Takes the controls and sends inputs like a page in use, about fifty times a second."""

    def __init__(self, page: FakePage, values: list[float]) -> None:
        self.page, self.values = page, values
        self._seq = 0
        page.say(cab="take")

    def move(self, late: float = 0.0) -> None:
        """One input, as if it had been made so long ago [s]."""
        self.page.say(cab={"seq": self._seq, "at": time.monotonic() - late, "values": self.values})
        self._seq += 1

    def hold(self, until, what: str) -> None:
        def held() -> bool:
            self.move()
            self.page.hear(0.02)
            return bool(until())

        wait_for(held, what)


def value(digger: Digger, name: str) -> float:
    return float(digger.node.ask("last_row")[name])


def test_what_a_page_sends_moves_the_machine(page, digger):
    before = value(digger, "dig.height")
    Hand(page, [2.5, -0.5]).hold(lambda: value(digger, "dig.lift") == 2.5, "the input")
    assert page.last("cab") == {"type": "cab", "holder": "you", "why": ""}
    assert value(digger, "dig.stick") == -0.5
    assert value(digger, "dig.height") > before
    page.say(cab=None)
    page.until(lambda: page.last("cab")["holder"] == "nobody", "free controls")
    wait_for(lambda: value(digger, "dig.lift") == 0.0, "the input's default")


def test_inputs_go_stale_when_the_page_stops_sending(page, digger):
    hand = Hand(page, [1.0, 0.0])
    hand.hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
    silent = time.monotonic()
    wait_for(lambda: value(digger, "dig.lift") == 0.0, "the input's default")
    assert time.monotonic() - silent < 1e-3 * STALE_MS + 1.0  # the time of a busy machine on top
    page.until(lambda: page.last("cab")["holder"] == "nobody", "the seat to be free again")
    hand.hold(lambda: "were not taken" in page.last("cab")["why"], "a refusal")
    assert page.last("cab")["holder"] == "nobody"
    assert value(digger, "dig.lift") == 0.0
    Hand(page, [1.0, 0.0]).hold(lambda: value(digger, "dig.lift") == 1.0, "the input, once it was asked for")
    page.say(cab=None)


def test_nobody_drives_without_taking_the_controls(page, digger):
    page.say(cab={"seq": 0, "at": time.monotonic(), "values": [4.0, 0.0]})
    page.until(lambda: "were not taken" in page.last("cab")["why"], "a refusal")
    assert page.last("cab")["holder"] == "nobody"
    assert value(digger, "dig.lift") == 0.0


def test_inputs_that_were_held_up_are_thrown_away(page, digger):
    """A line that was stuck delivers all at once what was made long ago; what is made now counts again."""
    hand = Hand(page, [1.0, 0.0])
    hand.hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
    hand.values = [9.0, 0.0]
    for late in (0.9, 0.7, 0.5, 1e-3 * STALE_MS + 0.1):
        hand.move(late)
    page.hear(0.1)
    seen = [value(digger, "dig.lift") for _ in range(20)]
    assert max(seen) <= 1.0
    hand.hold(lambda: value(digger, "dig.lift") == 9.0, "an input that was made just now")
    page.say(cab=None)


def test_who_took_the_controls_is_written_down(page, digger):
    Hand(page, [1.0, 0.0]).hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
    page.say(cab=None)
    page.until(lambda: page.last("cab")["holder"] == "nobody", "free controls")
    path = digger.folder / "run" / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    told = [(line["who"], line["outcome"]) for line in lines if line.get("asked") == {"op": "cab"}]
    assert told[-2:] == [("page 127.0.0.1", "taken"), ("page 127.0.0.1", "let go")]


def test_inputs_go_stale_when_the_connection_is_cut(digger):
    """Nothing is closed: the cable is out."""
    with opened(digger.address) as page:
        Hand(page, [3.0, 0.0]).hold(lambda: value(digger, "dig.lift") == 3.0, "the input")
        cut = time.monotonic()
        page.socket.socket.close()
        wait_for(lambda: value(digger, "dig.lift") == 0.0, "the input's default")
        assert time.monotonic() - cut < 1e-3 * STALE_MS + 1.0
    with opened(digger.address) as other:
        Hand(other, [1.5, 0.0]).hold(lambda: value(digger, "dig.lift") == 1.5, "another page's input")
        other.say(cab=None)


def test_closing_the_page_frees_the_controls(page, digger):
    with opened(digger.address) as other:
        Hand(other, [1.0, 0.0]).hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
        page.until(lambda: page.last("cab")["holder"] == "somebody else: 127.0.0.1", "word of it")
    page.until(lambda: page.last("cab")["holder"] == "nobody", "free controls")


def test_only_one_page_holds_them(page, digger):
    with opened(digger.address) as other:
        hand = Hand(page, [1.0, 0.0])
        hand.hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
        other.say(cab="take")
        other.say(cab={"seq": 0, "at": time.monotonic(), "values": [-9.0, 0.0]})
        hand.hold(lambda: other.hear() or "holds the controls" in other.last("cab").get("why", ""), "a refusal")
        assert other.last("cab")["holder"] == "somebody else: 127.0.0.1"
        assert value(digger, "dig.lift") == 1.0
        other.say(cab=None)  # not theirs to give up
        hand.hold(lambda: other.hear(0.1) or page.last("cab")["holder"] == "you", "the seat")
        page.say(cab=None)
        other.until(lambda: other.last("cab")["holder"] == "nobody", "free controls")
        Hand(other, [-2.0, 0.0]).hold(lambda: value(digger, "dig.lift") == -2.0, "the other's input")
        other.say(cab=None)


@pytest.mark.parametrize(
    "given",
    [
        *({"seq": 0}, {"seq": 0, "at": 0, "values": [1.0]}, {"seq": -1, "at": 0, "values": [1, 1]}, [1, 1], "give"),
        *({"seq": 0, "values": [1, 1]}, {"seq": 0, "at": "now", "values": [1, 1]}),
    ],
)
def test_inputs_that_make_no_sense_are_refused(page, digger, given):
    page.say(cab=given)
    page.until(lambda: page.last("cab").get("why"), "a refusal")
    assert page.last("cab")["holder"] == "nobody"
    assert value(digger, "dig.lift") == 0.0


def test_old_inputs_are_refused(page, digger):
    hand = Hand(page, [1.0, 0.0])
    hand.hold(lambda: value(digger, "dig.lift") == 1.0, "the input")
    page.say(cab={"seq": 0, "at": time.monotonic(), "values": [5.0, 0.0]})
    hand.hold(lambda: "above" in page.last("cab")["why"], "a refusal")
    assert value(digger, "dig.lift") == 1.0
    page.say(cab=None)


def test_who_was_silent_for_too_long_is_refused_before_anybody_looks(monkeypatch):
    """What a line held up may be young when it arrives: the page went on for a while without being heard."""
    now, told, noted = [100.0], [], []
    monkeypatch.setattr("bridge.web.cab.time", SimpleNamespace(monotonic=lambda: now[0]))
    nowhere = "tcp://127.0.0.1:1"
    feed = SimpleNamespace(
        endpoint=nowhere, lane={"endpoint": nowhere}, key=None, channels=["lift"], up=True, stand_in="", hello={}
    )
    cab = Cab(feed, lambda: told.append(cab.holder), lambda _, what: noted.append(what))
    page = object()
    try:
        cab.drive(page, "here", Role.OPERATE, "take")
        for k, moment in enumerate((100.0, 100.9, 101.9)):  # each within a second of the one before
            now[0] = moment
            cab.drive(page, "here", Role.OPERATE, {"seq": k, "at": moment, "values": [1.0]})
        now[0] += SILENT_S + 0.01
        with pytest.raises(Refused, match="nothing was heard of this page"):
            cab.drive(page, "here", Role.OPERATE, {"seq": 3, "at": now[0] - 0.1, "values": [1.0]})
        with pytest.raises(Refused, match="were not taken"):
            cab.drive(page, "here", Role.OPERATE, {"seq": 4, "at": now[0], "values": [1.0]})
        assert (told, noted) == ([page, None], ["taken", "silent for 1 s"])
    finally:
        cab.close()
