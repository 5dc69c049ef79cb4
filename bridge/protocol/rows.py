"""Raw rows on the client side: bytes decoded to values by name, losses counted, captures kept as columns."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import msgpack
import numpy as np
from numpy.typing import NDArray

from bridge.protocol.operations import NodeError
from hilnode.core.signals import UnknownName, nearest
from hilnode.shared.row import Col, Schema

if TYPE_CHECKING:
    import pandas

LAYOUT = 1
"""Of the rows, as `Schema.as_dict` has it."""


class RowReader:
    """Decodes messages of the topic `raw` and counts those that never came."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.lost = 0
        self._hash = f"{schema.hash:016x}"
        self._expected = -1
        named = [*range(schema.at_inputs, schema.at_ages), *range(schema.at_outputs, schema.at_poses)]
        self._columns = {s.name: k for s, k in zip(schema.signals, named, strict=True)}

    def column(self, name: str) -> int:
        """Word of a row that holds the signal `name`."""
        if name not in self._columns:
            raise UnknownName(f"no signal {name!r}: {nearest(name, list(self._columns))}")
        return self._columns[name]

    def take(self, body: bytes) -> NDArray[np.int64] | None:
        """The row of a message; None if it is of another run."""
        message = msgpack.unpackb(body)
        if message["schema"] != self._hash:
            return None
        seq = message["seq"]
        if 0 <= self._expected < seq:
            self.lost += seq - self._expected
        self._expected = seq + 1
        return np.frombuffer(message["row"], np.int64)

    def begin(self) -> None:
        """Forget where the count stood: between two recordings nothing is lost."""
        self._expected = -1


@dataclass(frozen=True)
class Recording:
    """Signals over time: `r.t`, `r["excavator.boom.angle"]`, `r[["a", "b"]]`.

    Where pandas is installed, it can be used like a data frame whose index is the time: `r.describe()`, `r.plot()`,
    `r.loc[1.0:2.0]`, `r.iloc[-1]`; `to_pandas()` gives that data frame.
    """

    t: NDArray[np.float64]  # simulated time [s]
    tick: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]
    lost: int  # rows between the first and the last that never arrived

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.int64]], reader: RowReader, names: Sequence[str], lost: int) -> Recording:
        table = np.array(rows, np.int64).reshape(len(rows), reader.schema.words)
        values = table.view(np.float64)
        return cls(
            table[:, Col.STEP].astype(np.float64) * (reader.schema.dt_ns * 1e-9),
            table[:, Col.TICK].copy(),
            {name: values[:, reader.column(name)].copy() for name in names},
            lost,
        )

    @overload
    def __getitem__(self, name: str) -> NDArray[np.float64]: ...

    @overload
    def __getitem__(self, name: list[str]) -> Recording: ...

    def __getitem__(self, name: str | list[str]) -> NDArray[np.float64] | Recording:
        if isinstance(name, list):
            return replace(self, columns={one: self[one] for one in name})
        if name not in self.columns:
            raise UnknownName(f"{name!r} was not recorded: {nearest(name, list(self.columns))}")
        return self.columns[name]

    def __getattr__(self, name: str) -> Any:
        """Whatever else a data frame has."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            frame = self.to_pandas()
        except ImportError as error:
            raise AttributeError(f"a recording has no {name!r} without pandas: pip install pandas") from error
        return getattr(frame, name)

    def keys(self) -> KeysView[str]:
        """Names of the signals."""
        return self.columns.keys()

    def __len__(self) -> int:
        return len(self.t)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with the time as its index; needs pandas."""
        import pandas

        return pandas.DataFrame(self.columns, index=pandas.Index(self.t, name="t"))


@dataclass(frozen=True)
class Condition:
    """What `wait_until` waits for: a value above `gt`, below `lt`, or within `tol` of `eq`."""

    gt: float | None = None
    lt: float | None = None
    eq: float | None = None
    tol: float = 1e-9

    def __post_init__(self) -> None:
        if self.gt is None and self.lt is None and self.eq is None:
            raise ValueError("wait for something: gt=, lt= or eq=")

    def met(self, value: float) -> bool:
        return (
            (self.gt is None or value > self.gt)
            and (self.lt is None or value < self.lt)
            and (self.eq is None or abs(value - self.eq) <= self.tol)
        )

    def __str__(self) -> str:
        parts = [f"> {self.gt:g}" if self.gt is not None else "", f"< {self.lt:g}" if self.lt is not None else ""]
        parts.append(f"= {self.eq:g}" if self.eq is not None else "")
        return " and ".join(p for p in parts if p)


def schema_of(answer: dict[str, Any]) -> Schema:
    """The schema in a node's answer to `schema`."""
    if trouble := unknown_layout(answer["layout"]):
        raise NodeError("version", trouble)
    return Schema.from_dict(answer["layout"])


def unknown_layout(layout: dict[str, Any]) -> str:
    """A sentence if the rows are laid out in a way that this program does not know, or nothing."""
    version = layout.get("version")
    if version == LAYOUT:
        return ""
    return (
        f"the rows have layout {version!r}, and this program knows layout {LAYOUT}: use the same hilnode on both sides"
    )
