"""The real excavator in the page: it is seen to dig, and it is found again whatever was started anew."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from browser import Browser, Page
from real_node import RealNode, complaints, drawn_ground, kill, opened, real_node, strangers
from support import wait_for

pytestmark = [pytest.mark.web, pytest.mark.timeout(1200)]

FILL = "excavator.bucket.fill"


@pytest.fixture(scope="module")
def digger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """What `hilnode run` starts."""
    with real_node(tmp_path_factory.mktemp("digger"), "excavator.toml") as node:
        yield node


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
        for grid, heights in ground.items():
            np.testing.assert_array_equal(drawn_ground(page, grid), heights.ravel(), grid)
        scaled = page.wait("hilnode.scaled.length && hilnode.scaled")
        fill = min(1.0, max(0.0, state["signals"][FILL]))
        assert [shape["signal"] for shape in scaled] == [FILL]
        assert scaled[0]["shown"] == (fill >= 0.01)
        if scaled[0]["shown"]:
            assert scaled[0]["scale"][2] == pytest.approx(fill, abs=1e-5)


def test_the_machine_digs_in_the_page(browser: Browser, digger: RealNode) -> None:
    page = opened(browser, digger)
    assert page.run("hilnode.hello.node") == digger.name
    ground, boom = page.run("hilnode.terrainSum('terrain')"), page.run("hilnode.bodies['excavator.boom'].p")
    page.wait(f"Math.abs(hilnode.terrainSum('terrain') - {ground}) > 1", 300)
    page.wait(f"hilnode.bodies['excavator.boom'].p.some((x, k) => Math.abs(x - {boom}[k]) > 0.1)", 300)
    page.wait(f"hilnode.value('{FILL}') > 0.4", 300)
    is_right(page, digger)
    page.screenshot("excavator")
    assert page.run("hilnode.state") == "running"
    assert complaints(page) == []
    assert strangers(page, digger) == []
    page.close()


def test_joints_and_their_forces_are_those_of_the_machine(browser: Browser, digger: RealNode) -> None:
    """The card of the boom has the forces of both its joints, and they are the published ones."""
    page = opened(browser, digger)
    joints = page.run("hilnode.joints")
    assert {"body": "excavator.uppercarriage", "body_b": "excavator.boom"}.items() <= joints[
        "excavator.boom_pin"
    ].items()
    assert joints["excavator.stick_pin"]["body_b"] == "excavator.stick"
    with digger.paused():
        told = digger.published()["signals"]["excavator.boom_pin.pull"]
        page.wait(f"Math.abs(hilnode.value('excavator.boom_pin.pull') - {told}) < 1e-3 * {told}", 120)
        assert told > 1e4  # it holds some tons
        page.run("hilnode.pick('excavator.boom')")
        page.wait("/pull/.test(document.querySelector('.card .own').textContent)")
        text = page.run("document.querySelector('.card .own').textContent")
        assert "excavator.boom_pin.pull" in text
        assert "excavator.stick_pin.pull" in text
        assert "excavator.swing.pull" not in text
        page.screenshot("joints")
    page.close()


def test_an_overrun_comes_with_its_black_box(browser: Browser, digger: RealNode) -> None:
    """Stopped for a moment, the machine is late, and the page says why."""
    page = opened(browser, digger, "/timing")
    os.kill(digger.pid, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(digger.pid, signal.SIGCONT)
    page.wait("[...document.querySelectorAll('.overruns .box')].some((b) => /took|woke/.test(b.textContent))", 30)
    rows = page.run("document.querySelector('.overruns .box:has(.here)').querySelectorAll('tbody tr').length")
    assert rows > 10
    stages = [text.strip() for text in page.texts(".budget tbody td:first-child")]
    assert stages == ["wake", "inputs", "plant", "outputs", "free"]
    page.screenshot("overrun")
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


@pytest.mark.parametrize("module", ["bridge.publish.server", "bridge.web.server"])
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
    watching.wait(f"!hilnode.hello.old && hilnode.link.up && hilnode.tick < {before}", 120)  # a picture of the new one
    assert watching.run("hilnode.hello.node") == digger.name
    is_right(watching, digger)
