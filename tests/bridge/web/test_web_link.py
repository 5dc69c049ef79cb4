"""What a page sees when the node, its bridge or the server goes and comes back, and when the port is taken."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from digging_plant import heights_after
from support import HILNODE, children, environment, free_port, started, wait_for
from web_node import Digger, digging, new_ports, opened
from web_page import FakePage, placeholder, served

from bridge.protocol.operations import Role
from bridge.protocol.terrain import units_of


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> Path:
    return placeholder(tmp_path_factory.mktemp("static") / "page")


def ground_is_right(page: FakePage, digger: Digger) -> None:
    digger.node.ask("pause")
    expected = units_of(np.float32(heights_after(int(digger.node.ask("steps")))))
    page.until(lambda: (page.grids[0] == expected).all(), "the ground")
    digger.node.ask("resume")


def test_a_page_outlives_the_node(tmp_path, static):
    """The server runs elsewhere; another node starts at the same address, with another machine."""
    ports = new_ports()
    with served(f"tcp://127.0.0.1:{ports['commands']}", static) as server, FakePage(server.options.address) as page:
        page.until(lambda: page.last("link").get("up") is False, "word that there is no node")
        with digging(tmp_path / "a", "link-a", ports=ports | {"web": free_port()}) as first:
            first.start()
            page.until(lambda: page.hello, "hello")
            page.until(lambda: page.states and page.states[-1]["state"] == 2, "a running node")
            ground_is_right(page, first)
        page.until(lambda: page.last("link")["up"] is False, "word that it has gone")
        page.texts.clear()
        page.states.clear()
        with digging(tmp_path / "b", "link-b", ports=ports | {"web": free_port()}) as second:
            second.start()
            page.until(lambda: page.hello.get("node") == second.name, "hello of the other node")
            page.until(lambda: page.states and page.states[-1]["state"] == 2, "it runs")
            ground_is_right(page, second)
            assert page.states[-1]["age"] < 5.0


def test_frames_of_a_node_that_is_gone_need_no_acknowledgement(tmp_path, static):
    """A page whose last frames were never drawn, because their node had gone, gets those of the next one."""
    ports = new_ports()
    with served(f"tcp://127.0.0.1:{ports['commands']}", static) as server:
        with FakePage(server.options.address, ack=False) as page:
            for k in range(2):
                with digging(tmp_path / f"{k}", f"link-undrawn-{k}", ports=ports | {"web": free_port()}) as digger:
                    digger.start()
                    page.until(lambda digger=digger: page.hello.get("node") == digger.name, "hello")
                    page.until(lambda k=k: len(page.states) == 2 * k + 2, "two frames")
                    first, second = (s["frame"] for s in page.states[-2:])
                    assert (first, second) == (2 * k + 1, 2 * k + 2)
                page.until(lambda: page.last("link")["up"] is False, "word that it has gone")
            page.say(ack=2)  # of the first node, drawn much too late
            page.hear(0.5)
        assert server.gate.refused["malformed"] == 0


def test_a_bridge_that_is_killed_comes_back_to_the_pages(tmp_path):
    with digging(tmp_path / "dig", "link-kill") as digger, opened(digger.address) as page:
        digger.start()
        page.until(lambda: len(page.states) > 20, "frames")
        (bridge,) = children(digger.node.pid, "bridge.publish.server")
        os.kill(bridge, signal.SIGKILL)
        before = digger.node.ask("TICK")
        page.until(lambda: page.states and page.states[-1]["tick"] > before + 2000, "frames of the next bridge")
        ground_is_right(page, digger)
        assert page.ask("status")["ok"]


def test_a_server_that_is_killed_comes_back(tmp_path):
    with digging(tmp_path / "dig", "link-web") as digger:
        with opened(digger.address) as page:
            (server,) = children(digger.node.pid, "bridge.web.server")
            os.kill(server, signal.SIGKILL)
            page.until(lambda: page.closed, "the end of the connection")
        wait_for(lambda: not Path(f"/proc/{server}").exists(), "the old server, all its threads, to let go of the port")
        with opened(digger.address) as page:
            page.until(lambda: page.states, "frames of the next server")
        assert digger.node.state == "CONFIGURED"


def test_a_port_that_is_taken_costs_the_page_and_not_the_node(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = new_ports() | {"web": taken.getsockname()[1]}
        with digging(tmp_path / "dig", "link-taken", ports=ports) as digger:
            digger.start()
            assert children(digger.node.pid, "bridge.web.server") == []
            assert digger.node.ask("state") == "RUNNING"
            (note,) = [n for n in digger.node.ask("notes") if "web.address" in n]
            assert f"is in use by process {os.getpid()}" in note
            assert "without its page" in note


def test_the_server_ends_with_the_node(tmp_path):
    with digging(tmp_path / "dig", "link-end") as digger:
        (server,) = children(digger.node.pid, "bridge.web.server")
        digger.node.process.kill()
        digger.node.process.wait()
        wait_for(lambda: not Path(f"/proc/{server}").exists(), "the server to notice")


def test_hilnode_view_serves_a_node_from_elsewhere(tmp_path, static):
    address = f"http://127.0.0.1:{free_port()}"
    with digging(tmp_path / "dig", "link-view") as digger:
        digger.start()
        command = [*HILNODE, "view", digger.commands, "--listen", address, "--role", "admin"]
        with started(command) as process, opened(address) as page:
            assert page.hello["role"] == "admin"
            page.until(lambda: page.states, "frames")
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=20)
            assert said.strip() == f"the page is at {address}/"
            assert process.returncode == 0


def run_view(*options: str) -> subprocess.CompletedProcess[str]:
    command = [*HILNODE, "view", "tcp://127.0.0.1:1", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())


def test_hilnode_view_says_what_is_wrong():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run_view("--listen", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert done.returncode == 5
        assert "choose another address or port" in done.stderr
    for options, words in (
        (("--role", "king"), "watch, operate, admin"),
        (("--listen", "127.0.0.1"), "http://127.0.0.1:8080"),
        (("--token", "short"), "16 to 200"),
    ):
        done = run_view(*options)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert words in " ".join(done.stderr.split()), done.stderr


def test_beyond_this_pc_a_token_is_made(tmp_path):
    address = f"http://0.0.0.0:{free_port()}"
    with started([*HILNODE, "view", "tcp://127.0.0.1:1", "--listen", address]) as process:
        line = process.stdout.readline().strip()
        assert line.startswith(f"the page is at {address}/#token=")
        here = address.replace("0.0.0.0", "127.0.0.1")
        with FakePage(here, query=f"?token={line.partition('#token=')[2]}") as page:
            page.until(lambda: page.last("link").get("up") is False, "the link")


def test_a_server_may_do_at_the_node_what_its_own_key_allows(tmp_path, static):
    """The node lets everybody watch and no more; the server would let its pages do anything."""
    with (
        digging(tmp_path / "dig", "link-role", more='bridge.role = "watch"\n') as digger,
        served(digger.commands, static, role=Role.ADMIN) as server,
        opened(server.options.address) as page,
    ):
        assert page.hello["role"] == "watch"
        assert page.ask("trip")["reason"] == "unauthorised"


def test_a_page_asks_for_nothing_elsewhere(tmp_path, static):
    """Every file it is given is served here, and the policy lets it talk to nobody else."""
    with served("tcp://127.0.0.1:1", static) as server, contextlib.closing(socket.socket()) as line:
        line.connect((server.host, server.port))
        line.sendall(b"GET /operator HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        until = time.monotonic() + 10
        while time.monotonic() < until and (more := line.recv(65536)):
            got += more
        head, _, body = got.partition(b"\r\n\r\n")
        assert b"connect-src 'self'" in head
        assert body == b"<!doctype html><title>hilnode</title>"
