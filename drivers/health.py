"""A driver's health record: words in shared memory that its threads write and others read.

The watchdog reads them too, so this file needs no compiler.
"""

from __future__ import annotations

from enum import IntEnum

HEALTH_KIND = 4  # of the segment that holds one record for each driver


class Health(IntEnum):
    """How a driver is doing."""

    CONNECTING = 0
    UP = 1
    DEGRADED = 2  # open, but the last frame was bad
    DOWN = 3


class H(IntEnum):
    """Words of a record."""

    STATE = 0
    FRAMES = 1  # read
    WRITES = 2
    ERRORS = 3
    RECONNECTS = 4
    LAST_READ = 5  # [ns]
    LAST_WRITE = 6  # [ns]
    SENDING = 7  # 1 from before the writer asks whether live values are allowed until its write is done


HEALTH_WORDS = len(H)
