"""The real excavator in the page: it is seen to dig, it is found again whatever was started anew, and it is driven."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, Page
from real_node import RealNode, kill, real_node
from support import SHM, wait_for

pytestmark = [pytest.mark.web, pytest.mark.timeout(1200)]

BOOM, FILL, LEVER = "excavator.boom.angle", "excavator.bucket.fill", "excavator.right.y"
STALE = 0.2  # [s] of the config's levers
TICK = 0.001  # [s]
BROWSER = 0.5  # [s] that a browser may take to close a tab on a busy machine
GAMEPAD = """
  window.pad = {id: "Toy pad", connected: true, mapping: "standard", axes: [0, 0, 0, 0],
                buttons: Array.from({length: 17}, () => ({value: 0, pressed: false}))};
  navigator.getGamepads = () => [window.pad, null];
"""


def machine(folder: Path, config: str) -> Iterator[RealNode]:
    name = f"t{os.getpid()}-web-{config.partition('.')[0]}"
    with real_node(folder, name, config) as node:
        yield node
    for path in SHM.glob(f"hilnode.{name}*"):
        path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def digger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """What `hilnode run` starts."""
    yield from machine(tmp_path_factory.mktemp("digger"), "excavator.toml")


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """The one that is driven from the page."""
    yield from machine(tmp_path_factory.mktemp("driven"), "excavator-browser.toml")


def opened(browser: Browser, node: RealNode, path: str = "/", before: str = "") -> Page:
    page = browser.open(node.url + path, before=before)
    page.wait("window.hilnode?.frame > 2", 120)
    return page


def complaints(page: Page) -> list[str]:
    return page.console + page.run("window.hilnode.errors")


def strangers(page: Page, node: RealNode) -> list[str]:
    """Requests that went anywhere but to the server itself."""
    home = node.url.removeprefix("http")
    assert page.requests
    return [url for url in page.requests if not url.startswith(("http" + home, "ws" + home, "data:", "blob:"))]


def is_right(page: Page, node: RealNode) -> None:
    """With the plant stopped, what the page draws is what the node publishes: bodies, ground, soil in the bucket."""
    with node.paused():
        state = node.published()
        page.wait(f"hilnode.link.up && hilnode.tick > {state['tick']}", 120)
        page.wait(f"hilnode.frame > {page.run('hilnode.frame')} + 6", 120)  # signals come with every sixth frame
        drawn = page.run("hilnode.bodies")
        assert list(drawn) == list(state["bodies"])
        for body, pose in state["bodies"].items():
            np.testing.assert_allclose([*drawn[body]["p"], *drawn[body]["q"]], [*pose["p"], *pose["q"]], atol=1e-5)
        ground = node.ground()
        assert ground
        for grid, total in ground.items():
            assert page.run(f"hilnode.terrainSum('{grid}')") == pytest.approx(total, abs=1e-6), grid
        scaled = page.wait("hilnode.scaled.length && hilnode.scaled")
        fill = min(1.0, max(0.0, state["signals"][FILL]))
        assert [shape["signal"] for shape in scaled] == [FILL]
        assert scaled[0]["shown"] == (fill >= 0.01)
        if scaled[0]["shown"]:
            assert scaled[0]["scale"][2] == pytest.approx(fill, abs=1e-5)


def test_the_machine_digs_in_the_page(browser: Browser, digger: RealNode) -> None:
    page = opened(browser, digger)
    assert page.run("hilnode.hello.node") == digger.name
    ground, boom = page.run("hilnode.terrainSum('terrain')"), page.run("hilnode.bodies['excavator.boom']")
    page.wait(f"hilnode.value('{FILL}') > 0.4", 300)
    is_right(page, digger)
    page.screenshot("excavator")
    assert abs(page.run("hilnode.terrainSum('terrain')") - ground) > 1.0
    moved = page.run("hilnode.bodies['excavator.boom']")
    assert np.abs(np.subtract(moved["p"] + moved["q"], boom["p"] + boom["q"])).max() > 0.1
    assert page.run("hilnode.state") == "running"
    assert complaints(page) == []
    assert strangers(page, digger) == []
    page.close()


@pytest.fixture
def watching(browser: Browser, digger: RealNode) -> Iterator[Page]:
    page = opened(browser, digger)
    yield page
    assert page.run("window.hilnode.errors") == []  # its console has the browser's own words about closed lines
    page.close()


def test_a_reloaded_page_begins_anew(watching: Page, digger: RealNode) -> None:
    watching.run("window.old = true")
    watching.call("Page.reload")
    watching.wait("!window.old && window.hilnode?.frame > 2", 120)
    is_right(watching, digger)


@pytest.mark.parametrize("module", ["bridge.server", "bridge.web.server"])
def test_a_helper_that_was_killed_is_found_again(watching: Page, digger: RealNode, module: str) -> None:
    old = digger.helper(module)
    kill(old)
    wait_for(lambda: digger.helper(module) != old, "another process")
    last = digger.published()["tick"]
    watching.wait(f"hilnode.link.up && hilnode.tick > {last}", 120)
    is_right(watching, digger)


def test_a_node_that_was_started_anew_is_found_again(watching: Page, digger: RealNode) -> None:
    watching.run("hilnode.hello.old = true")
    before = watching.run("hilnode.tick")
    digger.stop()
    watching.wait("!hilnode.link.up")
    digger.start()
    watching.wait("!hilnode.hello.old && hilnode.link.up && hilnode.frame > 2", 120)
    assert watching.run("hilnode.tick") < before
    assert watching.run("hilnode.hello.node") == digger.name
    is_right(watching, digger)


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
    return float(live[-1, 0] - now), float(live[:, 2].max())


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
