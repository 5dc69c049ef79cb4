"""Exported recordings, read by the programs they are for."""

import csv

import numpy as np
import pandas
import pyarrow.parquet
import pytest
import recordings
from asammdf import MDF
from recordings import SCHEMA, rows_of

from bridge.record import export as module
from bridge.record.export import ExportError, export
from bridge.record.run_file import Run
from drivers.base import OptionError
from drivers.operator.driver import Operator


@pytest.fixture
def run(tmp_path):
    with Run(recordings.write(tmp_path / "run", rows_of(1000))) as run:
        yield run


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """So that several are written, and lines of CSV too."""
    monkeypatch.setattr(module, "BATCH", 200 * 8 * SCHEMA.words)
    monkeypatch.setattr(module, "LINES", 70)


def truth(name: str) -> np.ndarray:
    words = {"cart.force": SCHEMA.at_inputs, "cart.position": SCHEMA.at_outputs, "valve.ao0": SCHEMA.at_commands}
    return rows_of(1000)[:, words[name]].view(np.float64)


def test_parquet_has_every_bit_and_the_units(run, tmp_path):
    assert export(run, "parquet", tmp_path / "rows.parquet") == 1000
    table = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    for name in ("cart.force", "cart.position", "valve.ao0"):
        assert np.array_equal(table[name].to_numpy().view(np.int64), truth(name).view(np.int64))
    assert table["tick"].to_pylist() == list(range(1000))
    assert table.schema.field("cart.speed").metadata[b"unit"] == b"m/s"
    assert table.schema.field("cart.force").metadata[b"doc"] == b"push"
    assert np.isinf(table["cart.force.age"][0].as_py())
    assert table["cart.qw"].to_numpy()[5] == rows_of(1000)[5, SCHEMA.at_poses + 3 :][:1].view(float)[0]
    assert b"hilnode.config" in table.schema.metadata
    assert pyarrow.parquet.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 5


def test_csv_has_every_bit_and_the_units(run, tmp_path):
    export(run, "csv", tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        heading, *lines = csv.reader(file)
    assert heading[:3] == ["time [s]", "t [s]", "tick"]
    column = heading.index("cart.position [m]")
    assert np.array_equal(np.array([float(line[column]) for line in lines]).view(np.int64),
                          truth("cart.position").view(np.int64))  # fmt: skip
    frame = pandas.read_csv(tmp_path / "rows.csv")
    assert np.allclose(frame["valve.ao0 [V]"], truth("valve.ao0"), rtol=1e-12)


def test_mdf4_has_every_bit_and_the_units(run, tmp_path):
    export(run, "mdf4", tmp_path / "rows.mf4")
    with MDF(tmp_path / "rows.mf4") as mdf:
        signal = mdf.get("cart.force")
        assert np.array_equal(signal.samples.view(np.int64), truth("cart.force").view(np.int64))
        assert np.allclose(signal.timestamps, np.arange(1000) * 1e-3, rtol=0, atol=1e-12)
        assert (signal.unit, signal.comment) == ("N", "push")
        assert mdf.get("tick").samples.tolist() == list(range(1000))


@pytest.mark.parametrize("kind", ["parquet", "csv", "mdf4"])
def test_a_span_and_some_signals(run, tmp_path, kind):
    path = tmp_path / f"some{module.SUFFIX[kind]}"
    shares = []
    rows = export(run, kind, path, signals=["cart.p*", "tick"], start_s=0.1, end_s=0.75, progress=shares.append)
    assert rows == 651
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    if kind == "parquet":
        table = pyarrow.parquet.read_table(path)
        assert table.column_names == ["time", "tick", "cart.position"]
        assert table["tick"].to_pylist() == list(range(100, 751))


def test_what_cannot_be_exported_is_told_and_leaves_nothing(run, tmp_path):
    with pytest.raises(KeyError, match=r"no signal 'cart\.spee'.*did you mean 'cart\.speed'"):
        export(run, "csv", tmp_path / "a.csv", signals=["cart.spee"])
    with pytest.raises(ExportError, match=r"no rows there: it lasts 0\.999 s"):
        export(run, "csv", tmp_path / "a.csv", start_s=5.0)
    (tmp_path / "b.csv").write_text("mine")
    with pytest.raises(ExportError, match="exists already"):
        export(run, "csv", tmp_path / "b.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.csv", "run"]
    assert (tmp_path / "b.csv").read_text() == "mine"


def test_memory_is_that_of_a_batch_whatever_the_length(run):
    sizes = [len(rows) for rows in module._batches(run.rows())]
    assert sizes == [200] * 5


def test_a_virtual_operator_plays_an_exported_recording(run, tmp_path):
    """Recorded, exported, played: at the times of its ticks the sticks stand where they stood."""
    export(run, "csv", tmp_path / "rows.csv", signals=["cart.force", "valve.ao0"])
    columns = {"push": "cart.force", "valve": "valve.ao0"}
    hand = Operator("hand", {"file": str(tmp_path / "rows.csv"), "columns": columns})
    assert [(s.name, s.unit) for s in hand.inputs] == [("push", "N"), ("valve", "V")]
    with (tmp_path / "rows.csv").open(newline="") as file:
        times = [float(line[0]) for line in list(csv.reader(file))[1:]]
    for track, name in zip(hand.script.tracks, columns.values(), strict=True):
        assert np.array_equal([track.at(t) for t in times], truth(name))


def test_an_operator_says_where_a_recording_has_no_number(run, tmp_path):
    export(run, "csv", tmp_path / "rows.csv", signals=["cart.force"])
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    lines[5] = lines[5].rpartition(",")[0] + ",nan"
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    with pytest.raises(OptionError, match=r"rows.csv:6: column . \(cart.force\) = .nan.: must be a finite number"):
        Operator("hand", {"file": str(tmp_path / "rows.csv"), "columns": {"push": "cart.force"}})
    with pytest.raises(OptionError, match=r"column . *: 'Push!' is no name of a channel.*columns = . x = .cart.force"):
        Operator("hand", {"file": str(tmp_path / "rows.csv"), "columns": {"Push!": "cart.force"}})
