"""Checks for what makes a PC unfit for a real-time loop, one function each.

Every check reads /proc, /sys and /dev below a root folder and answers with one `Finding`; none raises, whatever it
meets there. The checks stand in the order in which their remedy helps: the report takes its advice from the top.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hilnode.report.proc_files import (
    boot_argument,
    cpu_text,
    has_capability,
    names,
    number,
    read,
    self_status,
    soft_limit,
    whole,
)
from hilnode.shared.realtime import ROOT, cpu_list, isolated_cpus, online_cpus

Level = Literal["good", "note", "bad", "unknown"]

PRIORITY = 80
STEAL_WINDOW_S = 0.2
CAP_IPC_LOCK = 14
CAP_SYS_NICE = 23
MCL_CURRENT = 1
MCL_ONFAULT = 4
MIB = 1 << 20
SHM_LOW = 64 * MIB
CSTATE_GOOD_US = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `fix` is what to type, one command a line, with `#` before what is not a command."""

    name: str
    level: Level
    value: str
    why: str
    fix: str = ""


Check = Callable[[Path, int], Finding]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check; its place in this file is its rank."""
    CHECKS.append(function)
    return function


def _boot_fix(arguments: str) -> str:
    """All comments: a block that is pasted whole must not reboot the machine."""
    edit = f"# in /etc/default/grub add to GRUB_CMDLINE_LINUX_DEFAULT:\n#   {arguments}"
    return f"{edit}\n# then: sudo update-grub && sudo reboot"


def _limit_fix(item: str, value: str) -> str:
    return (
        f"sudo tee -a /etc/security/limits.d/realtime.conf <<< \\\n'@realtime - {item} {value}'\n"
        "sudo groupadd -f realtime && sudo usermod -aG realtime $USER\n# then log in again"
    )


@check
def shared_memory(root: Path = ROOT, cpu: int = 0) -> Finding:
    """The ring and the mailboxes live in /dev/shm: without it the node cannot start."""
    name, folder = "shared memory", root / "dev/shm"
    why = "Ring and mailboxes live in /dev/shm; too small, and the node dies when it touches the last page."
    fix = "sudo mount -o remount,rw,size=1G /dev/shm\n# in a container: docker run --shm-size=1g ..."
    try:
        room = os.statvfs(folder)
    except OSError:
        return Finding(name, "bad", "no /dev/shm", why, "sudo mount -t tmpfs -o size=1G tmpfs /dev/shm")
    free = room.f_bavail * room.f_frsize
    value = f"{free // MIB} MiB free"
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding(name, "bad", f"{value}, not writable", why, f"sudo chmod 1777 /dev/shm\n{fix}")
    return Finding(name, "bad", value, why, fix) if free < SHM_LOW else Finding(name, "good", value, why)


@check
def realtime_class(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Limits and capabilities promise; only trying tells (a container or a cgroup may still refuse)."""
    name = "SCHED_FIFO"
    why = "Without it every busy process delays the tick by whole milliseconds."
    if root != ROOT:
        return Finding(name, "unknown", "not tried", "It can be tried on the running machine only.")
    if refused := _try_fifo():
        return Finding(name, "bad", f"refused: {refused}", why, _limit_fix("rtprio", "95"))
    return Finding(name, "good", f"priority {PRIORITY} granted", why)


def _try_fifo() -> str:
    """Why SCHED_FIFO is refused, or an empty string. The thread it is tried in ends with it."""

    def ask() -> str:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        except OSError as e:
            return e.strerror or str(e)
        return ""

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result()


@check
def kernel_preemption(root: Path = ROOT, cpu: int = 0) -> Finding:
    """PREEMPT_RT bounds the time the kernel keeps the CPU to itself; nothing else does."""
    name = "kernel"
    release, build = read(root / "proc/sys/kernel/osrelease"), read(root / "proc/sys/kernel/version")
    if not build:
        return Finding(name, "unknown", release or "?", "/proc/sys/kernel/version cannot be read.")
    fix = _kernel_fix(root)
    if read(root / "sys/kernel/realtime") == "1" or re.search(r"PREEMPT[_ ]RT\b", build):
        return Finding(name, "good", f"{release}, PREEMPT_RT", "The kernel can be interrupted nearly everywhere.")
    mode = _preempt_mode(root, build)
    why = "Without PREEMPT_RT a driver or a system call of any process may hold the CPU for milliseconds."
    if mode in ("full", "lazy"):
        return Finding(name, "note", f"{release}, preempt={mode}", why, fix)
    if mode == "dynamic":
        why += " Which mode is on cannot be read here."
        return Finding(name, "note", f"{release}, preempt=?", why, f"{fix}\n# or boot with preempt=full")
    return Finding(name, "bad", f"{release}, preempt={mode}", why, f"{fix}\n# or boot with preempt=full")


def _kernel_fix(root: Path) -> str:
    system = re.search(r"^ID=\"?(\w+)", read(root / "etc/os-release") or "", re.MULTILINE)
    return {
        "debian": "sudo apt install linux-image-rt-$(dpkg --print-architecture)",
        "ubuntu": "sudo pro attach && sudo pro enable realtime-kernel",
    }.get(system[1] if system else "", "# install your distribution's PREEMPT_RT kernel")


def _preempt_mode(root: Path, build: str) -> str:
    """none, voluntary, lazy or full; `dynamic` where the kernel can switch and does not tell to what."""
    if "PREEMPT_DYNAMIC" not in build:
        return "full" if "PREEMPT" in build else "none or voluntary"
    chosen = re.search(r"\((\w+)\)", read(root / "sys/kernel/debug/sched/preempt") or "")
    return chosen[1] if chosen else boot_argument(root, "preempt") or "dynamic"


@check
def hypervisor(root: Path = ROOT, cpu: int = 0) -> Finding:
    """A virtual CPU runs when its host lets it: stolen time is time the tick was frozen."""
    name = "hypervisor"
    info = read(root / "proc/cpuinfo")
    if info is None:
        return Finding(name, "unknown", "?", "/proc/cpuinfo cannot be read.")
    kind = read(root / "sys/hypervisor/type")
    if not kind and not re.search(r"^flags\s*:.*\bhypervisor\b", info, re.MULTILINE):
        return Finding(name, "good", "none", "The CPU is real: no host can take it away.")
    before = _steal(root, cpu)
    time.sleep(STEAL_WINDOW_S)
    after = _steal(root, cpu)
    why = "In a virtual machine the host may stop the CPU at any time, and no setting in here prevents it."
    fix = f"# run the node on the bare machine, or pin this CPU on the host, such as:\nvirsh vcpupin DOMAIN {cpu} {cpu}"
    if before is None or after is None:
        return Finding(name, "note", "yes, stolen time unknown", why, fix)
    now, ever = max(after[0] - before[0], 0), 100 * after[0] / max(after[1], 1)
    share = 100 * now / max(after[1] - before[1], 1)
    value = f"yes; CPU {cpu} stolen {share:.0f} % now, {ever:.2f} % since boot"
    return Finding(name, "bad" if now > 0 or ever > 0.1 else "note", value, why, fix)


def _steal(root: Path, cpu: int) -> tuple[int, int] | None:
    """(stolen, all) jiffies of one CPU since boot."""
    line = re.search(rf"^cpu{cpu} ([0-9 ]+)$", read(root / "proc/stat") or "", re.MULTILINE)
    fields = [whole(f) or 0 for f in line[1].split()] if line else []
    return (fields[7], sum(fields[:8])) if len(fields) >= 8 else None


@check
def clock_source(root: Path = ROOT, cpu: int = 0) -> Finding:
    """The tick reads the clock several times; a slow clock is a slow tick."""
    name = "clock source"
    source = read(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    if not source:
        return Finding(name, "unknown", "?", "current_clocksource cannot be read.")
    if source in ("tsc", "arch_sys_counter", "timebase"):
        return Finding(name, "good", source, "Reading the time costs some 20-30 ns and no system call.")
    if source in ("hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies"):
        why = (
            "Each look at the clock is a system call and a slow bus read, 1 us or more. `dmesg | grep -i tsc` says why."
        )
        return Finding(name, "bad", source, why, _boot_fix("tsc=reliable clocksource=tsc"))
    return Finding(name, "note", source, "A paravirtual or unusual clock: fast enough as a rule, but the host's.")


@check
def governor(root: Path = ROOT, cpu: int = 0) -> Finding:
    """A loop that sleeps most of the time looks idle to the governor, which then slows its CPU down."""
    name, folder = "CPU frequency", root / "sys/devices/system/cpu"
    found = {c: read(folder / f"cpu{c}/cpufreq/scaling_governor") for c in _numbered(folder, "cpu")}
    known = {c: g for c, g in found.items() if g}
    if not known:
        return Finding(name, "unknown", "no governor", "Firmware or a host sets the frequency; look in the BIOS setup.")
    kinds = {g: cpu_text(c for c in known if known[c] == g) for g in sorted(set(known.values()))}
    value = "; ".join(f"{g} on {cpus}" for g, cpus in kinds.items())
    why = "A CPU that sleeps between ticks is clocked down, and then every tick begins slowly."
    fix = "sudo cpupower frequency-set -g performance   # package linux-cpupower"
    if set(kinds) == {"performance"}:
        return Finding(name, "good", value, "All CPUs keep their full speed.")
    return Finding(name, "note" if known.get(cpu) == "performance" else "bad", value, why, fix)


def _numbered(folder: Path, prefix: str) -> list[int]:
    """The numbers N of the entries `prefixN`."""
    found = (re.fullmatch(rf"{prefix}([0-9]{{1,9}})", n) for n in names(folder))
    return sorted(int(m[1]) for m in found if m)


@check
def idle_states(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Waking from a deep idle state takes its exit latency, at every tick."""
    name = "idle states"
    if boot_argument(root, "idle") == "poll":
        return Finding(name, "good", "idle=poll", "The CPU never sleeps.")
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/cpuidle"
    states = [folder / f"state{i}" for i in _numbered(folder, "state")]
    enabled = [(number(s / "latency") or 0, read(s / "name") or s.name) for s in states if number(s / "disable") != 1]
    if not enabled:
        return Finding(name, "unknown", "none listed", "Firmware or a host decides how deep this CPU sleeps.")
    slowest, state = max(enabled)
    value = f"{state}: {slowest} us to wake"
    if slowest <= CSTATE_GOOD_US:
        return Finding(name, "good", value, "Even the deepest idle state is left quickly.")
    fix = f"sudo cpupower idle-set --disable-by-latency {CSTATE_GOOD_US}   # package linux-cpupower"
    if os.access(root / "dev/cpu_dma_latency", os.W_OK):
        why = "/dev/cpu_dma_latency is writable, so the node keeps its CPU out of them while it runs."
        return Finding(name, "good", f"{value}, but held off", why)
    return Finding(name, "bad", value, "Every tick may begin that late, and /dev/cpu_dma_latency is not writable.", fix)


@check
def isolation(root: Path = ROOT, cpu: int = 0) -> Finding:
    """An isolated CPU runs the tick and nothing else, not even the kernel's housekeeping."""
    name = "CPU isolation"
    if read(root / "proc/cmdline") is None:
        return Finding(name, "unknown", "?", "/proc/cmdline cannot be read.")

    def on(key: str) -> bool:
        given = boot_argument(root, key)
        return given == "all" or cpu in cpu_list(given)

    nohz = on("nohz_full") or cpu in cpu_list(read(root / "sys/devices/system/cpu/nohz_full"))
    parts = {
        "isolcpus": cpu in isolated_cpus(root) or on("isolcpus"),
        "nohz_full": nohz,
        "rcu_nocbs": nohz or on("rcu_nocbs"),  # the kernel takes nohz_full to mean both
    }
    has, lacks = [k for k, v in parts.items() if v], [k for k, v in parts.items() if not v]
    if not lacks:
        return Finding(name, "good", f"CPU {cpu}: {', '.join(has)}", "The scheduler keeps other work off this CPU.")
    why = f"Other processes and the kernel's housekeeping share CPU {cpu} with the tick."
    fix = _isolation_fix(cpu, online_cpus(root))
    value = f"CPU {cpu}: {', '.join(has) or 'none'}; lacks {', '.join(lacks)}"
    return Finding(name, "note" if parts["isolcpus"] else "bad", value, why, fix)


def _isolation_fix(cpu: int, online: set[int]) -> str:
    """CPU 0 keeps the kernel's time and cannot be freed of it; an only CPU cannot be isolated at all."""
    best = cpu or max(online, default=0)
    if not best:
        return ""
    move = "" if best == cpu else f"# put the tick on CPU {best}: CPU 0 has to keep the kernel's time\n"
    boot = _boot_fix(f"isolcpus=managed_irq,domain,{best} nohz_full={best} rcu_nocbs={best}")
    return f"{move}{boot}\n# and give the node that CPU: cpu = {best} under [node]"


@check
def interrupts(root: Path = ROOT, cpu: int = 0) -> Finding:
    """An interrupt on the tick's CPU goes before the tick, whatever its priority."""
    name, folder = "interrupts", root / "proc/irq"
    numbers = _numbered(folder, "")
    if not numbers:
        return Finding(name, "unknown", "?", "/proc/irq cannot be read.")
    may = [n for n in numbers if cpu in cpu_list(read(folder / f"{n}/smp_affinity_list"))]
    counts = _interrupt_counts(root, cpu)
    landing = (counts[n] for n in may if n in counts and _lands(folder / str(n), cpu))
    busy = sorted((c for c in landing if c[0] > 0), reverse=True)
    balanced = any(read(root / f"proc/{pid}/comm") == "irqbalance" for pid in _numbered(root / "proc", ""))
    tail = "; irqbalance moves them about" if balanced else ""
    if not may:
        return Finding(name, "good", f"none may use CPU {cpu}{tail}", "No device interrupts the tick.")
    others = cpu_text(online_cpus(root) - {cpu})
    fix = f"for f in /proc/irq/*/smp_affinity_list; do echo {others} | sudo tee $f; done" if others else ""
    if balanced and fix:
        fix = f"sudo systemctl disable --now irqbalance\n{fix}"
    if not busy:
        why = f"None comes to CPU {cpu} now, but nothing keeps them away."
        return Finding(name, "note", f"{len(may)} of {len(numbers)} may use CPU {cpu}{tail}", why, fix)
    most = ", ".join(what for _, what in busy[:2]) + (", ..." if len(busy) > 2 else "")
    why = "A device's interrupt goes before the tick, whatever the tick's priority."
    return Finding(name, "bad", f"{len(busy)} of {len(numbers)} come to CPU {cpu}: {most}{tail}", why, fix)


def _lands(irq: Path, cpu: int) -> bool:
    """Whether the interrupt is sent to this CPU now; one that does not tell is taken to."""
    effective = cpu_list(read(irq / "effective_affinity_list"))
    return not effective or cpu in effective


def _interrupt_counts(root: Path, cpu: int) -> dict[int, tuple[int, str]]:
    """Interrupt number -> (times it came to `cpu`, who asked for it), from /proc/interrupts."""
    head, *lines = (read(root / "proc/interrupts") or "").splitlines() or [""]
    columns = head.split()
    counts: dict[int, tuple[int, str]] = {}
    for line in lines:
        number, _, rest = line.partition(":")
        irq, fields = whole(number), rest.split()
        if irq is not None and f"CPU{cpu}" in columns and len(fields) > len(columns):
            counts[irq] = (whole(fields[columns.index(f"CPU{cpu}")]) or 0, fields[-1])
    return counts


@check
def memory_lock(root: Path = ROOT, cpu: int = 0) -> Finding:
    """A page fault in the tick costs microseconds, from disc milliseconds; locked memory has none."""
    name = "memory lock"
    why = "Memory that is not locked may be taken away, and the tick waits for a page fault to bring it back."
    if root != ROOT:
        return Finding(name, "unknown", "not tried", "It can be tried on the running machine only.")
    if (whole(self_status(root, "VmLck")) or 0) > 0:
        return Finding(name, "good", "this process holds locked memory", why)
    if refused := _try_mlockall():
        return Finding(name, "bad", f"mlockall refused: {refused}", why, _limit_fix("memlock", "unlimited"))
    return Finding(name, "good", "mlockall granted", why)


def _try_mlockall() -> str:
    """Why mlockall is refused, or an empty string. ONFAULT asks for the same right without loading every page."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(MCL_CURRENT | MCL_ONFAULT) != 0:
            return os.strerror(ctypes.get_errno())
        libc.munlockall()
    except (OSError, AttributeError) as e:
        return str(e)
    return ""


@check
def realtime_limit(root: Path = ROOT, cpu: int = 0) -> Finding:
    """What the login allows; the next terminal may differ from this one."""
    name, why = "rtprio limit", f"The tick asks for priority {PRIORITY}."
    limit = soft_limit(root, "Max realtime priority")
    if limit is None:
        return Finding(name, "unknown", "?", "/proc/self/limits cannot be read.")
    if limit == "unlimited" or (whole(limit) or 0) >= PRIORITY:
        return Finding(name, "good", limit, why)
    if has_capability(root, CAP_SYS_NICE):
        return Finding(name, "good", f"{limit}, lifted by CAP_SYS_NICE", why)
    return Finding(name, "bad", limit, f"{why} The limit is lower.", _limit_fix("rtprio", "95"))


@check
def memory_limit(root: Path = ROOT, cpu: int = 0) -> Finding:
    """mlockall counts every mapped byte against this, so that only `unlimited` is enough for a Python process."""
    name, why = "memlock limit", "The node locks all its memory, several hundred MiB with Python and numba."
    limit = soft_limit(root, "Max locked memory")
    if limit is None:
        return Finding(name, "unknown", "?", "/proc/self/limits cannot be read.")
    if limit == "unlimited":
        return Finding(name, "good", limit, why)
    value = f"{int(limit) // MIB} MiB"
    if has_capability(root, CAP_IPC_LOCK):
        return Finding(name, "good", f"{value}, lifted by CAP_IPC_LOCK", why)
    return Finding(name, "bad", value, why, _limit_fix("memlock", "unlimited"))


@check
def cpu_count(root: Path = ROOT, cpu: int = 0) -> Finding:
    """One CPU for the tick, the rest for drivers, bridge, watchdog and Linux."""
    name, why = "CPUs", "Besides the tick there are drivers, the bridge, the watchdog and Linux itself."
    count = len(online_cpus(root))
    if not count:
        return Finding(name, "unknown", "?", "/sys/devices/system/cpu/online cannot be read.")
    if count >= 4:
        return Finding(name, "good", str(count), why)
    fix = "# use a PC with four cores or more (in a virtual machine: give it more CPUs)"
    return Finding(name, "note" if count > 1 else "bad", str(count), why, fix)


@check
def hyperthread(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Two hyperthreads share one core's units and caches: the sibling's work slows the tick."""
    name = "hyperthread"
    siblings = cpu_list(read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    if cpu not in siblings:
        return Finding(name, "unknown", "?", f"The topology of CPU {cpu} cannot be read.")
    others = siblings - {cpu}
    if not others:
        return Finding(name, "good", f"CPU {cpu} has its core alone", "Nothing shares its units and caches.")
    why = "Its sibling shares the core: work there makes the same tick up to twice as long."
    fix = "\n".join(f"echo 0 | sudo tee /sys/devices/system/cpu/cpu{c}/online" for c in sorted(others))
    return Finding(name, "note", f"CPU {cpu} shares its core with CPU {cpu_text(others)}", why, fix)


@check
def throttling(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Linux takes the CPU from real-time threads that use more than their share of a second."""
    name = "RT throttling"
    runtime = number(root / "proc/sys/kernel/sched_rt_runtime_us")
    period = number(root / "proc/sys/kernel/sched_rt_period_us") or 1_000_000
    if runtime is None:
        return Finding(name, "unknown", "?", "/proc/sys/kernel/sched_rt_runtime_us cannot be read.")
    if runtime < 0 or runtime >= period > 0:
        return Finding(name, "good", "off", "A real-time thread may use its CPU for as long as it needs.")
    share = 100 * runtime / max(period, 1)
    why = f"A tick that keeps its CPU busy for more than {share:.0f} % of the time is stopped for the rest of it."
    fix = "sudo sysctl -w kernel.sched_rt_runtime_us=-1"
    return Finding(name, "note" if share >= 90 else "bad", f"{runtime} of {period} us", why, fix)


@check
def swap(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Drivers and bridge are Python: what was swapped out comes back at the speed of the disc."""
    name, text = "swap", read(root / "proc/swaps")
    if text is None:
        return Finding(name, "unknown", "?", "/proc/swaps cannot be read.")
    rows = [line.split() for line in text.splitlines()[1:]]
    used = sum(whole(r[3]) or 0 for r in rows if len(r) >= 5)
    if not used:
        return Finding(name, "good", "none in use" if rows else "none", "No memory has to be fetched from disc.")
    why = "Memory has run short: what is not locked comes back from disc, in milliseconds."
    return Finding(name, "bad", f"{used // 1024} MiB in use", why, "sudo swapoff -a")


@check
def huge_pages(root: Path = ROOT, cpu: int = 0) -> Finding:
    """Building huge pages behind a process's back stops it while its pages are moved."""
    name, file = "huge pages", "sys/kernel/mm/transparent_hugepage/enabled"
    chosen = re.search(r"\[(\w+)\]", read(root / file) or "")
    if not chosen:
        return Finding(name, "unknown", "?", f"/{file} cannot be read.")
    if chosen[1] != "always":
        return Finding(name, "good", chosen[1], "Nobody gets them without asking.")
    why = "The kernel gathers pages of any process into huge ones and halts it meanwhile."
    return Finding(name, "note", "always", why, f"echo madvise | sudo tee /{file}")


def examine(cpu: int, root: Path = ROOT) -> tuple[Finding, ...]:
    """Run every check. One that fails all the same becomes a finding: a doctor does not faint."""

    def run(each: Check) -> Finding:
        try:
            return each(root, cpu)
        except Exception as e:
            why = "The check itself failed: please report it with this line."
            return Finding(each.__name__, "unknown", f"{type(e).__name__}: {e}", why)

    return tuple(run(c) for c in CHECKS)
