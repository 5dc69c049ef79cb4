"""daq in whole nodes: what the card's outputs have when the node is killed, frozen, or goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from ni_server import NiServer, served
from support import is_alive, remote_node, wait_for

SAFE = -2.0  # [V]; live values are 0 and above
NODE = """
plant.kind = "trouble_plant:create"
safety.bumpless_ms = 0
log.timing = false
[drivers.card]
kind = "daq"
device = "Dev1"
server = "{server}"
mode = "buffered"
period_ms = 5.0
inputs = [{{ name = "back", channel = "ai0" }}]
outputs = [
  {{ name = "count", channel = "ao0", slope = 1e5, safe = -2e5 }},
  {{ name = "off", channel = "port0/line0", safe = 1 }},
]
[signals.outputs."card.count"]
from = "trouble.count"
"""


@pytest.fixture
def server() -> Iterator[NiServer]:
    with served() as made:
        yield made


def run(server: NiServer, node) -> None:
    wait_for(lambda: server.card.output("ao0") == SAFE, "the safe value before the start")
    node.ask("arm")
    node.ask("run")
    wait_for(lambda: server.card.output("ao0") > 0.0, "a live value")


def test_a_killed_node_leaves_safe_volts(server, tmp_path, name):
    """At the far end of a gRPC server its tasks outlive it and hold the card."""
    with remote_node(tmp_path, name, NODE.format(server=server.address)) as node:
        run(server, node)
        node.process.kill()
        wait_for(lambda: not is_alive(node.pid), "the node's end")
        wait_for(lambda: server.card.output("ao0") == SAFE, "the watchdog's safe value")
        wait_for(lambda: server.card.output("port0/line0") == 1.0, "the safe line")
        wait_for(lambda: not any(t.running for t in server.state.tasks.values()), "the card to be free")


@pytest.mark.slow
def test_a_frozen_node_has_safe_volts_and_finds_its_card_again(server, tmp_path, name):
    with remote_node(tmp_path, name, NODE.format(server=server.address)) as node:
        run(server, node)
        os.kill(node.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: server.card.output("ao0") == SAFE, "the watchdog's safe value")
            assert server.card.resets == 1
        finally:
            os.kill(node.pid, signal.SIGCONT)
        wait_for(lambda: sum(t.running for t in server.state.tasks.values()) == 3, "the node's own tasks")
        assert node.state == "TRIPPED"
        writes = len(server.card.written["ao0"])
        wait_for(lambda: len(server.card.written["ao0"]) > writes + 5, "the node's own writes")
        assert {v for _, v in server.card.written["ao0"][writes:]} == {SAFE}
