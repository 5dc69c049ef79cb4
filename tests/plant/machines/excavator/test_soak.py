"""The work cycle for long: nothing drifts, nothing is lost, nothing grows."""

import math

import psutil
import pytest
from excavator_rig import CYCLE
from work_cases import Work

from drivers.operator.phases import Phases

LOST = 1e-6  # of the soil that was ever moved
UPRIGHT = math.radians(30)  # where the machine itself warns: pressing its bucket down it lifts itself by less
BUCKETS = 6  # in a round of the cycle
EARLY = 2  # rounds that later ones are measured by
EMPTIER = 0.8  # a round whose buckets are so much emptier has run out of soil
GROWN = 2e6  # [bytes] of memory: a byte for each step would be twice as much in the hour


class Loads:
    """How full each bucket is when it is swung to the truck, by round."""

    def __init__(self, rig: Work, hands: Phases) -> None:
        self.rig, self.hands = rig, hands
        self.rounds: list[list[float]] = []
        self._phase = ""

    def look(self) -> None:
        phase = self.hands.now.name
        if phase != self._phase and phase.startswith("swing"):
            self.rounds += [[]] * (self.hands.cycle + 1 - len(self.rounds))
            self.rounds[self.hands.cycle] = [*self.rounds[self.hands.cycle], self.rig["bucket.fill"]]
        self._phase = phase

    @property
    def means(self) -> list[float]:
        """Of the rounds that are complete."""
        return [sum(fills) / BUCKETS for fills in self.rounds if len(fills) == BUCKETS]


def work(seconds: float, looks: float = 10.0) -> tuple[Work, Phases, Loads]:
    """So long at work, looked at every `looks` seconds."""
    rig = Work(terrain="waves", truck=True, pipe=True, objects=None)
    hands = Phases.from_file(str(CYCLE))
    loads = Loads(rig, hands)
    process, first = psutil.Process(), 0
    moved = 0.0
    while rig.seconds < seconds:
        rig.work(hands, looks, loads.look)
        assert rig.is_finite, f"{rig.seconds:.0f} s"
        assert rig.tilt < UPRIGHT, f"{rig.seconds:.0f} s: tilted by {math.degrees(rig.tilt):.1f} deg"
        moved = max(moved, -rig["soil.bank"])
        assert abs(rig["soil.balance"]) <= LOST * moved, f"{rig.seconds:.0f} s: {rig['soil.balance']:.1e} m^3"
        if first == 0 and rig.seconds >= 60.0:
            first = process.memory_info().rss
    if first:
        assert process.memory_info().rss - first < GROWN
    return rig, hands, loads


def test_half_a_minute_of_work() -> None:
    rig, hands, _ = work(30.0, looks=1.0)
    assert -rig["soil.bank"] > 0.5  # it has dug
    assert hands.timeouts == 0, hands.timed_out
    assert rig["collisions"] == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_hour_of_work() -> None:
    rig, hands, loads = work(3600.0)
    assert BUCKETS * hands.cycle > 100
    assert -rig["soil.bank"] > 20.0
    assert rig["soil.heap"] + rig["soil.hauled"] > 20.0
    assert rig["truck.trips"] > 5
    assert rig["collisions"] <= hands.cycle
    assert rig["flag.crowded"] == 0.0
    assert rig["flag.pipe"] == 0.0
    early = sum(loads.means[:EARLY]) / EARLY
    assert len(loads.means) > 18
    assert min(loads.means) > EMPTIER * early, [f"{mean:.2f}" for mean in loads.means]
