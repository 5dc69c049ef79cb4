"""The checks on made-up machines: a good one, a bad one, an empty one, and one full of noise."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from hilnode.report import doctor, doctor_checks
from hilnode.report.doctor import Diagnosis, advice, diagnose
from hilnode.report.doctor_checks import CHECKS, Finding, examine
from hilnode.report.proc_files import cpu_text
from hilnode.shared.realtime import ROOT, choose_cpu, cpu_list

CPU = 3
CPUS = "sys/devices/system/cpu"
STATUS = "Name:\tpython\nCpus_allowed_list:\t0-2\nVmLck:\t       0 kB\nCapEff:\t{}\n"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         {}              unlimited            bytes     \n"
    "Max realtime priority     {}                   99                             \n"
)
SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"
INTERRUPTS = (
    "           CPU0       CPU1       CPU2       CPU3\n"
    " 24:          1          0          0          0  IO-APIC   5-edge      acpi\n"
    " 36:          0          7          0      {:>5}  PCI-MSI   1-edge      eth0-rx\n"
    "NMI:          0          0          0          0   Non-maskable interrupts\n"
)

GOOD = {
    "proc/sys/kernel/osrelease": "6.12.9-rt\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_RT Thu Jan 1\n",
    "sys/kernel/realtime": "1\n",
    "sys/kernel/debug/sched/preempt": "none voluntary (full) lazy\n",
    "etc/os-release": 'NAME="Debian GNU/Linux"\nID=debian\n',
    "proc/cmdline": "quiet isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3\n",
    f"{CPUS}/isolated": "3\n",
    f"{CPUS}/nohz_full": "3\n",
    f"{CPUS}/online": "0-3\n",
    "sys/fs/cgroup/cpuset.cpus.isolated": "\n",
    **{f"{CPUS}/cpu{c}/cpufreq/scaling_governor": "performance\n" for c in range(4)},
    f"{CPUS}/cpu3/topology/thread_siblings_list": "3\n",
    f"{CPUS}/cpu3/cpuidle/state0/name": "POLL\n",
    f"{CPUS}/cpu3/cpuidle/state0/latency": "0\n",
    f"{CPUS}/cpu3/cpuidle/state0/disable": "0\n",
    f"{CPUS}/cpu3/cpuidle/state1/name": "C1\n",
    f"{CPUS}/cpu3/cpuidle/state1/latency": "2\n",
    f"{CPUS}/cpu3/cpuidle/state1/disable": "0\n",
    f"{CPUS}/cpu3/cpuidle/state2/name": "C6\n",
    f"{CPUS}/cpu3/cpuidle/state2/latency": "133\n",
    f"{CPUS}/cpu3/cpuidle/state2/disable": "1\n",
    "dev/cpu_dma_latency": "",
    "dev/shm/nothing": "",
    "proc/irq/24/smp_affinity_list": "0-2\n",
    "proc/irq/24/effective_affinity_list": "0\n",
    "proc/irq/36/smp_affinity_list": "0-2\n",
    "proc/irq/36/effective_affinity_list": "1\n",
    "proc/interrupts": INTERRUPTS.format(0),
    "proc/1/comm": "systemd\n",
    "proc/self/limits": LIMITS.format("unlimited", 95),
    "proc/self/status": STATUS.format("0000000000000000"),
    "proc/sys/kernel/sched_rt_runtime_us": "-1\n",
    "proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tsc constant_tsc\n",
    "sys/hypervisor/type": "",
    "proc/stat": "cpu  0 0 0 0\ncpu3 100 0 100 800 0 0 0 0 0 0\n",
    "proc/swaps": SWAPS,
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}

BAD = GOOD | {
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Thu Jan 1\n",
    "sys/kernel/realtime": "0\n",
    "sys/kernel/debug/sched/preempt": "none (voluntary) full lazy\n",
    "proc/cmdline": "quiet\n",
    f"{CPUS}/isolated": "\n",
    f"{CPUS}/nohz_full": "(null)\n",
    f"{CPUS}/online": "0-1,3\n",
    f"{CPUS}/cpu3/cpufreq/scaling_governor": "powersave\n",
    f"{CPUS}/cpu3/topology/thread_siblings_list": "1,3\n",
    f"{CPUS}/cpu3/cpuidle/state2/disable": "0\n",
    "proc/irq/36/smp_affinity_list": "0-3\n",
    "proc/irq/36/effective_affinity_list": "3\n",
    "proc/interrupts": INTERRUPTS.format(912),
    "proc/77/comm": "irqbalance\n",
    "proc/self/limits": LIMITS.format(8388608, 0),
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tsc hypervisor\n",
    "proc/stat": "cpu  0 0 0 0\ncpu3 100 0 100 790 0 0 0 10 0 0\n",
    "proc/swaps": SWAPS + "/swapfile file 8388604 524288 -2\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
}

NOT_TRIED = {"SCHED_FIFO", "memory lock"}


def plant_tree(root: Path, files: dict[str, str] | dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "STEAL_WINDOW_S", 0.0)


@pytest.fixture
def locked_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/cpu_dma_latency closed to this user, also when the tests run as root."""
    real = os.access
    monkeypatch.setattr(doctor_checks.os, "access", lambda p, mode: "cpu_dma" not in str(p) and real(p, mode))


def by_name(root: Path) -> dict[str, Finding]:
    return {f.name: f for f in examine(CPU, root)}


def test_good_machine(tmp_path: Path) -> None:
    found = by_name(plant_tree(tmp_path, GOOD))
    assert {n for n, f in found.items() if f.level != "good"} == NOT_TRIED
    assert all(not f.fix for f in found.values())


@pytest.mark.usefixtures("locked_latency")
def test_bad_machine(tmp_path: Path) -> None:
    found = by_name(plant_tree(tmp_path, BAD))
    assert {n: f.level for n, f in found.items() if n not in NOT_TRIED} == {
        "shared memory": "good",
        "kernel": "bad",
        "hypervisor": "bad",
        "clock source": "bad",
        "CPU frequency": "bad",
        "idle states": "bad",
        "CPU isolation": "bad",
        "interrupts": "bad",
        "rtprio limit": "bad",
        "memlock limit": "bad",
        "CPUs": "note",
        "hyperthread": "note",
        "RT throttling": "note",
        "swap": "bad",
        "huge pages": "note",
    }
    assert found["kernel"].value == "6.12.9-rt, preempt=voluntary"
    assert "linux-image-rt" in found["kernel"].fix
    assert found["idle states"].value == "C6: 133 us to wake"
    assert "performance on 0-2" in found["CPU frequency"].value
    assert "powersave on 3" in found["CPU frequency"].value
    assert "isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3" in found["CPU isolation"].fix
    assert found["interrupts"].value.startswith("1 of 2 come to CPU 3: eth0-rx")
    assert "systemctl disable --now irqbalance" in found["interrupts"].fix
    assert "echo 0-1 |" in found["interrupts"].fix
    assert found["memlock limit"].value == "8 MiB"
    assert "cpu1/online" in found["hyperthread"].fix
    assert found["swap"].value == "512 MiB in use"
    assert "1.00 % since boot" in found["hypervisor"].value


@pytest.mark.usefixtures("locked_latency")
def test_remedies_fit_on_a_terminal_line(tmp_path: Path) -> None:
    for finding in by_name(plant_tree(tmp_path, BAD)).values():
        assert finding.level == "unknown" or finding.level == "good" or finding.fix
        assert all(len(line) <= 76 for line in finding.fix.splitlines()), finding


def test_empty_machine(tmp_path: Path) -> None:
    for finding in examine(CPU, tmp_path):
        assert finding.level == ("bad" if finding.name == "shared memory" else "unknown"), finding
        assert finding.why


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_one_missing_file_is_no_alarm(missing: str, tmp_path: Path) -> None:
    plant_tree(tmp_path, {k: v for k, v in GOOD.items() if k != missing})
    alarms = [f for f in examine(CPU, tmp_path) if f.level == "bad" and not missing.startswith("dev/shm")]
    assert not alarms


VARIANTS: list[tuple[str, dict[str, str], str, str, str]] = [
    # check, files unlike the good machine, level, part of the value, part of the fix
    ("kernel", {"sys/kernel/realtime": "0"}, "good", "PREEMPT_RT", ""),
    (
        "kernel",
        {"proc/sys/kernel/version": "#1 SMP Thu", "sys/kernel/realtime": ""},
        "bad",
        "none or vol",
        "preempt=full",
    ),
    (
        "kernel",
        {"proc/sys/kernel/version": "#1 SMP PREEMPT Thu", "sys/kernel/realtime": ""},
        "note",
        "preempt=full",
        "rt",
    ),
    ("CPU frequency", {f"{CPUS}/cpu0/cpufreq/scaling_governor": "schedutil"}, "note", "schedutil on 0", "cpupower"),
    ("idle states", {f"{CPUS}/cpu3/cpuidle/state2/disable": "0"}, "good", "C6: 133 us to wake, but held off", ""),
    ("idle states", {f"{CPUS}/cpu3/cpuidle/state1/latency": "11"}, "good", "C1: 11 us to wake, but held off", ""),
    ("idle states", {f"{CPUS}/cpu3/cpuidle/state1/latency": "10"}, "good", "C1: 10 us", ""),
    ("idle states", {"proc/cmdline": "idle=poll"}, "good", "idle=poll", ""),
    (
        "CPU isolation",
        {"proc/cmdline": "x", f"{CPUS}/nohz_full": ""},
        "note",
        "lacks nohz_full, rcu_nocbs",
        "rcu_nocbs=3",
    ),
    ("CPU isolation", {"proc/cmdline": "isolcpus=3 nohz_full=3"}, "good", "rcu_nocbs", ""),
    ("CPU isolation", {"proc/cmdline": "nohz_full=all", f"{CPUS}/nohz_full": ""}, "good", "nohz_full", ""),
    (
        "CPU isolation",
        {f"{CPUS}/isolated": "", "proc/cmdline": "isolcpus=1,2 nohz_full=3"},
        "bad",
        "lacks isolcpus",
        "3",
    ),
    ("CPU isolation", {f"{CPUS}/isolated": "", "sys/fs/cgroup/cpuset.cpus.isolated": "2-3"}, "good", "CPU 3", ""),
    ("interrupts", {"proc/irq/24/smp_affinity_list": "0-3"}, "note", "1 of 2 may use CPU 3", "echo 0-2 |"),
    ("interrupts", {"proc/9/comm": "irqbalance"}, "good", "irqbalance moves them", ""),
    ("rtprio limit", {"proc/self/limits": LIMITS.format("unlimited", 79)}, "bad", "79", "rtprio 95"),
    ("rtprio limit", {"proc/self/limits": LIMITS.format("unlimited", 80)}, "good", "80", ""),
    ("RT throttling", {"proc/sys/kernel/sched_rt_runtime_us": "950000"}, "note", "950000 of 1000000", "=-1"),
    ("RT throttling", {"proc/sys/kernel/sched_rt_runtime_us": "0"}, "bad", "0 of 1000000 us", "=-1"),
    ("RT throttling", {"proc/sys/kernel/sched_rt_runtime_us": "1000000"}, "good", "off", ""),
    (
        "clock source",
        {"sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm"},
        "bad",
        "acpi",
        "tsc",
    ),
    (
        "clock source",
        {"sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock"},
        "note",
        "kvm",
        "",
    ),
    ("hypervisor", {"proc/cpuinfo": "flags : hypervisor"}, "note", "stolen 0 % now, 0.00 %", "bare machine"),
    ("hypervisor", {"sys/hypervisor/type": "xen", "proc/stat": ""}, "note", "unknown", "bare machine"),
    ("RT throttling", {"proc/sys/kernel/sched_rt_runtime_us": "9" * 400}, "unknown", "?", ""),
    ("CPUs", {f"{CPUS}/online": "0-1"}, "note", "2", "four cores"),
    ("CPUs", {f"{CPUS}/online": "0"}, "bad", "1", "four cores"),
    ("CPUs", {f"{CPUS}/online": "0-7"}, "good", "8", ""),
    ("swap", {"proc/swaps": SWAPS + "/dev/sda2 partition 8388604 0 -2"}, "good", "none in use", ""),
    ("memlock limit", {"proc/self/limits": LIMITS.format(65536, 95)}, "bad", "0 MiB", "memlock unlimited"),
]


@pytest.mark.parametrize(("name", "files", "level", "value", "fix"), VARIANTS)
def test_variant(name: str, files: dict[str, str], level: str, value: str, fix: str, tmp_path: Path) -> None:
    found = by_name(plant_tree(tmp_path, GOOD | files))[name]
    assert found.level == level
    assert value in found.value
    assert fix in found.fix
    assert bool(found.fix) == bool(fix)


def test_an_interrupt_that_has_moved_away_is_a_note(tmp_path: Path) -> None:
    moved = {"proc/irq/36/effective_affinity_list": "1"}  # it came to CPU 3 before, as its count says
    found = by_name(plant_tree(tmp_path, BAD | moved))["interrupts"]
    assert (found.level, found.value.partition(";")[0]) == ("note", "1 of 2 may use CPU 3")


def test_capabilities_lift_the_limits(tmp_path: Path) -> None:
    nice_and_lock = f"{1 << 23 | 1 << 14:016x}"
    found = by_name(plant_tree(tmp_path, BAD | {"proc/self/status": STATUS.format(nice_and_lock)}))
    assert found["rtprio limit"].level == found["memlock limit"].level == "good"


def test_steal_is_measured_over_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"proc/cpuinfo": "flags : hypervisor", "proc/stat": "cpu3 100 0 100 800 0 0 0 0 0 0\n"}
    plant_tree(tmp_path, files)

    def meanwhile(_: float) -> None:  # 20 jiffies pass, 5 of them stolen
        plant_tree(tmp_path, {"proc/stat": "cpu3 105 0 100 810 0 0 0 5 0 0\n"})

    monkeypatch.setattr(doctor_checks.time, "sleep", meanwhile)
    found = doctor_checks.hypervisor(tmp_path, CPU)
    assert (found.level, found.value) == ("bad", "yes; CPU 3 stolen 25 % now, 0.49 % since boot")


def test_small_and_closed_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_tree(tmp_path, GOOD)
    monkeypatch.setattr(doctor_checks.os, "access", lambda *_: False)
    assert "not writable" in doctor_checks.shared_memory(tmp_path).value
    monkeypatch.undo()
    monkeypatch.setattr(
        doctor_checks.os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 99, 99, 8 * 256, 0, 0, 0, 0, 255))
    )
    small = doctor_checks.shared_memory(tmp_path)
    assert (small.level, small.value) == ("bad", "8 MiB free")


def test_cpu_0_is_not_to_be_isolated(tmp_path: Path) -> None:
    found = doctor_checks.isolation(plant_tree(tmp_path, BAD), 0)
    assert "nohz_full=3" in found.fix
    assert "put the tick on CPU 3" in found.fix
    only = doctor_checks.isolation(plant_tree(tmp_path, BAD | {f"{CPUS}/online": "0"}), 0)
    assert (only.level, only.fix) == ("bad", "")


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("domain,managed_irq,2", {2}), ("", set()), ("3-1", set())]
)
def test_cpu_list(text: str, cpus: set[int]) -> None:
    assert cpu_list(text) == cpus


@given(st.sets(st.integers(0, 4000), max_size=30))
def test_cpu_text_and_back(cpus: set[int]) -> None:
    assert cpu_list(cpu_text(cpus)) == cpus


NUMBERS = st.text("0123456789-, \n:[]()CPUcpu", max_size=60).map(str.encode)
MANGLED = st.sampled_from(sorted({c for tree in (GOOD, BAD) for c in tree.values()})).flatmap(
    lambda c: st.integers(0, len(c)).map(lambda i: c[:i].encode())
)


@settings(max_examples=40, deadline=None)
@given(st.fixed_dictionaries({k: st.binary(max_size=80) | NUMBERS | MANGLED for k in BAD}))
def test_noise_in_every_file_raises_nothing(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = plant_tree(Path(folder), files)
        choose_cpu("auto", root)
        for each in CHECKS:
            found = each(root, CPU)
            assert found.level in ("good", "note", "bad", "unknown")
            assert found.name
            assert found.why


def test_folders_in_place_of_files_raise_nothing(tmp_path: Path) -> None:
    for name in GOOD:
        (tmp_path / name).mkdir(parents=True)
    for each in CHECKS:
        each(tmp_path, CPU)


def test_a_check_that_fails_becomes_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: Path, cpu: int) -> Finding:
        raise RuntimeError("no luck")

    monkeypatch.setattr(doctor_checks, "CHECKS", [broken])
    assert examine(0, tmp_path) == (
        Finding(
            "broken", "unknown", "RuntimeError: no luck", "The check itself failed: please report it with this line."
        ),
    )


def test_each_check_has_its_own_name_and_reason() -> None:
    names = [f.name for f in examine(0, Path("/nonexistent"))]
    assert len(set(names)) == len(names) == len(CHECKS)
    assert all(c.__doc__ for c in CHECKS)


@pytest.mark.parametrize(
    ("attempt", "run", "fix"),
    [
        ("_try_fifo", doctor_checks.realtime_class, "rtprio 95"),
        ("_try_mlockall", doctor_checks.memory_lock, "memlock unlimited"),
    ],
)
def test_a_refusal_is_bad(
    attempt: str, run: Callable[[Path, int], Finding], fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, attempt, lambda: "Operation not permitted")
    refused = run(ROOT, 0)
    assert refused.level == "bad"
    assert "Operation not permitted" in refused.value
    assert fix in refused.fix
    monkeypatch.setattr(doctor_checks, attempt, lambda: "")
    assert run(ROOT, 0).level == "good"


def test_trying_fifo_tells_the_truth_and_leaves_no_trace() -> None:
    ask = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))"
    allowed = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False).returncode == 0
    before = os.sched_getscheduler(0)
    assert (doctor_checks._try_fifo() == "") == allowed
    assert os.sched_getscheduler(0) == before


def test_trying_mlockall_leaves_nothing_locked() -> None:
    def locked() -> str:
        return next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmLck"))

    before = locked()
    doctor_checks._try_mlockall()
    assert locked() == before


def test_locked_memory_is_not_unlocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_tree(tmp_path, {"proc/self/status": "VmLck:\t    4096 kB\n"})
    monkeypatch.setattr(doctor_checks, "ROOT", tmp_path)
    monkeypatch.setattr(doctor_checks, "_try_mlockall", lambda: pytest.fail("would have unlocked a running node"))
    assert doctor_checks.memory_lock(tmp_path).level == "good"


def finding(name: str, level: doctor_checks.Level, fix: str = "do") -> Finding:
    return Finding(name, level, "v", "w", fix)


def test_advice_bad_first_then_rank_each_remedy_once() -> None:
    findings = [
        finding("a", "note", "1"),
        finding("b", "bad", "2"),
        finding("c", "good", "3"),
        finding("d", "bad", "2"),
        finding("e", "bad", "4"),
        finding("f", "bad", ""),
        finding("g", "unknown", "5"),
    ]
    assert [f.name for f in advice(findings)] == ["b", "e", "a"]


def test_checks_alone_bring_no_compiler() -> None:
    code = "import sys, hilnode.report.doctor as d; d.diagnose(probe=False); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_diagnose_this_machine_without_probe() -> None:
    found = diagnose(probe=False)
    assert found.grade == "not measured"
    assert found.probe is None
    assert len(found.findings) == len(CHECKS)
    assert found.cpu == choose_cpu("auto")
    json.dumps(doctor.to_json(found))


def test_diagnose_this_machine_with_probe() -> None:
    found = diagnose(cpu=0, seconds=0.05)
    assert found.cpu == 0
    assert found.probe is not None
    plain = json.loads(json.dumps(doctor.to_json(found)))
    assert plain["probe"]["samples"] == 50
    assert plain["probe"]["max_us"] == found.probe.max_us
    assert plain["grade"] in {"excellent", "good", "usable", "slack needed", "not suited"}
    assert [f["name"] for f in plain["findings"]] == [f.name for f in found.findings]


def shown(diagnosis: Diagnosis) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(doctor.render(diagnosis))
    return out.getvalue()


@pytest.mark.usefixtures("locked_latency")
def test_report_order_and_copyable_commands(tmp_path: Path) -> None:
    findings = examine(CPU, plant_tree(tmp_path, BAD))
    text = shown(Diagnosis(CPU, "usable", "A sentence.", findings))
    order = [
        "usable",
        "A sentence.",
        "What would help most",
        " 1. kernel",
        " 3. clock",
        "why it matters",
        "What else",
        " 4.",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    lines = set(text.splitlines())  # with nothing behind: a blank after a backslash would break the command
    for f in advice(findings):
        assert {f"    {line}" for line in f.fix.splitlines()} <= lines
    assert doctor.to_json(Diagnosis(CPU, "usable", "", findings))["changes"] == ["kernel", "hypervisor", "clock source"]


def test_report_prints_brackets_as_they_are() -> None:
    odd = (Finding("x", "bad", "[bold]v[/]", "w", "echo [/nothing]"),)
    text = shown(Diagnosis(0, "good", "[red]s", odd))
    assert "[bold]v[/]" in text
    assert "echo [/nothing]" in text
    assert "[red]s" in text


def test_report_of_a_good_machine_advises_nothing(tmp_path: Path) -> None:
    text = shown(Diagnosis(CPU, "excellent", "s", examine(CPU, plant_tree(tmp_path, GOOD))))
    assert "help" not in text
