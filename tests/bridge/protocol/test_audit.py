"""The audit log: every line is whole, and a disc that refuses is told once."""

import json
from pathlib import Path
from typing import Any

from bridge.protocol.audit import LONGEST, Audit


def test_a_long_request_is_a_whole_line(tmp_path):
    audit = Audit(tmp_path / "audit.jsonl")
    forces = {f"signal.number{k}": 0.1 * k for k in range(1000)}
    audit.done("anna", "admin", {"op": "session", "forces": forces, "faults": []}, "x" * 10_000, 5)
    audit.close(5)
    (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert (told["who"], told["asked"]["op"], told["asked"]["faults"], told["tick"]) == ("anna", "session", [], 5)
    assert told["asked"]["forces"].startswith('{"signal.number0": 0.0')
    assert len(line) < 4 * LONGEST


def test_a_folder_that_refuses_is_told(tmp_path):
    said: list[str] = []
    audit = Audit(tmp_path / "nowhere" / "audit.jsonl", said.append)
    audit.done("anna", "admin", {"op": "stop"}, "done", 5)
    assert said == [f"{tmp_path}/nowhere/audit.jsonl: No such file or directory; commands are not written down"]


def test_a_disc_that_is_full_is_told_once():
    said: list[str] = []
    audit = Audit(Path("/dev/full"), said.append)
    for tick in range(3):
        audit.done("anna", "admin", _stop(), "done", tick)
    assert said == ["audit log: No space left on device; commands are no longer written down"]


def _stop() -> dict[str, Any]:
    return {"op": "stop"}
