"""`hilnode probe`: one device without a node, told by counters that can be checked."""

import json
import os
import socket
import struct
import threading
import tty
from collections.abc import Iterator

import numpy as np
import pytest
from support import cli, config_text, free_port
from typer.testing import CliRunner

from drivers.base import OptionError
from hilnode.cli.main import app
from hilnode.cli.probe import Probe, driver_of, histogram, options_from

runner = CliRunner()


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody sends the numbers 1.5 and -2 every 2 ms to this port, and every tenth time half a datagram."""
    target = free_port(socket.SOCK_DGRAM)
    ending = threading.Event()

    def send() -> None:
        count = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not ending.wait(0.002):
                count += 1
                data = struct.pack("<2d", 1.5, -2.0)
                out.sendto(data if count % 10 else data[:8], ("127.0.0.1", target))

    thread = threading.Thread(target=send)
    thread.start()
    yield target
    ending.set()
    thread.join()


def probed(*arguments: str) -> dict:
    done = runner.invoke(app, ["probe", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_a_kind_with_options(port):
    told = probed(f"udp:listen=127.0.0.1:{port}", 'inputs=["x", { name = "y", unit = "m" }]', "--for", "0.5")
    assert told["frames"] >= 20
    assert told["errors"] >= 1
    assert "datagram of 8 bytes" in told["trouble"]
    assert [(c["name"], c["unit"], c["value"], c["min"], c["max"]) for c in told["channels"]] == [
        ("x", "", 1.5, 1.5, 1.5),
        ("y", "m", -2.0, -2.0, -2.0),
    ]
    assert told["frame"] == struct.pack("<2d", 1.5, -2.0).hex(" ") or len(told["frame"].split()) == 8
    assert sum(n for _, n in told["period_us"]["histogram"]) == told["frames"] - 1
    assert told["rate_hz"] == pytest.approx(told["frames"] / told["seconds"], rel=0.3)


def test_a_driver_of_a_config(tmp_path, port, name):
    text = f'[drivers.stick]\nkind = "udp"\nlisten = "127.0.0.1:{port}"\ninputs = ["x", "y"]\n'
    (tmp_path / "bench.toml").write_text(config_text(name, text))
    done = cli("probe", "stick", "--config", tmp_path / "bench.toml", "--for", 0.3)
    assert done.returncode == 0, done.stderr
    assert "frames" in done.stdout
    assert "-2" in done.stdout
    assert "period p50" in done.stdout


def test_raw_beside_scaled_of_a_serial_line(tmp_path):
    device, cable = os.openpty()
    tty.setraw(cable)
    ending = threading.Event()

    def send() -> None:
        while not ending.wait(0.02):  # again and again: opening empties the line
            os.write(device, b"\xaa" + struct.pack("<h", 300))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        receive = 'receive={format="binary", start=[0xAA], fields=[{name="f", type="int16", scale=0.5}]}'
        told = probed(f"serial:port={os.ttyname(cable)}", receive, "--for", "0.5")
        assert told["frame"] == "aa 2c 01"
        assert told["channels"][0]["value"] == 150.0
    finally:
        ending.set()
        sender.join()
        os.close(device)
        os.close(cable)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["serial:port=/dev/none", 'receive={format="csv",fields=["x"]}'], 1, "there is no port /dev/none"),
        (["stick"], 2, "no driver 'stick' in the config"),
        (["udq:x=1"], 2, "did you mean 'udp'"),
        (["udp:lisen=1"], 2, "did you mean 'listen'"),
        (["loopback:channels"], 2, "driver kind 'loopback:channels'"),
        (["loopback:", "channels"], 2, "'channels': write KEY=VALUE, such as baud=115200"),
    ],
)
def test_what_cannot_be_probed_is_one_clear_line(arguments, code, says):
    done = runner.invoke(app, ["probe", *arguments, "--for", "0.1"])
    assert done.exit_code == code
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_silence_is_exit_1():
    done = runner.invoke(app, ["probe", "loopback:channels=2", "--for", "0.1"])
    assert done.exit_code == 1
    assert "0 frames" in done.output


def test_a_device_without_inputs_is_only_opened():
    done = runner.invoke(app, ["probe", "udp:send=127.0.0.1:9", 'outputs=["x"]'])
    assert done.exit_code == 0
    assert "writes nothing" in done.output


def test_values_are_toml_or_plain_text():
    assert options_from(["a=1", "b=x:y", 'c="z"', "d=[1, 2]", "e=true", "f=a=b"]) == {
        "a": 1, "b": "x:y", "c": "z", "d": [1, 2], "e": True, "f": "a=b",
    }  # fmt: skip
    with pytest.raises(OptionError, match="KEY=VALUE"):
        options_from(["=1"])


def test_a_module_and_a_class_are_a_kind_too():
    driver = driver_of("drivers.loopback:Loopback:channels=3", ["delay_ms=2"], lambda: pytest.fail("no config"))
    assert (driver.kind, len(driver.inputs), driver.options) == ("loopback", 3, {"channels": 3, "delay_ms": 2})


def test_a_lost_device_is_opened_again_and_counted():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        port = free_port(socket.SOCK_DGRAM)
        probe = Probe(driver_of(f"udp:listen=127.0.0.1:{port}", ['inputs=["x"]'], lambda: pytest.fail("no config")))
        probe.open()
        probe.driver.close()  # lost: the next read says so
        out.sendto(struct.pack("<d", 1.0), ("127.0.0.1", port))
        probe.read_for(0.5)
    assert (probe.reconnects, probe.errors) == (1, 1)


def test_a_histogram_has_few_lines_and_every_count():
    counts = np.zeros(400, np.int64)
    counts[100:180] = 3
    lines = [str(line) for line in histogram(counts[:336])]
    assert len(lines) <= 13
    assert sum(int(line.split()[-1]) for line in lines[1:]) == 240
