"""Reference runs give the same bits as when golden.json was written: motion, contacts, soil, every pair of shapes.

A change that is meant to alter numbers writes the table anew, and its commit says why:
`python tools/fingerprint.py --json tests/plant/golden.json`. The bits were seen to be the same on Zen 4 and Zen 5;
another architecture or libm may need a table of its own.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
GOLDEN = TOP / "tests" / "plant" / "golden.json"
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="golden.json holds the bits of x86-64")


def fingerprint(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tools" / "fingerprint.py"), "--against", str(GOLDEN), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@on_x86
@pytest.mark.timeout(1200)  # with an empty cache every pair of shapes is compiled
def test_quick_cases_have_their_golden_hashes() -> None:
    done = fingerprint("--quick")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 90


@on_x86
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_cases_have_their_golden_hashes() -> None:
    done = fingerprint()
    assert done.returncode == 0, done.stderr


def test_a_different_hash_is_noticed(tmp_path: Path) -> None:
    table = json.loads(GOLDEN.read_text())
    table["cases"]["pendulum"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(table))
    done = fingerprint("--only", "pendulum", "--against", str(tmp_path / "other.json"))
    assert done.returncode == 1
    assert "pendulum" in done.stderr


def test_a_case_that_is_gone_is_noticed(tmp_path: Path) -> None:
    table = json.loads(GOLDEN.read_text())
    table["cases"]["pendulum of old"] = "0" * 64
    (tmp_path / "other.json").write_text(json.dumps(table))
    done = fingerprint("--quick", "--only", "pendulum*", "--against", str(tmp_path / "other.json"))
    assert done.returncode == 1
    assert "pendulum of old" in done.stderr
