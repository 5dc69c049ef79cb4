"""The command line. Heavy parts are imported where they are used, so that `--help` and a start are quick.

Exit codes: 0 ended as asked · 2 bad config · 3 tripped · 4 overrun halt · 5 another node holds the name or port
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilnode import __version__
from hilnode.cli import record as cli_record
from hilnode.cli.common import err, fail, out, say
from hilnode.cli.keys import keys
from hilnode.cli.mesh import mesh
from hilnode.cli.monitor import monitor
from hilnode.cli.scope import scope
from hilnode.cli.service import install_service
from hilnode.cli.view import view
from hilnode.shared.codes import ExitCode

if TYPE_CHECKING:
    from hilnode.cli.probe import Probe
    from hilnode.config.config import Config
    from hilnode.node.node import Node


EXIT_CODES = "Exit codes: 0 ended as asked, 2 bad config, 3 tripped, 4 overrun halt, 5 name or port in use."

app = typer.Typer(
    name="hilnode",
    help="Put a real controller in the loop with a simulated machine.\n\n"
    "Start with [bold]hilnode run[/bold]: it needs no hardware. " + EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(keys, name="keys")
app.command()(install_service)
app.command()(mesh)
app.command()(monitor)
app.command()(scope)
app.command()(view)

ConfigPath = Annotated[Path | None, typer.Argument(help="A TOML file; without one, the default machine runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def default_config() -> Path:
    """The config that runs when none is named: beside the packages in a checkout, inside them in an install."""
    here = Path(__file__).resolve().parents[1]
    for folder in (here.parent / "configs", here / "_configs"):
        if (folder / "excavator.toml").exists():
            return folder / "excavator.toml"
    raise FileNotFoundError(f"configs/excavator.toml is missing beside {here}: install hilnode again")


def _load(path: Path | None, **changes: Any) -> Config:
    """The config with the command line's changes, or a clear message and exit code 2."""
    from hilnode.config.config import ConfigError, load, overlay

    try:
        return overlay(load(path or default_config()), **{k: v for k, v in changes.items() if v is not None})
    except ConfigError as error:
        fail(error, ExitCode.BAD_CONFIG)


@app.command(epilog=EXIT_CODES)
def run(
    config: ConfigPath = None,
    for_s: Annotated[
        float | None, typer.Option("--for", min=0.001, metavar="S", help="End after S seconds of ticks.")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", metavar="HZ", help="Ticks per second (node.rate_hz).")] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for this run's files. Default: a new one in runs/."),
    ] = None,
    speed: Annotated[
        float | None, typer.Option("--speed", help="Wall-clock speed: 0.1 is slow motion (node.speed).")
    ] = None,
    free: Annotated[bool, typer.Option("--free", help="As fast as possible instead of real time.")] = False,
    record: Annotated[
        bool | None,
        typer.Option("--record/--no-record", help="Record every row to rows.mcap (log.record).", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the config: --set node.rate_hz=500"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No status line.")] = False,
) -> None:
    """Run a node: step the plant in real time, talk to the devices, log the timing.

    [bold]hilnode run[/bold] runs the default machine,
    [bold]hilnode run bench.toml --for 10[/bold] a config of yours for ten seconds.
    Ctrl-C stops it with the devices at their safe values.
    """
    pace = "free" if free else None
    changes = {"rate_hz": rate, "speed": speed, "pace": pace, "record": record, **_settings(settings or [])}
    loaded = _load(config, **changes)
    raise typer.Exit(_run(loaded, for_s, directory, quiet))


def _settings(given: list[str]) -> dict[str, Any]:
    from hilnode.core.settings import NoSetting, parse_settings

    try:
        return parse_settings(given, "node.rate_hz=500")
    except NoSetting as error:
        fail(f"--set {error}", ExitCode.BAD_CONFIG)


def _run(config: Config, for_s: float | None, directory: Path | None, quiet: bool) -> int:
    from hilnode.node.node import Node
    from hilnode.node.run_folder import new_directory
    from hilnode.node.systemd import Notifier

    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[_ToConsole()])
    began = time.monotonic()
    place = new_directory(config, directory)
    last_tick = round(for_s * 1e9 / config.node.period_ns) if for_s else 0
    with _explained():
        node = Node(config, directory=place, last_tick=last_tick, say=say)
    systemd = Notifier()
    with node:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, lambda *_: node.request_stop())
        with _explained():
            node.start()
        say(f"first tick after {time.monotonic() - began:.2f} s; files in {place}")
        systemd.tell("READY=1")
        _show_until_ended(node, quiet, lambda: systemd.alive(lambda: _status(node)))
        systemd.tell("STOPPING=1")
        stuck = node.stuck
    timing = node.timing()
    say(
        f"{timing.rows} ticks, {timing.overruns} overruns, wake p99 {timing.wake_p99} us, "
        f"step p99 {timing.step_p99} us. More: hilnode jitter {place}"
    )
    if stuck:  # the loop's thread can not be ended: the process must go with it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(node.exit_code)
    return node.exit_code


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Whatever keeps a node from being built becomes a clear message and the right exit code."""
    from drivers.base import OptionError
    from hilnode.config.config import ConfigError
    from hilnode.core.registry import KindError
    from hilnode.node.node import StartFailed
    from hilnode.node.ports import PortBusy
    from hilnode.node.run_folder import FolderUsed
    from hilnode.shared.lockfree.segment import SegmentBusy, SegmentError

    try:
        yield
    except (ConfigError, KindError, OptionError, FolderUsed) as error:
        fail(error, ExitCode.BAD_CONFIG)
    except (SegmentBusy, PortBusy) as error:
        fail(error, ExitCode.BUSY)
    except (SegmentError, StartFailed) as error:
        fail(error)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; --out names another folder" if error.filename else error)


class _ToConsole(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def _show_until_ended(node: Node, quiet: bool, meanwhile: Callable[[], None]) -> None:
    """A status line that renews itself on a terminal; every ten seconds elsewhere."""
    if quiet or not err.is_terminal:
        said = time.monotonic()
        while not node.wait(0.2):
            meanwhile()
            if not quiet and time.monotonic() - said >= 10.0:
                said = time.monotonic()
                say(_status(node))
        return
    from rich.live import Live

    with Live(_status(node), console=err, refresh_per_second=4, transient=True) as live:
        while not node.wait(0.25):
            meanwhile()
            live.update(_status(node))


def _status(node: Node) -> str:
    t = node.timing()
    period = node.config.node.period_ns / 1e3
    headroom = 100 * (1 - (t.step_p99 + t.wake_p99) / period)
    parts = [
        f"{node.state.name.lower():<10} t {node.steps * node.config.node.period_ns * 1e-9:8.2f} s",
        f"{node.config.node.rate_hz:g} Hz",
        f"wake p99 {t.wake_p99} us",
        f"step p99 {t.step_p99} us",
        f"headroom {headroom:.0f} %",
        f"overruns {t.overruns}",
    ]
    for name, (health, _) in node.driver_states().items():
        parts.append(f"{name} {health.name.lower()}" + " (twin)" * node.runners[name].twin_is_in)
    return " · ".join(parts)


@app.command()
def check(
    config: Annotated[Path, typer.Argument(help="A TOML file.")],
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with a config, or what it would run. Nothing is started. Exit code 2 if it is bad."""
    from drivers import registry as driver_kinds
    from hilnode.config.key_check import check_keys
    from hilnode.config.wiring import resolve
    from plant import registry as plant_kinds

    loaded = _load(config)
    with _explained():
        check_keys(loaded)
        plant = plant_kinds.create(loaded.plant.kind, loaded.node.period_ns * 1e-9, loaded.plant.options)
        devices = {
            n: driver_kinds.create(d.kind, n, d.options, loaded.source.folder) for n, d in loaded.drivers.items()
        }
        wiring = resolve(
            loaded,
            plant_inputs=plant.inputs,
            plant_outputs=plant.outputs,
            plant_parameters=plant.parameters,
            device_inputs={n: d.inputs for n, d in devices.items()},
            device_outputs={n: d.outputs for n, d in devices.items()},
        )
    if as_json:
        out.print_json(json.dumps({"config": loaded.model_dump(mode="json", by_alias=True)}))
        return
    out.print(
        f"{config} is good: {loaded.plant.kind} at {loaded.node.rate_hz:g} Hz, {len(wiring.inputs)} inputs, "
        f"{len(wiring.outputs)} outputs, {len(wiring.commands)} device commands, {len(devices)} drivers",
        highlight=False,
    )


@app.command()
def jitter(
    run_dir: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A run's folder. Default: the newest one in runs/.")
    ] = None,
    as_json: AsJson = False,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Draw histogram, time series and budget.")
    ] = None,
) -> None:
    """Read a run's timing log: wake latency, step time, period error, overruns and their likely causes."""
    from hilnode.report import jitter
    from hilnode.report.jitter_plot import PlotUnavailable, draw
    from hilnode.shared import blackbox, timinglog

    try:
        log = timinglog.read(jitter.find_log(run_dir))
    except (jitter.RunNotFound, timinglog.TimingLogError, OSError) as error:
        fail(error)
    report = jitter.report(log)
    if png:
        try:
            draw(log, report, png)
        except (PlotUnavailable, OSError) as error:
            fail(error)
    if as_json:
        out.print_json(json.dumps(jitter.to_json(report)))
        return
    out.print(jitter.render(report))
    for incident in blackbox.cut(log):
        out.print(f"overrun at tick {incident.tick}: {blackbox.guess_cause(incident)}", highlight=False)
    if png:
        out.print(f"drawn to {png}", highlight=False)


@app.command()
def doctor(
    seconds: Annotated[float, typer.Option("--seconds", min=0.2, max=600, help="How long to probe the latency.")] = 3.0,
    cpu: Annotated[
        int | None, typer.Option("--cpu", min=0, help="CPU to probe. Default: the one a node would take.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine this machine: kernel, governor, interrupts, limits, latency. Gives a grade and what to change."""
    from hilnode.report import doctor

    with err.status("probing ...") if err.is_terminal else contextlib.nullcontext():
        diagnosis = doctor.diagnose(cpu, seconds)
    if as_json:
        out.print_json(json.dumps(doctor.to_json(diagnosis)))
    else:
        out.print(doctor.render(diagnosis))


@app.command()
def devices(as_json: AsJson = False) -> None:
    """List serial ports, HID devices, CAN interfaces and DAQ cards, with what to write in the config."""
    from hilnode.cli import devices

    found = devices.list_devices()
    if as_json:
        out.print_json(json.dumps(devices.to_json(found)))
    else:
        out.print(devices.render(found))


NodeName = Annotated[
    str | None, typer.Option("--node", metavar="NAME", help="Which node (node.name). Default: the one that runs.")
]


@app.command()
def drivers(node: NodeName = None, as_json: AsJson = False) -> None:
    """Show how the drivers of a running node are doing: who is in, counters, age, periods, last trouble."""
    from hilnode.report import driver_table
    from hilnode.shared.local_rpc import NotAnswered, which_node
    from hilnode.shared.lockfree.segment import SegmentError

    try:
        reports = driver_table.look(which_node(node))
    except (NotAnswered, SegmentError, OSError) as error:
        fail(error)
    if as_json:
        out.print_json(json.dumps(driver_table.to_json(reports)))
    else:
        out.print(driver_table.render(reports))


@app.command()
def swap(
    driver: Annotated[str, typer.Argument(help="A driver of the running node.")],
    to: Annotated[str, typer.Argument(metavar="real|twin", help="What to put in.")],
    node: NodeName = None,
) -> None:
    """Put a driver's twin in the place of its device, or the device back, while the node runs.

    What was in gets its safe values first. A device that goes in while the node is running gets live values at once.
    """
    from hilnode.shared.local_rpc import NotAnswered, call, which_node

    try:
        tick = call(which_node(node), "swap", driver=driver, to=to)
    except NotAnswered as error:
        fail(error)
    out.print(f"tick {tick}: driver {driver}: {'its twin' if to == 'twin' else 'the device itself'} is in")


@app.command()
def probe(
    driver: Annotated[str, typer.Argument(help="A driver of the config, or a kind: udp:listen=127.0.0.1:5000")],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="More options, as in TOML: 'inputs=[\"x\"]'")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The TOML file that has it.")] = None,
    for_s: Annotated[
        float | None, typer.Option("--for", min=0.001, metavar="S", help="Look for S seconds. Default: until Ctrl-C.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open one device without a node: live values, raw and scaled, rate and evenness. Nothing is written to it.

    Exit code 1 if the device cannot be opened or says nothing.
    """
    from drivers.base import DriverError
    from hilnode.cli.probe import Probe, driver_of
    from hilnode.core.signals import UnknownName

    with _explained():
        try:
            probe = Probe(driver_of(driver, settings or [], lambda: _load(config)))
        except UnknownName as error:
            fail(error, ExitCode.BAD_CONFIG)
    try:
        probe.open()
    except DriverError as error:
        fail(f"driver {driver}: {error}")
    if not probe.driver.inputs:
        probe.driver.close()
        out.print(
            f"{driver} is there. It has no inputs to look at, and a probe writes nothing.",
            highlight=False,
            soft_wrap=True,
        )
        return
    _watch(probe, 1.0 if for_s is None and as_json else for_s, live=out.is_terminal and not as_json)
    if as_json:
        out.print_json(json.dumps(probe.as_dict()))
    else:
        out.print(probe.render())
    raise typer.Exit(int(ExitCode.OK if probe.frames else ExitCode.REFUSED))


def _watch(probe: Probe, for_s: float | None, *, live: bool) -> None:
    """Read in a thread of its own, so that drawing does not get into its periods more than it must."""
    import threading

    from rich.live import Live

    reader = threading.Thread(target=probe.read_for, args=(for_s or 1e9,), name="probe")
    reader.start()
    try:
        with Live(console=out, refresh_per_second=2, transient=True) if live else contextlib.nullcontext() as view:
            while reader.is_alive():
                reader.join(0.5)
                if view is not None:
                    view.update(probe.render())
    except KeyboardInterrupt:
        pass
    finally:
        probe.ending.set()
        reader.join()


@app.command()
def calibrate(
    driver: Annotated[str, typer.Argument(help="A driver of kind hid in the config.")],
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The config it stands in.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write. Default: what the driver's calibration says."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.1, max=600, help="End each step by itself instead of with Enter.")
    ] = None,
) -> None:
    """Measure the axes of a joystick, of pedals or of a wheel: centre, range and noise, to a file the driver reads."""
    from drivers.base import DriverError
    from hilnode.cli import calibrate

    loaded = _load(config)
    names = [n for n, d in loaded.drivers.items() if d.kind == "hid"]
    if driver not in names:
        where = f"{config or 'the default config'} has {', '.join(names) or 'none'}"
        fail(f"{driver} is no driver of kind hid: {where}. Name the config with --config", ExitCode.BAD_CONFIG)
    options = loaded.drivers[driver].options
    file = to or loaded.source.folder / str(options.get("calibration", f"{driver}-calibration.toml"))
    with _explained():
        try:
            calibrate.run(driver, options, file, out, seconds)
        except (DriverError, calibrate.NothingToCalibrate) as error:
            fail(error)
        except KeyboardInterrupt:
            fail("stopped: nothing written")


@app.command()
def headroom(
    config: ConfigPath = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.2, help="Length of each trial.")] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Measure how many microseconds of extra work per tick still hold the rate."""
    from hilnode.report.headroom import measure

    with _explained():
        result = measure(_load(config), seconds, say)
    if as_json:
        out.print_json(json.dumps(result.as_dict()))
    else:
        out.print(result.sentence(), highlight=False)


@app.command()
def version() -> None:
    """Print the version."""
    out.print(__version__, highlight=False)


cli_record.register(app)


def main() -> None:
    """Entry point."""
    app()
