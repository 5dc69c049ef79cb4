"""From the virtual operator to a page and back: the machine never jumps, and nobody comes back unasked."""

import time
from collections.abc import Iterator

import pytest
from support import wait_for
from test_web_cab import Hand, value
from web_node import STALE_MS, Digger, digging, opened
from web_page import FakePage

OPERATOR = """
[drivers.cab.twin]
kind = "operator"
points = [{ t = 0.0, lift = 0.0 }, { t = 0.5, lift = 2.0, stick = 1.0 }]
"""
LIFT, STICK = "dig.lift", "dig.stick"


@pytest.fixture(scope="module")
def digger(tmp_path_factory) -> Iterator[Digger]:
    with digging(tmp_path_factory.mktemp("dig"), "handover", tables=OPERATOR) as made:
        made.start()
        yield made


@pytest.fixture
def page(digger) -> Iterator[FakePage]:
    """A page, and the operator at the levers."""
    with opened(digger.address) as made:
        made.until(lambda: made.last("cab").get("holder") == "nobody", "free controls")
        digger.node.ask("swap", "cab", "twin")
        wait_for(lambda: value(digger, LIFT) == 2.0, "the operator")
        yield made


def test_the_page_is_told_who_stands_in_and_what_its_levers_move(page):
    assert page.hello["cab"]["stand_in"] == "operator"
    assert page.hello["cab"]["moves"] == [LIFT, STICK]


def test_taking_the_controls_relieves_the_operator_without_a_jump(page, digger):
    hand = Hand(page, [2.0, 1.0])  # where the levers are
    seen = set()

    def taken() -> bool:
        seen.add((value(digger, LIFT), value(digger, STICK)))
        return page.last("cab")["holder"] == "you"

    hand.hold(taken, "the seat")
    assert seen == {(2.0, 1.0)}
    hand.values = [-3.0, 0.0]
    hand.hold(lambda: value(digger, LIFT) == -3.0, "the page's lever")
    page.say(cab=None)
    wait_for(lambda: value(digger, LIFT) == 0.0, "the lever in its middle")


def test_who_lets_go_leaves_the_machine_still_until_it_is_given_back(page, digger):
    hand = Hand(page, [-3.0, 0.5])
    hand.hold(lambda: value(digger, LIFT) == -3.0, "the page's lever")
    now = time.monotonic()
    page.say(cab=None)
    wait_for(lambda: value(digger, LIFT) == 0.0 and value(digger, STICK) == 0.0, "the levers in their middle")
    assert time.monotonic() - now < 1e-3 * STALE_MS + 1.0  # a busy machine; the tick's own time is tested elsewhere
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        assert value(digger, LIFT) == 0.0  # nobody has asked for the operator
    answer = page.ask("seat", ecu="cab", to="twin")
    assert answer["ok"], answer
    wait_for(lambda: value(digger, LIFT) == 2.0, "the operator")


def test_a_page_that_is_gone_leaves_the_machine_still(page, digger):
    with opened(digger.address) as other:
        Hand(other, [-3.0, 0.5]).hold(lambda: value(digger, LIFT) == -3.0, "the page's lever")
    wait_for(lambda: value(digger, LIFT) == 0.0, "the lever in its middle")
    time.sleep(0.5)
    assert value(digger, LIFT) == 0.0


def test_nobody_gives_away_what_another_page_holds(page, digger):
    hand = Hand(page, [-3.0, 0.0])
    hand.hold(lambda: value(digger, LIFT) == -3.0, "the page's lever")
    with opened(digger.address) as other:
        other.say(op="seat", id=1, ecu="cab", to="twin")
        hand.hold(lambda: other.hear() or other.last("answer"), "an answer")
        assert "holds the controls" in other.last("answer")["why"]
    hand.hold(lambda: page.last("cab")["holder"] == "you" and value(digger, LIFT) == -3.0, "the seat")
    page.say(cab=None)


def test_a_page_that_is_relieved_by_an_administrator_is_told(page, digger):
    hand = Hand(page, [-3.0, 0.0])
    hand.hold(lambda: value(digger, LIFT) == -3.0, "the page's lever")
    digger.node.ask("swap", "cab", "twin")
    hand.hold(lambda: page.last("cab")["holder"] == "nobody", "word of it")
    wait_for(lambda: value(digger, LIFT) == 2.0, "the operator")
