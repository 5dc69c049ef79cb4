"""Signals, timing and health of a node that is made up."""

from __future__ import annotations

import itertools

import pytest
from browser import Browser, Page
from fake_node import FakeNode
from support import wait_for

pytestmark = [pytest.mark.web, pytest.mark.timeout(240)]


def go(page: Page, name: str) -> None:
    page.run(f"[...document.querySelectorAll('nav a')].find((a) => a.textContent === '{name}').click()")
    page.wait(f"location.pathname === '/{name.lower()}'")


def test_plots_get_every_sample_and_export_them(opened: Page, fake: FakeNode) -> None:
    go(opened, "Signals")
    opened.wait("document.querySelectorAll('.plot .u-over').length === 2")
    opened.run("window.blobs = []; const make = URL.createObjectURL; "
               "URL.createObjectURL = (blob) => { window.blobs.push(blob); return make(blob); }")  # fmt: skip
    opened.wait("hilnode.t > 4")
    opened.run("HTMLAnchorElement.prototype.click = () => {}")  # a download has no place to go to here
    opened.click_on(".csv")
    text = opened.run("window.blobs[0].text()")
    lines = text.strip().splitlines()
    assert lines[0].startswith("t [s],excavator.boom.angle")
    times = [float(line.split(",")[0]) for line in lines[1:]]
    steps = [b - a for a, b in itertools.pairwise(times)]
    assert len(times) > 60
    assert max(steps) < 1.5 / 60  # the toy's step: none is missing, however few pictures were drawn
    opened.wait("hilnode.t > 12")
    opened.screenshot("signals")


def test_a_signal_is_found_and_plotted_by_keyboard_and_dragged(opened: Page, fake: FakeNode) -> None:
    go(opened, "Signals")
    opened.fill(".tree-box input", "engine sp")
    assert len(opened.texts(".leaf")) == 1
    opened.run("document.querySelector('.leaf:not([hidden])').focus()")
    opened.key("Enter", "Enter", down=True)
    opened.wait("document.querySelector('.plot .legend').textContent.includes('engine.speed')")
    opened.run(
        """(() => {
          const [from, to] = [".leaf[data-signal='excavator.tilt.roll']", ".plot:nth-of-type(2)"];
          const dataTransfer = new DataTransfer();
          document.querySelector(from).dispatchEvent(new DragEvent("dragstart", {dataTransfer}));
          document.querySelector(to).dispatchEvent(new DragEvent("drop", {dataTransfer, cancelable: true}));
        })()"""
    )
    opened.wait("document.querySelectorAll('.plot')[1].textContent.includes('tilt.roll')")
    page, asked = fake.pages[0], {"excavator.engine.speed", "excavator.tilt.roll"}
    wait_for(lambda: asked <= set(page.watch), "both to be asked for")  # the word of it travels


def test_parameters_forces_and_refusals(opened: Page, fake: FakeNode) -> None:
    go(opened, "Signals")
    friction = "[aria-label='soil.friction']"
    opened.fill(friction, 7, "change")
    opened.wait("document.querySelectorAll('.parameter')[1].textContent.includes('outside 0.1 to 0.9 rad')")
    opened.fill(friction, 0.4, "change")
    opened.wait("document.querySelectorAll('.parameter')[1].querySelector('.refusal').textContent === ''")
    opened.run("document.querySelector('[data-signal=\"excavator.engine.speed\"]').focus()")
    opened.run("document.querySelector('.force input').value = 42")
    opened.click_on(".force .primary")
    opened.wait("hilnode.value('excavator.engine.speed') === 42")
    opened.wait("document.querySelector('[data-signal=\"excavator.engine.speed\"]').classList.contains('forced')")
    assert fake.forced == {"excavator.engine.speed": 42}
    opened.click_on(".force .row button:nth-of-type(2)")
    opened.wait("hilnode.value('excavator.engine.speed') > 100")
    assert fake.forced == {}


def test_timing_and_health(opened: Page, fake: FakeNode) -> None:
    go(opened, "Timing")
    opened.wait("[...document.querySelectorAll('.histogram .all')].some((bar) => bar.getAttribute('height') > 50)")
    opened.wait("document.querySelector('.overruns details') !== null")
    text = opened.run("document.querySelector('.overruns details').textContent")
    assert "work ended 112 us after the next deadline" in text
    assert "the plant is too slow here" in text
    assert (
        len(opened.run("[...document.querySelectorAll('.overruns details:first-of-type tbody tr')].map(() => 1)")) == 21
    )
    assert opened.run("document.querySelector('.overruns .here').textContent").endswith("141050481001.2overrun")
    stages = opened.texts(".budget tbody td:first-child")
    assert [s.strip() for s in stages] == ["wake", "inputs", "plant", "outputs", "free"]
    opened.screenshot("timing")
    go(opened, "Health")
    opened.wait("document.querySelectorAll('.driver').length === 4")
    assert "2 bytes too short" in opened.run("document.querySelector('.driver[data-state=degraded]').textContent")
    opened.wait("document.querySelectorAll('.log > div').length >= 5")
    opened.fill(".log-head input", "stability")
    shown = opened.texts(".log > div")
    assert shown
    assert all("stability" in line for line in shown)
    opened.screenshot("health")


def test_who_comes_late_sees_alarms_that_are_on(browser: Browser) -> None:
    with FakeNode() as fake:
        fake.alarms[7] = {"index": 7, "name": "bucket full", "value": 1.0}
        page = browser.open(fake.url + "/health")
        page.wait("document.querySelector('.health .alarm')?.textContent === 'alarm bucket full: value 1.000'", 60)
        fake.alarms.pop(7)
        page.wait("![...document.querySelectorAll('.health .alarm')].some((a) => a.textContent.includes('full'))")
        page.close()
