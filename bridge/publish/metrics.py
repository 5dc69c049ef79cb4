"""Metrics for Prometheus: what the bridge knows of the node, as text over HTTP, on this PC only.

    hilnode_wake_seconds{node="bench",quantile="0.99"} 3.1e-05

The text format is a dozen lines to write, so no library is needed for it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT = "text/plain; version=0.0.4; charset=utf-8"

MEDIAN = (("0.5", "p50"), ("0.99", "p99"))
QUANTILES = (*MEDIAN, ("1", "max"))

Sample = tuple[dict[str, str], float]
Family = tuple[str, str, str, list[Sample]]
"""Name, type, what it is, and its samples: labels and value."""


def render(families: Iterable[Family], node: str) -> str:
    """The text format, version 0.0.4."""
    lines = []
    for name, kind, doc, samples in families:
        lines += [f"# HELP hilnode_{name} {doc}", f"# TYPE hilnode_{name} {kind}"]
        for labels, value in samples:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in {"node": node, **labels}.items())
            lines.append(f"hilnode_{name}{{{inside}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(float(value)) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"


def families(facts: dict[str, Any]) -> list[Family]:
    """Metrics from the facts that `Publisher.facts` gathers."""
    timing, drivers = facts.get("timing", {}), facts.get("drivers", {})
    made: list[Family] = [
        ("ticks_total", "counter", "Ticks since the loop began.", [({}, facts["tick"])]),
        ("overruns_total", "counter", "Overruns since arming.", [({}, facts["overruns"])]),
        ("state", "gauge", "1 for the state the node is in.", [({"state": facts["state"]}, 1)]),
        ("rows_lost_total", "counter", "Rows that the publisher missed.", [({}, facts["lost"])]),
        ("overflows_total", "counter", "Times a subscriber's queue ran full.", [({}, facts["overflows"])]),
    ]
    for name, what in (("wake", "Wake-up after the deadline"), ("step", "Time in the plant")):
        if of := timing.get(f"{name}_us"):
            quantiles: list[Sample] = [({"quantile": q}, of[key] * 1e-6) for q, key in QUANTILES]
            made.append((f"{name}_seconds", "gauge", f"{what}, over the last message of the topic timing.", quantiles))
    made.append(
        (
            "driver_up",
            "gauge",
            "1 while the device delivers.",
            [({"driver": n, "twin": str(d["twin"]).lower()}, d["state"] == "up") for n, d in drivers.items()],
        )
    )
    for key in ("frames", "writes", "errors", "reconnects"):
        samples: list[Sample] = [({"driver": n}, d[key]) for n, d in drivers.items()]
        made.append((f"driver_{key}_total", "counter", f"{key.capitalize()} of the driver.", samples))
    lost: list[Sample] = [({"client": name}, count) for name, count in facts.get("losses", {}).items()]
    made.append(("messages_losses_total", "counter", "Messages that a client says it never got.", lost))
    made += _of_ecus(facts.get("ecus", {}))
    counts = facts.get("commands", {})
    made.append(
        (
            "requests_total",
            "counter",
            "Requests by what became of them.",
            [({"outcome": k}, v) for k, v in counts.items()],
        )
    )
    return [family for family in made if family[3]]


def _of_ecus(ecus: dict[str, Any]) -> list[Family]:
    made: list[Family] = [
        ("ecu_up", "gauge", "1 while the ECU is connected.", [({"ecu": n}, e["connected"]) for n, e in ecus.items()]),
        ("ecu_age_seconds", "gauge", "Since its last message.", [({"ecu": n}, e["age_s"]) for n, e in ecus.items()]),
        (
            "ecu_offset_seconds",
            "gauge",
            "Its clock minus the node's.",
            [({"ecu": n}, e["offset_s"]) for n, e in ecus.items()],
        ),
        (
            "ecu_round_trip_seconds",
            "gauge",
            "From a state sent to the message that answers it.",
            [
                ({"ecu": n, "quantile": q}, e[f"round_trip_{p}_us"] * 1e-6)
                for n, e in ecus.items()
                for q, p in QUANTILES[:2]
            ],
        ),
    ]
    for key, what in (("frames", "taken"), ("lost", "that never came"), ("refused", "refused"), ("unsent", "not sent")):
        samples: list[Sample] = [({"ecu": n}, e[key]) for n, e in ecus.items()]
        made.append((f"ecu_{key}_total", "counter", f"Messages {what}.", samples))
    return made


class MetricsServer:
    """Answers GET /metrics in a thread of its own."""

    def __init__(self, host: str, port: int, node: str, facts: Callable[[], dict[str, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404, "there is /metrics and nothing else")
                    return
                body = render(families(facts()), node).encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody wants to read about each scrape."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2.0)
