"""What the tables share: the strict base class, and the types of keys with their ranges and patterns."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from hilnode.core import units
from hilnode.core.problems import (
    ADDRESS,
    CHANNEL_NAME,
    DRIVER_NAME,
    KIND_NAME,
    NODE_NAME,
    PLAIN_TEXT,
    SIGNAL_NAME,
    WEB_ADDRESS,
    Loc,
)

FREE_DEPTH = 16
"""Levels within a free table; enough for any options, and safe to walk recursively."""


def refuse(message: str, *at: str | int) -> PydanticCustomError:
    """An error that is already a sentence, about the key `at` below the value being checked."""
    return PydanticCustomError("sentence", "{text}", {"text": message, "at": at})


def says(sentence: str) -> WrapValidator:
    """Replace whatever a validator complains about by one sentence."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise refuse(sentence) from error

    return WrapValidator(check)


def _rising(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise refuse("must be two numbers [low, high], the lower one first")
    return pair


def check_free(table: dict[str, Any]) -> dict[str, Any]:
    """Whatever a kind of plant or driver may want, as long as it can be stored and sent: finite and not too deep."""
    todo: list[tuple[Loc, Any]] = [((), table)]
    while todo:
        loc, value = todo.pop()
        if len(loc) > FREE_DEPTH:
            raise refuse(f"is nested more than {FREE_DEPTH} levels deep", *loc)
        if isinstance(value, float) and not math.isfinite(value):
            raise refuse("must be a finite number, not nan or inf", *loc)
        if isinstance(value, int) and value.bit_length() > 63:
            raise refuse("must fit into 64 bits", *loc)
        if isinstance(value, dict):
            todo += [((*loc, k), v) for k, v in value.items()]
        if isinstance(value, list):
            todo += [((*loc, i), v) for i, v in enumerate(value)]
    return table


def _port(address: str) -> str:
    if address.startswith(("tcp:", "http:")) and not 0 < int(address.rpartition(":")[2]) < 65536:
        raise refuse("must have a port from 1 to 65535")
    return address


def is_local(address: str) -> bool:
    """Whether only programs on this PC can reach it."""
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return (
        not address.startswith("tcp:")
        or host in ("localhost", "::1")
        or re.fullmatch(r"127(\.\d+){3}", host) is not None
    )


NodeName = Annotated[str, Field(pattern=NODE_NAME, max_length=40)]
DriverName = Annotated[str, Field(pattern=DRIVER_NAME, max_length=40)]
KindName = Annotated[str, Field(pattern=KIND_NAME, max_length=60)]
SignalName = Annotated[str, Field(pattern=SIGNAL_NAME, max_length=200)]
ChannelName = Annotated[str, Field(pattern=CHANNEL_NAME, max_length=200)]
PlainText = Annotated[str, Field(pattern=PLAIN_TEXT, max_length=1000)]
Address = Annotated[str, Field(pattern=ADDRESS, max_length=200), AfterValidator(_port)]
WebAddress = Annotated[str, Field(pattern=WEB_ADDRESS, max_length=200), AfterValidator(_port)]
Unit = Annotated[str, AfterValidator(units.check)]
FreeTable = Annotated[dict[str, Any], AfterValidator(check_free)]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Hertz = Annotated[float, Field(gt=0, le=10_000)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Range = Annotated[
    tuple[Number, Number],
    Field(strict=False),
    AfterValidator(_rising),
    says("must be two numbers [low, high], the lower one first"),
]
TwinSpec = Annotated[bool | FreeTable, says("must be true, false or a table of channel = number or formula")]
Cpu = Annotated[
    Literal["auto", "none"] | Annotated[int, Field(ge=0, le=8191)],
    says('must be "auto", "none" or the number of a CPU, counted from 0'),
]


class Table(BaseModel):
    """A table of the file: nothing unknown, nothing converted, no nan or inf, nothing changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def required(description: str, example: float, **limits: Any) -> Any:
    """A number without a default."""
    return Field(description=description, examples=[example], **limits)
