"""The stream as a page gets it, from a node that digs."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from digging_plant import NX, NY, heights_after
from support import wait_for
from web_node import STALE_MS, Digger, digging, opened
from web_page import FakePage, placeholder, served
from websockets.exceptions import InvalidStatus

from bridge.protocol.operations import Role
from bridge.protocol.terrain import UNIT, units_of
from bridge.web.page import MOST_NONSENSE

TOKEN = "correct-horse-battery"
PAUSED = 16
ALARM = '[[safety.alarms]]\nname = "stick far out"\nsignal = "dig.stick"\nabove = 0.5\n'
NONSENSE = (
    *("", "{", "[]", "{}", b"\x00\x01\x02"),
    *('{"ack": "1"}', '{"ack": 1e99}', '{"ack": -1}', '{"ack": 4000000000}'),
    *('{"watch": 1}', '{"watch": ["x", 1]}', '{"op": 7, "id": 1}', '{"op": "pause"}', '{"op": "pause", "id": [1]}'),
    *('{"clock": "noon"}', '{"clock": null}', '{"cab": "give"}', '{"cab": {"seq": 0, "values": [NaN, 0]}}'),
    *('{"cab": {"seq": 0, "values": [0]}}', '{"cab": 5}'),
)


@pytest.fixture(scope="module")
def digger(tmp_path_factory) -> Iterator[Digger]:
    with digging(tmp_path_factory.mktemp("dig"), "stream", more=ALARM) as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> Path:
    return placeholder(tmp_path_factory.mktemp("static") / "page")


@pytest.fixture
def page(digger) -> Iterator[FakePage]:
    digger.start()
    with opened(digger.address) as made:
        yield made


@contextlib.contextmanager
def paused(digger: Digger) -> Iterator[int]:
    """The plant stands still: how many steps it has made."""
    digger.node.ask("pause")
    try:
        yield int(digger.node.ask("steps"))
    finally:
        digger.node.ask("resume")


def test_hello_says_all_that_a_page_needs(page, digger):
    hello = page.hello
    assert (hello["protocol"], hello["node"], hello["role"], hello["replay"]) == (1, digger.name, "operate", False)
    assert hello["dt"] == pytest.approx(1e-3)
    assert hello["bodies"] == ["bucket"]
    names = [s["name"] for s in hello["signals"]]
    assert names[:5] == ["dig.lift", "dig.stick", "dig.height", "dig.count", "dig.held"]
    assert {s["group"] for s in hello["signals"]} == {"input", "output"}
    (parameter,) = hello["parameters"]
    assert (parameter["name"], parameter["value"], parameter["unit"]) == ("dig.deeper", 0.0, "m")
    (grid,) = hello["grids"]
    assert (grid["name"], grid["nx"], grid["ny"], grid["tile"]) == ("ground", NX, NY, 16)
    assert (grid["corner"], grid["spacing"]) == ([-3.0, -2.0, 0.5], [0.1, 0.1])
    assert hello["props"] == [f"stone{k}" for k in range(5)]
    assert [c["name"] for c in hello["cab"]["channels"]] == ["lift", "stick"]
    assert hello["cab"]["channels"][0] | {"doc": ""} == {
        **{"name": "lift", "unit": "m/s", "low": -10.0, "high": 10.0, "default": 0.0, "doc": ""}
    }
    assert hello["stale_ms"] == STALE_MS
    assert len(hello["timing"]["edges_us"]) == 31
    shapes = page.until(lambda: page.last("scene"), "the scene")["shapes"]
    assert [s["body"] for s in shapes] == ["bucket", *hello["props"]]
    assert page.last("link") == {"type": "link", "up": True, "why": ""}
    page.until(lambda: page.last("cab") == {"type": "cab", "holder": "nobody", "why": ""}, "the cab's state")


def test_a_frame_is_the_published_state_of_its_tick(page, digger):
    raw = {}
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.subscribe(b"state")
    socket.connect(digger.publish)
    try:
        digger.node.ask("force", "dig.lift", 0.25)
        compared = 0

        def enough() -> bool:
            nonlocal compared
            while socket.poll(0):
                message = msgpack.unpackb(socket.recv_multipart()[1])
                raw[message["tick"]] = message
            for shown in page.states:
                told = raw.get(shown["tick"])
                if told is None or not told["signals"]["dig.lift"]:
                    continue
                bucket = told["bodies"]["bucket"]
                assert shown["poses"][0].tolist() == np.float32([*bucket["p"], *bucket["q"]]).tolist()
                assert shown["t"] == pytest.approx(told["t"], abs=1e-12)
                assert shown["wake_us"] == pytest.approx(told["wake_us"], rel=1e-6)
                assert shown["flags"] == told["flags"]
                compared += 1
            page.states.clear()
            return compared >= 10

        page.until(enough, "ten states that both have")
    finally:
        digger.node.ask("release")
        socket.close(0)
        context.term()


def test_all_signals_come_with_the_first_frame_and_every_sixth(page):
    page.until(lambda: len(page.states) >= 20, "twenty frames")
    carried = [k for k, s in enumerate(page.states) if s["n_latest"]]
    assert carried[:3] == [0, 6, 12]
    names = [s["name"] for s in page.hello["signals"]]
    assert page.latest[names.index("dig.count")] > 0


def test_a_frame_is_young(page):
    page.until(lambda: len(page.states) >= 100, "frames")
    ages = [s["age"] for s in page.states]
    assert min(ages) >= 0.0
    assert np.median(ages) < 0.1


def test_a_frame_says_when_it_was_sent_and_the_server_tells_its_clock(page):
    """Here both have the same clock, so the offset that a page would find is known: none."""
    page.until(lambda: len(page.states) >= 5, "frames")
    sent = [s["sent"] for s in page.states]
    assert sent == sorted(sent)
    assert 0.0 <= time.monotonic() - sent[-1] < 5.0
    before = time.monotonic()
    page.say(clock=1234.5)
    told = page.until(lambda: page.last("clock"), "the clock")
    assert told["page"] == 1234.5
    assert before <= told["server"] <= time.monotonic()


def test_a_frame_that_was_acknowledged_already_is_no_nonsense(digger, static):
    with served(digger.commands, static) as server, opened(server.options.address) as page:
        page.until(lambda: len(page.states) >= 5, "frames")
        page.say(ack=1)
        frames = len(page.states)
        page.until(lambda: len(page.states) > frames + 5, "more frames")
        assert server.gate.refused["malformed"] == 0


def test_a_page_that_does_not_draw_gets_two_frames_and_then_the_newest(digger):
    with opened(digger.address, ack=False) as page:
        page.until(lambda: len(page.states) == 2, "two frames")
        page.hear(1.0)
        assert len(page.states) == 2
        assert page.counts[1] == 2
        page.say(ack=page.states[0]["frame"])
        page.until(lambda: len(page.states) == 3, "a third one")
        page.hear(0.2)
        assert len(page.states) == 3
        assert page.states[2]["tick"] - page.states[1]["tick"] > 500
        assert page.states[2]["age"] < 0.5


def test_frames_come_at_sixty_hertz_and_not_more(page):
    page.until(lambda: len(page.states) >= 10, "frames")
    before, began = len(page.states), time.monotonic()
    page.hear(2.0)
    rate = (len(page.states) - before) / (time.monotonic() - began)
    assert 5 < rate < 66  # on a busy machine it may be less


def test_the_ground_is_exactly_that_of_the_plant(page, digger):
    """After thousands of changes, small and of metres, added up from differences; late pages have the same."""
    page.until(lambda: page.states and page.states[-1]["tick"] > 3000, "three seconds of digging", 120)
    with paused(digger) as steps:
        expected = units_of(np.float32(heights_after(steps)))
        assert np.abs(expected).max() > 32767  # too much for a difference
        page.until(lambda: (page.grids[0] == expected).all(), "the ground")
        assert np.abs(page.grids[0] * UNIT - heights_after(steps)).max() < UNIT
        with opened(digger.address) as late:
            late.until(lambda: (late.grids[0] == expected).all(), "the ground of a late page")
    page.until(lambda: not (page.grids[0] == expected).all(), "digging again")


def test_the_ground_is_whole_before_the_first_frame(digger):
    with opened(digger.address) as first, paused(digger) as steps:
        expected = units_of(np.float32(heights_after(steps)))
        first.until(lambda: (first.grids[0] == expected).all(), "the ground")
        with opened(digger.address) as page:
            wait_for(lambda: page.states or page.take_one(), "a frame")
            assert (page.grids[0] == expected).all()


def test_arrows_and_props_come_along(page):
    page.until(lambda: len(page.arrows) == 3, "three arrows")
    assert page.arrows[0][3:].tolist() == [0.0, 0.0, 1000.0]
    page.until(lambda: len(page.arrows) == 0, "no arrows")
    assert set(page.props) == set(range(5))
    height = page.props[0][2]
    page.until(lambda: page.props[0][2] > height, "a stone to move")


def test_plots_get_every_row(page):
    page.say(watch=["dig.count", "dig.nothing", "dig.height"])
    page.until(lambda: page.last("watching").get("signals") == ["dig.count", "dig.height"], "what it will get")
    page.until(lambda: sum(len(s["samples"]) for s in page.states) > 1000, "a second of samples")
    counts = np.concatenate([s["samples"][:, 1] for s in page.states if s["samples"].shape[1] == 3])
    assert np.diff(counts).tolist() == [1.0] * (len(counts) - 1)
    late = [s for s in page.states if len(s["samples"])][-1]
    assert late["samples"][-1, 0] == 0.0
    assert late["t"] == pytest.approx(late["samples"][-1, 1] * 1e-3)
    page.say(watch=[])
    page.until(lambda: page.states and page.states[-1]["samples"].shape == (0, 1), "no more samples")


def test_operations_reach_the_node(page, digger):
    answer = page.ask("pause")
    assert answer["ok"], answer
    page.until(lambda: page.states and page.states[-1]["flags"] & PAUSED, "the flag")
    steps = digger.node.ask("steps")
    assert page.ask("step", count=5)["ok"]
    wait_for(lambda: digger.node.ask("steps") == steps + 5, "five steps")
    assert page.ask("set", name="dig.deeper", value=0.25)["ok"]
    page.until(lambda: page.last("status").get("parameters") == {"dig.deeper": 0.25}, "the status")
    assert page.ask("set", name="dig.deeper", value=0.0)["ok"]
    assert page.ask("resume")["ok"]
    assert page.ask("speed", value=0.5)["ok"]
    assert page.ask("speed", value=1.0)["ok"]


def test_who_comes_late_is_told_which_alarms_are_on(page, digger):
    digger.node.ask("force", "dig.stick", 0.75)
    on = [{"index": 0, "name": "stick far out", "value": 0.75}]
    page.until(lambda: page.last("status").get("alarms") == on, "the alarm")
    with opened(digger.address) as late:
        late.until(lambda: late.last("status").get("alarms") == on, "the alarm, for a page that came after it")
    digger.node.ask("release")
    page.until(lambda: page.last("status")["alarms"] == [], "no alarm")


def test_what_the_node_refuses_is_told(page):
    answer = page.ask("force", name="dig.nothing", value=1.0)
    assert (answer["ok"], answer["reason"]) == (False, "refused")
    assert "no signal" in answer["why"]
    assert page.ask("fly")["reason"] == "unknown"
    assert page.ask("step", count=-1)["reason"] == "malformed"
    assert page.ask("hello")["reason"] == "unknown"


def test_a_page_may_do_what_its_role_allows(page, digger, static):
    assert page.ask("stop")["reason"] == "unauthorised"  # web.role is operate
    with served(digger.commands, static, role=Role.WATCH) as server, opened(server.options.address) as watcher:
        assert watcher.hello["role"] == "watch"
        for op, fields in (("pause", {}), ("set", {"name": "dig.deeper", "value": 1.0}), ("trip", {})):
            assert watcher.ask(op, **fields)["reason"] == "unauthorised"
        watcher.say(cab="take")
        watcher.until(lambda: "may only watch" in watcher.last("cab")["why"], "a refusal")
        assert watcher.ask("status")["ok"]
        assert server.gate.refused["unauthorised"] == 4
        assert digger.node.state == "RUNNING"


def test_the_token_opens_the_stream(digger, static):
    with served(digger.commands, static, token=TOKEN) as server:
        address = server.options.address
        for query in ("", "?token=wrong"):
            with FakePage(address, query=query) as stranger:
                stranger.until(lambda stranger=stranger: stranger.closed, "the end")
                assert stranger.closed.rcvd.code == 4401
                assert (stranger.texts, stranger.bytes) == ([], 0)
        with opened(address, query=f"?token={TOKEN}") as page:
            assert page.hello["node"] == digger.name
            page.until(lambda: page.last("web").get("refused") == {"token": 2}, "the counts")


def test_other_pages_and_names_are_refused(digger, static):
    with served(digger.commands, static) as server:
        for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            with pytest.raises(InvalidStatus) as refused:
                FakePage(server.options.address, additional_headers=headers)
            assert refused.value.response.status_code == 403
        assert server.gate.refused == {"origin": 1, "host": 1}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_counted_and_the_stream_goes_on(digger, static, nonsense):
    with served(digger.commands, static) as server, opened(server.options.address) as page:
        page.socket.send(nonsense)
        wait_for(lambda: server.gate.refused["malformed"] == 1, "the count")
        frames = len(page.states)
        page.until(lambda: len(page.states) > frames + 5, "more frames")


def test_too_much_nonsense_ends_the_connection(digger, static):
    with served(digger.commands, static) as server:
        with opened(server.options.address) as page:
            for _ in range(MOST_NONSENSE):
                page.say(what="ever")
            page.until(lambda: page.closed, "the end")
            assert page.closed.rcvd.code == 1008
        with opened(server.options.address) as page:  # another one is welcome
            page.until(lambda: page.states, "a frame")


def test_an_oversized_message_ends_the_connection(digger, static):
    with served(digger.commands, static) as server, opened(server.options.address) as page:
        page.socket.send("x" * 70_000)
        page.until(lambda: page.closed, "the end")
        assert page.closed.rcvd.code == 1009
        wait_for(lambda: server.gate.refused["oversized"] == 1, "the count")


def test_a_flood_is_counted(digger, static):
    with served(digger.commands, static) as server, opened(server.options.address, ack=False) as page:
        with contextlib.suppress(Exception):
            for _ in range(2000):
                page.say(watch=[])
        wait_for(lambda: server.gate.refused["flood"] > 0, "the count")


def test_what_pages_do_is_written_down(page, digger):
    page.ask("clear")
    page.ask("stop")
    path = digger.folder / "run" / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(
        line.get("who") == "page 127.0.0.1" and line["asked"]["op"] == "clear" for line in lines if "asked" in line
    )
    assert any(line.get("refused") == "unauthorised" for line in lines)


def test_five_pages_see_the_same(digger):
    with contextlib.ExitStack() as stack:
        pages = [stack.enter_context(opened(digger.address)) for _ in range(5)]
        with paused(digger) as steps:
            expected = units_of(np.float32(heights_after(steps)))
            for page in pages:
                page.until(lambda page=page: (page.grids[0] == expected).all(), "the ground")
        for page in pages:
            page.until(lambda page=page: page.last("web").get("pages", 0) >= 5, "the count of pages")
