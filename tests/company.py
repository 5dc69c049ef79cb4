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
        "hilnode/core": ("jit", "registry", "signals", "sources", "struct"),
        "hilnode/shared": ("command_record", "display_state", "events", "health", "row", "timinglog"),
        "hilnode/config": ("config", "config_fuzz", "shipped_configs"),
        "hilnode/node": ("node", "stats"),
        "hilnode/report": ("jitter", "rerun"),
        "hilnode/cli": ("cli", "cli_mesh", "devices"),
        "drivers": ("fuzz_decoders",),
        "drivers/can": ("can_layout", "can_options"),
        "drivers/daq": ("daq_options",),
        "drivers/hid": ("hid_decoder", "hid_report"),
        "drivers/modbus": ("modbus_options", "registers"),
        "drivers/operator": ("phases",),
        "drivers/serial": ("checksums", "frames"),
        "bridge/protocol": ("audit", "ecu_wire", "operations"),
        "bridge/publish": ("black_boxes", "metrics"),
        "bridge/ecu": ("ecu_clock", "ecu_lockstep"),
        "bridge/record": ("export", "player", "run_file"),
        "bridge/monitor": ("monitor_app", "monitor_model"),
        "bridge/scope": ("scope_capture",),
        "bridge/web": ("web_frames", "web_gate"),
        "docs": ("doc_facts", "wire_vectors"),
    }.items()
    for name in names
)
"""Files elsewhere that bear company: they compute, or wait for a condition with a long patience, and judge no time."""

LONGEST = (
    "tests/plant/collision/narrowphase/test_every_pair.py",
    *("tests/plant/machines/excavator/test_digging.py", "tests/plant/constraint/test_foundation_contacts.py"),
    *("tests/plant/world/test_bad_shapes.py", "tests/plant/machines/excavator/test_excavator_events.py"),
    *("tests/hilnode/config/test_shipped_configs.py", "tests/plant/machines/excavator/test_formulations.py"),
    *(
        "tests/hilnode/report/test_rerun.py",
        "tests/plant/engine/test_queries.py",
        "tests/plant/machines/excavator/test_plant.py",
    ),
    *("tests/hilnode/cli/test_cli.py", "tests/plant/machines/excavator/test_manoeuvres.py"),
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
