"""Which tests bear company, and in which order they begin.

Physics and whatever only computes or waits for something to happen runs on all cores, file by file. A test that asserts
a time, or floods the machine, has the machine to itself: so has all that runs a node, unless its file is named here.
A single test of such a file that judges times is marked `alone`.
"""

from __future__ import annotations

TOGETHER = ("tests/plant/", "tests/tools/")
"""Folders that bear company."""

PATIENT = frozenset(
    f"tests/{folder}/test_{name}.py"
    for folder, names in {
        "hilnode": (
            *("cli", "cli_mesh", "config", "config_fuzz", "devices", "events", "health", "jit", "jitter", "kinds"),
            *("node", "orders", "record", "rerun", "row", "shipped_configs", "sights", "signals", "sources", "stats"),
            "timinglog",
        ),
        "drivers": (
            *("can_layout", "can_options", "checksums", "daq_options", "frames", "fuzz_decoders", "hid_decoder"),
            *("hid_report", "modbus_options", "phases", "registers"),
        ),
        "bridge": (
            *("audit", "black_boxes", "ecu_clock", "ecu_lockstep", "ecu_wire", "export", "metrics", "monitor_app"),
            *("monitor_model", "player", "requests", "run_file", "scope_capture", "web_frames", "web_gate"),
        ),
        "docs": ("doc_facts", "wire_vectors"),
    }.items()
    for name in names
)
"""Files elsewhere that bear company: they compute, or wait for a condition with a long patience, and judge no time."""

LONGEST = (
    "tests/plant/collide/test_every_pair.py",
    *("tests/plant/machines/excavator/test_digging.py", "tests/plant/test_foundation_contacts.py"),
    *("tests/plant/test_bad_shapes.py", "tests/plant/machines/excavator/test_excavator_events.py"),
    *("tests/hilnode/test_shipped_configs.py", "tests/plant/machines/excavator/test_formulations.py"),
    *("tests/hilnode/test_rerun.py", "tests/plant/test_queries.py", "tests/plant/machines/excavator/test_plant.py"),
    *("tests/hilnode/test_cli.py", "tests/plant/machines/excavator/test_manoeuvres.py"),
)
"""Files that begin first, the longest first, so that all cores are done at about the same time."""


def bears_company(nodeid: str) -> bool:
    """Whether the test's file may run beside others."""
    file = nodeid.split("::", 1)[0]
    return file.startswith(TOGETHER) or file in PATIENT


def rank_of(nodeid: str) -> int:
    """The lower, the earlier."""
    file = nodeid.split("::", 1)[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
