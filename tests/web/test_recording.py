"""A real recording in the page, served as its reader is told to: scrubbed, played backwards, reloaded meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, Page
from real_node import drawn_ground, ground_at
from support import HILNODE, environment, free_port, started, wait_for

from bridge import Node

pytestmark = [pytest.mark.web, pytest.mark.timeout(600)]

SECONDS = 8
CONFIG = """
plant.kind = "digging_plant:create"
log.timing = false
web.enabled = false
safety.watchdog = false
node.max_overruns = 0
"""
SPEED = "document.querySelector('select[aria-label=speed]').value"
PLAY = ".timebar button[aria-label^=Pause]"


@dataclass
class Replay:
    commands: str
    url: str

    def stands(self) -> tuple[float, int]:
        """Where it stands [s of the recording], and the tick that was sent last."""
        with Node(self.commands) as node:
            status = node.ask("status")
            return float(status["time"]), int(status["tick"])


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    folder = tmp_path_factory.mktemp("recording")
    (folder / "dig.toml").write_text(CONFIG)
    command = [*HILNODE, "run", "dig.toml", "--for", f"{SECONDS}", "--record", "--quiet", "--out", "run"]
    for key in ("publish", "commands", "ecu"):
        command += ["--set", f"bridge.{key}=tcp://127.0.0.1:{free_port()}"]
    subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True, timeout=300)
    assert (Path(folder) / "run" / "rows.mcap").exists()
    publish, commands = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    url = f"http://127.0.0.1:{free_port()}"
    play = [*HILNODE, "replay", str(folder / "run"), "--stay", "--publish", publish, "--commands", commands]
    with started(play), started([*HILNODE, "view", commands, "--listen", url, "--role", "operate"]) as view:
        assert view.stdout is not None
        assert url in view.stdout.readline()
        yield Replay(commands, url)


@pytest.fixture
def page(browser: Browser, replay: Replay) -> Iterator[Page]:
    with Node(replay.commands) as node:
        node.ask("seek", to=0.0)
        node.ask("play")  # one that stands sends nothing that a page could begin with
    page = browser.open(replay.url + "/")
    page.wait(f"window.hilnode?.frame > 1 && document.querySelector('.scrub').max > {SECONDS - 1}", 120)
    yield page
    assert page.run("hilnode.errors") == []
    page.close()


def go_to(page: Page, replay: Replay, t: float) -> np.ndarray:
    """Stand at a moment; the ground that is drawn there, which is the one that others are told."""
    if page.run(f"document.querySelector('{PLAY}').textContent !== '▶'"):
        page.click_on(PLAY)
        page.wait(f"document.querySelector('{PLAY}').textContent === '▶'")
    page.fill(".scrub", t)
    page.fill(".scrub", t, "change")
    wait_for(lambda: abs(replay.stands()[0] - t) < 0.01, f"the moment {t:g} s")
    page.wait(f"hilnode.tick === {replay.stands()[1]}")
    time.sleep(1.0)  # the ground follows the rows a moment later
    told = ground_at(replay.commands)["ground"].ravel()
    until_same(page, told)
    return told


def until_same(page: Page, told: np.ndarray) -> None:
    for _ in range(100):
        if np.array_equal(drawn_ground(page, "ground"), told):
            return
    np.testing.assert_array_equal(drawn_ground(page, "ground"), told)


def test_a_recording_is_scrubbed_and_its_ground_is_that_of_the_moment(page: Page, replay: Replay) -> None:
    early = go_to(page, replay, 2.0)
    late = go_to(page, replay, 6.0)
    assert (early != late).any()
    go_to(page, replay, 2.0)
    wait_for(lambda: np.array_equal(ground_at(replay.commands)["ground"].ravel(), early), "the ground of before")
    until_same(page, early)
    page.screenshot("recording")


def test_a_recording_plays_backwards_also_over_a_reload(page: Page, replay: Replay) -> None:
    go_to(page, replay, 6.0)
    page.fill("select[aria-label=speed]", "0.5", "change")
    page.click_on(".timebar button[aria-label='Play backwards']")
    before = page.run("hilnode.t")
    page.wait(f"hilnode.t < {before} - 0.3")
    page.run("window.old = true")
    page.call("Page.reload")
    page.wait("!window.old && window.hilnode?.frame > 1", 120)
    page.wait(f"{SPEED} === '0.5'")
    page.wait("document.querySelector(\".timebar button[aria-label='Play backwards']\").classList.contains('active')")
    before = page.run("hilnode.t")
    page.wait(f"hilnode.t < {before} || hilnode.t === 0")
    page.click_on(PLAY)  # stands
    page.wait(f"document.querySelector('{PLAY}').textContent === '▶'")
    before = page.run("hilnode.t")
    page.click_on(PLAY)  # and goes forwards
    page.wait(f"hilnode.t > {before} + 0.2")
    assert page.run(SPEED) == "0.5"
