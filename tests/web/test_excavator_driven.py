"""The real excavator driven from the page: keys and a gamepad move it, and it stops when nobody holds the controls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from browser import Browser, Page
from real_node import RealNode, complaints, opened, real_node, strangers
from stuck_line import StuckLine
from support import wait_for

pytestmark = [pytest.mark.web, pytest.mark.timeout(1200)]

BOOM, LEVER = "excavator.boom.angle", "excavator.right.y"
LOW = 0.5  # [rad] of the boom, with way to go up and down
STALE = 0.2  # [s] of the config's levers
TICK = 0.001  # [s]
BROWSER = 0.5  # [s] that a browser may go on sending: it takes so long to close a tab on a busy machine
GAMEPAD = """
  window.pad = {id: "Toy pad", connected: true, mapping: "standard", axes: [0, 0, 0, 0],
                buttons: Array.from({length: 17}, () => ({value: 0, pressed: false}))};
  navigator.getGamepads = () => [window.pad, null];
"""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """The machine that is driven from the page."""
    with real_node(tmp_path_factory.mktemp("driven"), "excavator-browser.toml") as node:
        yield node


@pytest.fixture
def driving(browser: Browser, driven: RealNode) -> Iterator[Page]:
    """The operator's page with the controls taken."""
    page = opened(browser, driven, "/operator", GAMEPAD)
    take(page)
    yield page
    page.close()


def take(page: Page) -> None:
    page.wait("!document.querySelector('.take').disabled")
    page.click_on(".take")
    page.wait("document.querySelector('.operator').classList.contains('driving')")


def lift(page: Page, node: RealNode) -> None:
    """Pull the right stick with its key until the boom has gone up; the key stays down."""
    page.key("i", "KeyI", down=True)  # first away from the end of its way
    wait_for(lambda: node.value(BOOM) < LOW, "the boom to sink")
    page.key("i", "KeyI", down=False)
    wait_for(lambda: node.value(LEVER) == 0.0, "the lever in its middle")
    before = node.value(BOOM)
    page.key("k", "KeyK", down=True)
    wait_for(lambda: node.value(BOOM) > before + 0.02, "the boom to rise")


def stops(node: RealNode, act: Callable[[], object]) -> tuple[float, float]:
    """How long after something was done the node still got inputs, and how long the lever went on after that [s]."""
    with node.watched(LEVER) as lever:
        lever.until(-1.0)
        now = time.monotonic()
        act()
        lever.until(0.0)
        time.sleep(0.5)
        rows = lever.look()
    live = rows[rows[:, 1] != 0.0]
    assert rows[-1, 1] == 0.0
    last = float((live[:, 0] - live[:, 2]).max())  # when the last input came that was used
    sending, on = last - now, float(live[-1, 0]) - last
    print(f"inputs came for {1e3 * sending:.0f} ms, and the lever went on for {1e3 * on:.1f} ms after the last of them")
    return sending, on


def test_keys_and_a_gamepad_lift_the_boom(driving: Page, driven: RealNode) -> None:
    lift(driving, driven)
    driving.screenshot("driving")
    driving.key("k", "KeyK", down=False)
    wait_for(lambda: driven.value(LEVER) == 0.0, "the lever in its middle")
    time.sleep(1.0)
    before = driven.value(BOOM)
    driving.run("window.pad.axes = [0, 0, 0, -1]")  # pushed away
    wait_for(lambda: driven.value(BOOM) < before - 0.02, "the boom to sink")
    driving.run("window.pad.axes = [0, 0, 0, 1]")
    before = driven.value(BOOM)
    wait_for(lambda: driven.value(BOOM) > before + 0.02, "the boom to rise")
    driving.run("window.pad.axes = [0, 0, 0, 0]")
    wait_for(lambda: driven.value(LEVER) == 0.0, "the lever in its middle")
    assert complaints(driving) == []
    assert strangers(driving, driven) == []


def test_losing_the_focus_stops_the_boom(driving: Page, driven: RealNode) -> None:
    lift(driving, driven)
    sending, on = stops(driven, lambda: driving.run("window.dispatchEvent(new Event('blur'))"))
    assert on <= STALE + TICK
    assert sending <= BROWSER
    driving.wait("document.querySelector('.take').textContent === 'Take the controls'")


def test_closing_the_tab_stops_the_boom(browser: Browser, driven: RealNode) -> None:
    page = opened(browser, driven, "/operator")
    take(page)
    lift(page, driven)
    sending, on = stops(driven, page.close)
    assert on <= STALE + TICK
    assert sending <= BROWSER
    boom = driven.value(BOOM)
    time.sleep(1.0)
    assert abs(driven.value(BOOM) - boom) < 0.02


def test_a_line_that_is_stuck_stops_the_boom_until_somebody_takes_the_controls_again(
    browser: Browser, driven: RealNode
) -> None:
    """Nothing is closed and nothing is lost: what was held up arrives later, all at once, and moves nothing."""
    with StuckLine(driven.url) as line:
        page = browser.open(f"{line.url}/operator")
        page.wait("window.hilnode?.frame > 2", 120)
        take(page)
        lift(page, driven)
        _, on = stops(driven, line.hold)
        assert on <= STALE + TICK
        page.wait("!document.querySelector('.operator').classList.contains('driving')", 10)
        with driven.watched(LEVER) as lever:
            line.let_go()
            page.wait("document.querySelector('.holder').textContent.includes('nobody')")
            time.sleep(1.0)
            rows = lever.look()
        assert len(rows) > 500
        assert (rows[:, 1] == 0.0).all()  # though the key is still down
        page.key("k", "KeyK", down=False)
        take(page)
        lift(page, driven)
        page.close()
