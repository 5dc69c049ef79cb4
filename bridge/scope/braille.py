"""Curves in a terminal: each character is 2 x 4 dots of Braille, so that 80 columns are 160 dots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ACROSS, DOWN = 2, 4  # dots of a character
EMPTY = 0x2800
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.int64)  # as Unicode numbers the dots


class Canvas:
    """`columns` x `rows` characters. The last curve drawn in a character gives it its colour."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._dots = np.zeros((rows * DOWN, columns * ACROSS), bool)
        self.color = np.full((rows, columns), -1, np.int64)

    def curve(self, x: NDArray[np.float64], y: NDArray[np.float64], color: int) -> None:
        """Points with x rising; both go from 0 to 1, upwards. Each column of dots shows the lowest to the highest."""
        high, wide = self._dots.shape
        if len(x) < 2 * wide and len(x) > 1:
            fine = np.linspace(x[0], x[-1], 2 * wide)
            x, y = fine, np.interp(fine, x, y)
        good = np.isfinite(y)
        if not good.any():
            return
        across = np.clip(np.rint(x[good] * (wide - 1)), 0, wide - 1).astype(np.int64)
        down = np.clip(np.rint((1.0 - y[good]) * (high - 1)), 0, high - 1).astype(np.int64)
        first = np.flatnonzero(np.diff(across, prepend=-1))
        lowest, highest = np.minimum.reduceat(down, first), np.maximum.reduceat(down, first)
        last = down[np.append(first[1:], len(down)) - 1]
        before = -1
        for k, column in enumerate(across[first].tolist()):
            top, bottom = int(lowest[k]), int(highest[k])
            if before >= 0:  # join it to the column before, without a gap
                top, bottom = min(top, before + 1) if top > before else top, max(bottom, before - 1)
            self._dots[top : bottom + 1, column] = True
            self.color[top // DOWN : bottom // DOWN + 1, column // ACROSS] = color
            before = int(last[k])

    def lines(self) -> list[str]:
        """The characters, the highest row first."""
        cells = self._dots.reshape(self.rows, DOWN, self.columns, ACROSS)
        codes = EMPTY + np.einsum("rdca,da->rc", cells.astype(np.int64), _BITS)
        return ["".join(chr(code) for code in row) for row in codes.tolist()]
