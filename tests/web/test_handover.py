"""The machine that `hilnode run` starts, taken from its virtual operator by keys, and given back to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Browser, Page
from real_node import RealNode, complaints, opened, real_node
from support import wait_for
from test_excavator_driven import BOOM, BROWSER, LEVER, STALE, TICK, lift, stops, take

pytestmark = [pytest.mark.web, pytest.mark.timeout(1200)]

PARKING = "excavator.parking"
STILL = 0.02  # [rad] that the boom may sink or sway on when its lever is centred


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """What `hilnode run` starts."""
    with real_node(tmp_path_factory.mktemp("default"), "excavator.toml") as node:
        yield node


def words(page: Page) -> str:
    return str(page.run("document.querySelector('.holder').textContent"))


def held(page: Page) -> None:
    page.wait("document.querySelector('.holder').textContent.startsWith('You hold')")


def test_keys_take_the_boom_from_the_operator_and_a_closed_tab_stops_it(browser: Browser, default: RealNode) -> None:
    page = opened(browser, default, "/operator")
    page.wait("document.querySelector('.holder').textContent === 'The virtual operator drives.'")
    assert page.run("document.querySelector('.back').hidden")
    take(page)
    held(page)
    lift(page, default)
    page.screenshot("handover")
    assert complaints(page) == []
    sending, on = stops(default, page.close)
    assert on <= STALE + TICK
    assert sending <= BROWSER
    assert default.value(PARKING) == 1.0
    boom = default.value(BOOM)
    with default.watched(LEVER) as lever:
        wait_for(lambda: len(lever.look()) > 2000, "two seconds")
        assert (lever.look()[:, 1] == 0.0).all()  # nobody has asked the operator back
    assert abs(default.value(BOOM) - boom) < STILL


def test_it_is_given_back_by_a_press_and_not_before(browser: Browser, default: RealNode) -> None:
    page = opened(browser, default, "/operator")
    page.wait("!document.querySelector('.back').hidden")
    assert words(page).startswith("The controls are held by nobody")
    page.screenshot("nobody")
    page.click_on(".back")
    page.wait("document.querySelector('.holder').textContent === 'The virtual operator drives.'")
    wait_for(lambda: default.value(PARKING) == 0.0, "the operator to drive off", 120)
    page.close()
