"""The operator's place: keys, a gamepad and fingers become inputs of the cab, and only while somebody holds them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from browser import Browser, Page
from fake_node import FakeNode
from toy_machine import CHANNELS

pytestmark = [pytest.mark.web, pytest.mark.timeout(240)]

NAMES = list(CHANNELS)
GAMEPAD = """
  window.pad = {id: "Toy pad", connected: true, mapping: "standard", axes: [0, 0, 0, 0],
                buttons: Array.from({length: 17}, () => ({value: 0, pressed: false}))};
  navigator.getGamepads = () => [window.pad, null];
"""


@pytest.fixture
def driving(browser: Browser, fake: FakeNode) -> Iterator[Page]:
    """The operator's page with the controls taken."""
    page = browser.open(fake.url + "/operator", before=GAMEPAD)
    page.wait("window.hilnode?.frame > 1", 60)
    page.wait("!document.querySelector('.take').disabled")
    assert fake.cab == []  # nothing is sent before somebody takes the controls
    page.click_on(".take")
    until(lambda: fake.cab and fake.cab[-1][1] is not None)
    yield page
    problems = page.console + page.run("window.hilnode.errors")
    page.close()
    assert problems == []


def until(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.02)


def value(fake: FakeNode, name: str) -> float:
    """What was sent last for a channel; NaN if the controls were let go."""
    message = fake.cab[-1][1]
    return message["values"][NAMES.index(name)] if message else float("nan")


def test_keys_move_levers_and_come_back(driving: Page, fake: FakeNode) -> None:
    assert value(fake, "throttle") == 0.4  # what stays has its default
    driving.key("i", "KeyI", down=True)
    until(lambda: value(fake, "right.y") == 1.0)
    driving.key("i", "KeyI", down=False)
    until(lambda: value(fake, "right.y") == 0.0)
    driving.key("ArrowDown", "ArrowDown", down=True)
    driving.key(" ", "Space", down=True)
    until(lambda: value(fake, "drive") == -1.0 and value(fake, "brake") == 1.0)
    numbers = [message["seq"] for _, message in fake.cab if message]
    assert numbers == sorted(set(numbers))


def test_a_gamepad_moves_both_sticks(driving: Page, fake: FakeNode) -> None:
    driving.run("window.pad.axes = [-1, 0, 0.04, -1]; window.pad.buttons[7].value = 0.5")
    until(lambda: value(fake, "right.y") == 1.0)
    assert value(fake, "left.x") == -1.0
    assert value(fake, "right.x") == 0.0  # within the dead zone
    assert value(fake, "drive") == 0.5
    lifted = fake.machine.boom_drive
    until(lambda: fake.machine.boom_drive < lifted - 0.02)  # pushed away: the boom goes down


def test_fingers_move_the_stick_on_the_screen(driving: Page, fake: FakeNode) -> None:
    x, y = driving.middle(".stick svg")
    driving.mouse("mousePressed", x, y, 1)
    driving.mouse("mouseMoved", x + 200, y, 1)
    until(lambda: value(fake, "left.x") == 1.0)
    driving.screenshot("operator")
    driving.mouse("mouseReleased", x + 200, y)
    until(lambda: value(fake, "left.x") == 0.0)


def test_losing_the_focus_lets_go(driving: Page, fake: FakeNode) -> None:
    driving.key("i", "KeyI", down=True)
    until(lambda: value(fake, "right.y") == 1.0)
    driving.run("window.dispatchEvent(new Event('blur'))")
    until(lambda: fake.cab[-1][1] is None)
    count = len(fake.cab)
    time.sleep(0.5)
    assert len(fake.cab) == count  # not one more, though the key is still down
    assert driving.run("document.querySelector('.take').textContent") == "Take the controls"
    assert driving.run("document.querySelectorAll('.stick .knob')[1].getAttribute('cy')") in ("0", "-0")


def test_a_closed_tab_and_another_page_let_go(browser: Browser, driving: Page, fake: FakeNode) -> None:
    driving.run("document.querySelector('nav a').click()")
    until(lambda: fake.cab[-1][1] is None)
    page = browser.open(fake.url + "/operator")
    page.wait("window.hilnode?.frame > 1 && !document.querySelector('.take').disabled", 60)
    page.click_on(".take")
    until(lambda: fake.cab[-1][1] is not None)
    page.close()
    time.sleep(0.3)
    count = len(fake.cab)
    time.sleep(0.5)
    assert len(fake.cab) == count


def test_a_gamepad_of_another_layout_is_not_used(driving: Page, fake: FakeNode) -> None:
    """A throttle axis that rests at -1 would be a stick at its end."""
    driving.run("window.pad.mapping = ''; window.pad.axes = [-1, -1, -1, -1]; window.pad.id = 'Throttle'")
    driving.wait("document.querySelector('.who').textContent.includes('Throttle (not used')")
    time.sleep(0.3)
    sticks = [value(fake, name) for name in ("left.x", "left.y", "right.x", "right.y")]
    assert sticks == [0.0, 0.0, 0.0, 0.0]


def test_a_page_that_was_thrown_out_lets_go_until_the_controls_are_taken_again(driving: Page, fake: FakeNode) -> None:
    driving.wait("document.querySelector('.holder').textContent.startsWith('You hold')")
    driving.key("i", "KeyI", down=True)
    until(lambda: value(fake, "right.y") == 1.0)
    fake.throw_out()
    driving.wait("!document.querySelector('.operator').classList.contains('driving')")
    until(lambda: fake.cab[-1][1] is None)
    count = len(fake.cab)
    time.sleep(0.5)
    assert len(fake.cab) == count
    driving.click_on(".take")
    until(lambda: fake.held and fake.cab[-1][1] is not None)


def test_a_server_that_says_nothing_lets_go(driving: Page, fake: FakeNode) -> None:
    driving.wait("document.querySelector('.holder').textContent.startsWith('You hold')")
    fake.silent = True
    driving.wait("!document.querySelector('.operator').classList.contains('driving')", 10)
    assert "no word from the server" in driving.run("document.querySelector('.toasts').textContent")
    fake.silent = False


def test_a_lost_line_lets_go(driving: Page, fake: FakeNode) -> None:
    fake.hang_up()
    driving.wait("!document.querySelector('.operator').classList.contains('driving')")
    driving.wait("hilnode.link.up && hilnode.frame > 1")
    count = len(fake.cab)
    time.sleep(0.5)
    assert len(fake.cab) == count  # the line is back, but nobody has taken the controls again
    driving.console.clear()  # the browser itself complains about the closed line
