"""The viewer against a node that is made up: what is drawn is what was published."""

from __future__ import annotations

import base64
import json
import time

import numpy as np
import pytest
from browser import Browser, Page
from fake_node import FakeNode
from support import wait_for
from toy_machine import BODIES, BUCKET, PROPS, ToyMachine

pytestmark = [pytest.mark.web, pytest.mark.timeout(240)]


def stand_still(page: Page, fake: FakeNode) -> None:
    """Pause the machine and wait until a state of after that is drawn."""
    fake.paused = True
    page.wait(f"hilnode.tick === {fake.tick} && hilnode.frame > {fake.pages[0].frame}")


def heights(page: Page, grid: str) -> np.ndarray:
    """What the page has of the ground [0.1 mm]."""
    return np.frombuffer(base64.b64decode(page.run(f"hilnode.terrainUnits('{grid}')")), "<i4")


def test_the_scene_is_the_published_state(opened: Page, fake: FakeNode) -> None:
    before = opened.run("hilnode.bodies")
    opened.wait("hilnode.t > 2")
    stand_still(opened, fake)
    drawn = opened.run("hilnode.bodies")
    assert list(drawn) == list(BODIES)
    for pose, name in zip(fake.machine.poses, BODIES, strict=True):
        np.testing.assert_allclose([*drawn[name]["p"], *drawn[name]["q"]], pose, atol=1e-6)
    assert drawn[BUCKET] != before[BUCKET]
    props = opened.run("hilnode.props")
    assert list(props) == list(PROPS)
    np.testing.assert_allclose(props[PROPS[3]]["p"], fake.machine.props()[3][:3], atol=1e-6)
    opened.screenshot("viewer")


def test_ground_is_dug_as_published(opened: Page, fake: FakeNode) -> None:
    whole = ToyMachine().heights.sum()
    opened.wait("hilnode.t > 9")
    stand_still(opened, fake)
    published = np.rint(fake.machine.heights * 1e4).astype(int).sum() * 1e-4
    assert opened.run("hilnode.terrainSum('yard')") == pytest.approx(published, abs=1e-6)
    assert (heights(opened, "yard") == np.rint(fake.machine.heights * 1e4).ravel()).all()
    assert published < whole - 0.5


def test_every_state_is_acknowledged_and_none_piles_up(opened: Page, fake: FakeNode) -> None:
    page = fake.pages[0]
    acks = page.acks
    opened.wait(f"hilnode.frame > {page.frame + 5}")
    assert page.acks > acks
    assert page.frame - page.acked <= 2
    assert max(opened.run("hilnode.ages.slice(-5)")) < 30.0


def test_everything_comes_from_the_server_itself(opened: Page, fake: FakeNode) -> None:
    home = fake.url.removeprefix("http")
    assert opened.requests
    strangers = [url for url in opened.requests if not url.startswith(("http" + home, "ws" + home, "data:", "blob:"))]
    assert strangers == []


def test_a_restarted_node_and_a_lost_line_are_got_over(opened: Page, fake: FakeNode) -> None:
    opened.wait("hilnode.t > 3")
    fake.restart()
    opened.wait("hilnode.frame > 2 && hilnode.t < 3")
    fake.hang_up()
    opened.wait("!hilnode.link.up")
    opened.wait("hilnode.link.up && hilnode.frame > 2")
    stand_still(opened, fake)
    np.testing.assert_allclose(opened.run(f"hilnode.bodies['{BUCKET}'].p"), fake.machine.poses[-1, :3], atol=1e-6)
    opened.console.clear()  # the browser itself complains about the closed line


def test_a_click_on_a_part_shows_its_card(opened: Page, fake: FakeNode) -> None:
    stand_still(opened, fake)
    place = opened.run(
        """(() => {
          for (let y = 120; y < 640; y += 12) for (let x = 60; x < 1220; x += 12)
            if (hilnode.pickAt(x, y) === 'excavator.boom') return [x, y];
        })()"""
    )
    opened.click(*place)
    opened.wait("hilnode.picked === 'excavator.boom'")
    opened.wait("/[0-9]/.test(document.querySelector('.card .own').textContent)")
    text = opened.run("document.querySelector('.card').innerText")
    assert "excavator.boom" in text
    assert "boom_pin.pull" in text  # the joint that holds it
    assert "stick_pin.pull" in text  # and the one that it holds
    assert "bucket_pin" not in text
    opened.screenshot("picked")
    opened.key("Escape", "Escape", down=True)
    opened.wait("document.querySelector('.card').hidden")


def test_time_controls_ask_the_node(opened: Page, fake: FakeNode) -> None:
    opened.click_on(".timebar button[aria-label^=Pause]")
    opened.wait("document.querySelector('.chip.state').textContent === 'paused'")
    before = fake.machine.t
    opened.click_on(".timebar button[aria-label^=Single]")
    opened.wait(f"hilnode.t > {before}")
    opened.fill("select[aria-label=speed]", "0.25", "change")
    opened.click_on(".timebar button[aria-label^=Pause]")
    opened.wait("document.querySelector('.chip.state').textContent === 'running'")
    assert fake.speed == 0.25
    assert [op["op"] for op in fake.ops if op["op"] != "status"] == ["pause", "step", "speed", "resume"]


def test_who_may_only_watch_is_told_why(browser: Browser) -> None:
    with FakeNode(role="watch") as fake:
        page = browser.open(fake.url + "/operator")
        page.wait("window.hilnode?.frame > 1", 60)
        page.wait("document.querySelector('.take').disabled")
        assert "needs the role" in page.run("document.querySelector('.take').title")
        page.close()


def test_a_recording_can_be_scrubbed_and_played_backwards(browser: Browser) -> None:
    with FakeNode(replay=True) as fake:
        page = browser.open(fake.url + "/")
        page.wait("window.hilnode?.frame > 1 && document.querySelector('.scrub').max > 100", 60)
        page.click_on(".timebar button[aria-label='Play backwards']")
        page.wait("document.querySelector('.timebar button.active') !== null")
        assert fake.speed == -1.0
        page.fill(".scrub", 30)
        page.wait("hilnode.t > 25")
        assert {k: v for k, v in fake.ops[-1].items() if k != "id"} == {"op": "seek", "to": 30}
        page.screenshot("replay")
        page.close()


def test_a_reload_while_it_plays_backwards_keeps_the_speed(browser: Browser) -> None:
    with FakeNode(replay=True) as fake:
        fake.speed = -0.5
        page = browser.open(fake.url + "/")
        page.wait("window.hilnode?.frame > 1 && document.querySelector('.scrub').max > 100", 60)
        page.wait("document.querySelector('select[aria-label=speed]').value === '0.5'")
        page.click_on(".timebar button[aria-label^=Pause]")
        page.wait("document.querySelector('.timebar button[aria-label^=Pause]').textContent === '▶'")
        page.click_on(".timebar button[aria-label^=Pause]")
        page.wait("document.querySelector('.timebar button[aria-label^=Pause]').textContent !== '▶'")
        assert fake.speed == 0.5
        page.close()


def test_without_webgl_a_sentence_stands_there_and_the_rest_works(browser: Browser) -> None:
    with FakeNode() as fake:
        none = "const get = HTMLCanvasElement.prototype.getContext; HTMLCanvasElement.prototype.getContext = "
        none += "function (kind, ...more) { return /webgl/.test(kind) ? null : get.call(this, kind, ...more); };"
        page = browser.open(fake.url + "/", before=none)
        page.wait("window.hilnode?.frame > 2", 60)  # states are taken and acknowledged
        assert "WebGL is switched off or missing" in page.run("document.querySelector('.stage').textContent")
        page.screenshot("without-webgl")
        page.run("document.querySelector('nav a[href=\"/signals\"]').click()")
        page.wait("document.querySelectorAll('.plot .u-over').length === 2")
        page.run("document.querySelector('nav a[href=\"/timing\"]').click()")
        page.wait("[...document.querySelectorAll('.histogram .all')].some((bar) => bar.getAttribute('height') > 50)")
        page.run("document.querySelector('nav a[href=\"/operator\"]').click()")
        page.wait("!document.querySelector('.take').disabled")
        page.click_on(".take")
        page.key("i", "KeyI", down=True)
        before = fake.machine.boom_drive
        wait_for(lambda: fake.machine.boom_drive < before - 0.02, "the boom to sink")
        assert page.run("hilnode.errors") == []
        page.close()


def test_the_age_counts_the_way_here(opened: Page, fake: FakeNode) -> None:
    """What the page says is what the clock of this process says, which is the server's and the browser's PC's."""
    opened.wait("hilnode.clockError < 0.25")
    opened.wait("hilnode.pictures.length > 5")
    at, age = opened.run("hilnode.pictures.at(-1)")
    now, error = opened.run("[performance.now(), hilnode.clockError]")
    shown = time.monotonic() - (now - at) / 1e3 - age  # when that state was made, by our clock
    assert 0.0 < age < 30.0
    assert abs(shown - made_before(fake, shown)) < 0.25 + error


def made_before(fake: FakeNode, moment: float) -> float:
    """When the state was made that was the newest at a moment."""
    return max((made for made in fake.made if made <= moment + 0.02), default=0.0)


def test_a_token_is_asked_for_and_used(browser: Browser) -> None:
    with FakeNode(token="sesame") as fake:
        page = browser.open(fake.url + "/")
        page.wait("document.querySelector('dialog')?.open", 60)
        page.fill("dialog input", "sesame")
        page.click_on("dialog button")
        page.wait("window.hilnode?.frame > 1", 60)
        page.close()
        page = browser.open(fake.url + "/timing#token=sesame")
        page.wait("window.hilnode?.frame > 1", 60)
        assert json.dumps("sesame") not in json.dumps(fake.requests)
        page.close()
        time.sleep(0.1)
