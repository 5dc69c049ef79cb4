"""Twins: the channels of the real driver, made-up values, and nothing opened."""

import math
import time

import numpy as np
import pytest
from support import make_config, wait_for

from drivers import registry
from drivers.base import OptionError
from drivers.twin import Twin
from hilnode.node.node import Node

UDP = {
    "listen": "127.0.0.1:9",  # a port that only root could open: nothing here opens it
    "send": "127.0.0.1:9",
    "inputs": ["x", {"name": "y", "default": 3.0}, "ref", "in.0"],
    "outputs": [{"name": "ref", "safe": 0.5}, "out.0"],
}
SERIAL = {"port": "/dev/none", "receive": {"format": "csv", "fields": ["x"]}}


def values_of(twin: Twin) -> list[float]:
    values, stamps = np.full(len(twin.inputs), -99.0), np.zeros(len(twin.inputs), np.int64)
    twin.open()
    before = time.monotonic_ns()
    assert twin.read(values, stamps)
    assert all(before <= s <= time.monotonic_ns() for s in stamps)
    return values.tolist()


def test_it_has_the_channels_of_the_real_one_and_is_no_device():
    real, twin = registry.create("udp", "io", UDP), registry.create("udp", "io", {**UDP, "twin": True})
    assert (twin.inputs, twin.outputs) == (real.inputs, real.outputs)
    assert not twin.external
    assert not isinstance(registry.create("udp", "io", {**UDP, "twin": False}), Twin)


def test_true_gives_defaults_and_an_echo():
    twin = registry.create("udp", "io", {**UDP, "twin": True})
    assert values_of(twin) == [0.0, 3.0, 0.5, 0.0]
    twin.write(np.array([7.0, 8.0]))
    assert values_of(twin) == [0.0, 3.0, 7.0, 0.0]


def test_numbers_and_formulas_of_outputs():
    formulas = {"x": 4, "y": "2 * ref + out_0 ** 2", "ref": "-1 if ref > 5 else max(ref, pi)", "in.0": "out_0 / 0"}
    twin = registry.create("udp", "io", {**UDP, "twin": formulas})
    twin.write(np.array([7.0, 3.0]))
    values = values_of(twin)
    assert values[:3] == [4.0, 23.0, -1.0]
    assert math.isnan(values[3])  # which the tick flags


def test_formulas_of_time():
    twin = registry.create("serial", "io", {**SERIAL, "twin": {"x": "10 + t"}})
    first = values_of(twin)[0]
    time.sleep(0.05)
    assert 10.0 <= first < 15.0
    assert 0.05 <= values_of(twin)[0] - first < 5.0


@pytest.mark.parametrize(
    ("twin", "says"),
    [
        (3, "drivers.io.twin = 3: must be true, false or a table"),
        ({"z": 1.0}, "drivers.io.twin.z: is no input of this driver: known: .*x"),
        ({"x": "sinn(t)"}, "'sinn' is not known: did you mean 'sin'"),
        ({"x": "t +"}, "drivers.io.twin.x = 't \\+': invalid syntax"),
        ({"x": "().__class__"}, "has no place in a formula"),
        ({"x": "[t for t in (1,)]"}, "has no place in a formula"),
        ({"x": "t(1)"}, "only these can be called"),
        ({"x": "'a' * 3"}, "'a' is no number"),
        ({"x": True}, "must be a number or a formula"),
        ({"x": "1" + "0" * 400}, "too large"),
    ],
)
def test_twins_that_make_no_sense(twin, says):
    with pytest.raises(OptionError, match=says):
        registry.create("udp", "io", {**UDP, "twin": twin})


def test_powers_have_an_end():
    twin = registry.create("serial", "io", {**SERIAL, "twin": {"x": "9 ** 9 ** 9 ** 9"}})
    assert math.isnan(values_of(twin)[0])


def test_options_of_the_real_one_are_checked_as_ever():
    with pytest.raises(OptionError, match=r"drivers\.io\.port"):
        registry.create("serial", "io", {**SERIAL, "port": 3, "twin": True})


def test_a_node_runs_on_a_twin(tmp_path, name):
    text = """
[drivers.gauge]
kind = "serial"
port = "/dev/none"
receive = { format = "csv", fields = ["torque"] }
send = { format = "csv", fields = ["angle"] }
twin = { torque = "1.5 + 0 * angle" }
[signals.inputs."pendulum.shoulder.torque"]
from = "gauge.torque"
[signals.outputs."gauge.angle"]
from = "pendulum.shoulder.angle"
"""
    with Node(make_config(tmp_path, name, text)) as node:
        node.start()
        at = node.schema.at_inputs + [s.name for s in node.schema.inputs].index("pendulum.shoulder.torque")
        wait_for(lambda: len(node._rows) > 10, "ticks")

        def torque() -> float:
            reader = node._rows.reader(first=len(node._rows) - 1, batch=1)
            rows = reader.read()
            return float(rows.view(np.float64)[0, at]) if len(rows) else 0.0

        wait_for(lambda: torque() == 1.5, "the twin's value")
