"""The real excavator driven from the page: keys and a gamepad move it, and it stops when nobody holds the controls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from browser import Browser, Page
from real_node import RealNode, complaints, opened, real_node, strangers
from support import wait_for

pytestmark = [pytest.mark.web, pytest.mark.timeout(1200)]

BOOM, LEVER = "excavator.boom.angle", "excavator.right.y"
LOW = 0.5  # [rad] of the boom, with way to go up and down
STALE = 0.2  # [s] of the config's levers
TICK = 0.001  # [s]
BROWSER = 0.5  # [s] that a browser may take to close a tab on a busy machine
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
    page.wait("!document.querySelector('.take').disabled")
    page.click_on(".take")
    page.wait("document.querySelector('.operator').classList.contains('driving')")
    yield page
    page.close()


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
    """How long the lever goes on after something was done [s], and how old its value was at the most."""
    with node.watched(LEVER) as lever:
        lever.until(-1.0)
        now = time.monotonic()
        act()
        lever.until(0.0)
        time.sleep(0.5)
        rows = lever.look()
    live = rows[rows[:, 1] != 0.0]
    assert rows[-1, 1] == 0.0
    late, age = float(live[-1, 0] - now), float(live[:, 2].max())
    print(f"went on for {1e3 * late:.0f} ms, the oldest value that was used was {1e3 * age:.1f} ms old")
    return late, age


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
    late, age = stops(driven, lambda: driving.run("window.dispatchEvent(new Event('blur'))"))
    assert age <= STALE + TICK
    assert late <= STALE + TICK + BROWSER
    driving.wait("document.querySelector('.take').textContent === 'Take the controls'")


def test_closing_the_tab_stops_the_boom(browser: Browser, driven: RealNode) -> None:
    page = opened(browser, driven, "/operator")
    page.wait("!document.querySelector('.take').disabled")
    page.click_on(".take")
    lift(page, driven)
    late, age = stops(driven, page.close)
    assert age <= STALE + TICK
    assert late <= STALE + TICK + BROWSER
    boom = driven.value(BOOM)
    time.sleep(1.0)
    assert abs(driven.value(BOOM) - boom) < 0.02
