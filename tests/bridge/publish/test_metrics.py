"""Metrics as Prometheus reads them: parsed by its own client library."""

import math
import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support import free_port

from bridge.publish.metrics import MetricsServer, families, render

FACTS: dict[str, Any] = {
    "tick": 1000,
    "overruns": 2,
    "state": "running",
    "lost": 0,
    "overflows": 2,
    "timing": {
        "wake_us": {"p50": 3.0, "p99": 31.0, "max": 120.0},
        "step_us": {"p50": 8.0, "p99": 9.0, "max": 11.0},
    },
    "drivers": {
        "rig": {"state": "up", "twin": False, "frames": 10, "writes": 20, "errors": 1, "reconnects": 0},
        'odd "name"\\': {"state": "down", "twin": True, "frames": 0, "writes": 0, "errors": 3, "reconnects": 1},
    },
    "commands": {"done": 5, "malformed": 1},
}


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_its_own_parser_reads_every_number_and_label():
    read = parsed(render(families(FACTS), "bench"))
    assert read["hilnode_ticks_total", (("node", "bench"),)] == 1000
    assert read["hilnode_wake_seconds", (("node", "bench"), ("quantile", "0.99"))] == pytest.approx(31e-6)
    assert read["hilnode_driver_up", (("driver", "rig"), ("node", "bench"), ("twin", "false"))] == 1
    assert read["hilnode_driver_up", (("driver", 'odd "name"\\'), ("node", "bench"), ("twin", "true"))] == 0
    assert read["hilnode_requests_total", (("node", "bench"), ("outcome", "malformed"))] == 1
    assert len(read) == 5 + 6 + 2 + 8 + 2


def test_losses_and_ecus_are_told():
    ecu = {"connected": True, "age_s": 0.25, "offset_s": math.nan, "frames": 9, "lost": 3, "refused": 2, "unsent": 1}
    ecu |= {"round_trip_p50_us": 700.0, "round_trip_p99_us": 1900.0}
    more = {"losses": {"anna:1f2e": 5}, "ecus": {"crane": ecu}}
    read = parsed(render(families(FACTS | more), "bench"))
    here, crane = ("node", "bench"), ("ecu", "crane")
    assert read["hilnode_overflows_total", (here,)] == 2
    assert read["hilnode_messages_losses_total", (("client", "anna:1f2e"), here)] == 5
    assert read["hilnode_ecu_up", (crane, here)] == 1
    assert read["hilnode_ecu_lost_total", (crane, here)] == 3
    assert math.isnan(read["hilnode_ecu_offset_seconds", (crane, here)])
    assert read["hilnode_ecu_round_trip_seconds", (crane, here, ("quantile", "0.99"))] == pytest.approx(1.9e-3)


def test_a_node_that_has_just_begun_has_no_timing_yet():
    early = {**FACTS, "timing": {}, "drivers": {}, "commands": {}}
    assert {name for name, _ in parsed(render(families(early), "bench"))} == {
        "hilnode_ticks_total", "hilnode_overruns_total", "hilnode_state", "hilnode_rows_lost_total",
        "hilnode_overflows_total",
    }  # fmt: skip


def test_over_http():
    server = MetricsServer("127.0.0.1", 0, "bench", lambda: FACTS)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.read().decode() == render(families(FACTS), "bench")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/secrets")
    server.close()


def test_a_running_node_is_scraped(hil):
    port = free_port()
    node = hil("plant.kind = 'double_pendulum'\n", **{"bridge.metrics": f"tcp://127.0.0.1:{port}"})
    node.arm()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        read = parsed(answer.read().decode())
    (state,) = (dict(labels)["state"] for name, labels in read if name == "hilnode_state")
    assert state == "armed"
    assert max(value for (name, _), value in read.items() if name == "hilnode_ticks_total") > 0
