"""Slots: the stimuli and faults of each signal as a short linked list, so that one signal may have several, in turn or
together.

head[signal] -> slot -> next[slot] -> ... -> -1
"""

from __future__ import annotations

from hilnode.core.jit import kernel


@kernel
def detach(head, following, slot):
    """Take `slot` out of whatever chain it is in."""
    for s in range(head.size):
        if head[s] == slot:
            head[s] = following[slot]
    for k in range(following.size):
        if following[k] == slot:
            following[k] = following[slot]
    following[slot] = -1


@kernel
def attach(head, following, slot, signal):
    """Put `slot` at the front of the chain of `signal`: what came last counts first."""
    following[slot] = head[signal]
    head[signal] = slot
