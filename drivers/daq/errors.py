"""NI's error codes for a node: one line with the fix for each, and whether the card is lost.

It asks errors for their numbers only, so it needs no library.
"""

from __future__ import annotations

TIMED_OUT = -200284
RESERVED = frozenset({-50103, -200022, -200587})
ABORTED = frozenset({-200088, -88709, -88710, -50405})
GONE = frozenset({-201003, -200324, -200045, -50300})
NO_SUCH_CARD = -200220
OVERRUN = frozenset({-200279, -200278, -200361, -200010, -200019, -200141, -201314})
"""The acquisition stopped because it was not read in time, or the card could not keep up: start it again."""

NO_DRIVER = ("DaqNotFoundError", "DaqNotSupportedError", "DaqFunctionNotSupportedError")
LONGEST = 300  # characters of what NI says


def code_of(error: BaseException) -> int:
    """NI's number, or 0."""
    return int(getattr(error, "error_code", 0))


def is_lost_server(error: BaseException) -> bool:
    """Whether the gRPC server did not answer; nidaqmx has an error of its own for that, without a code."""
    return hasattr(error, "rpc_code")


def explain(error: BaseException, card: str, server: str, present: str = "") -> str:
    """What is wrong and what helps. `present` tells which cards there are, if somebody has asked."""
    code, place = code_of(error), f"card {card}" + (f" at {server}" if server else "")
    if is_lost_server(error):
        return f"no answer from the NI gRPC device server at {server} ({_text(error)}): is it running?"
    if type(error).__name__ in NO_DRIVER:
        return (
            f"NI's own driver NI-DAQmx is missing ({_text(error)}): python -m nidaqmx installdriver, "
            'or give server = "host:port" of a PC that has it'
        )
    if code == NO_SUCH_CARD:
        there = present or "`hilnode devices` lists those there are"
        return f"there is no {place}: is it plugged in, and is that its name? {there}"
    if code in GONE:
        return f"{place} cannot be reached (NI error {code}): unplugged, or switched off?"
    if code in ABORTED:
        return f"{place} was reset or removed (NI error {code})"
    if code in RESERVED:
        return (
            f"{place} is in use by another program (NI error {code}): close it. If it died on a gRPC server, reset "
            "the card there: nidaqmx.system.Device(name).reset_device()"
        )
    if code in OVERRUN:
        return f"{place}: samples were lost, they were not fetched in time (NI error {code}): lower rate, or less load"
    if code == TIMED_OUT:
        return f"{place}: no sample came in time (NI error {code})"
    return f"{place}: {_text(error)}"


def _text(error: BaseException) -> str:
    """NI's paragraphs as one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
