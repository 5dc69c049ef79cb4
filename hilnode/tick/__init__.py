"""The tick: one compiled function that owns a thread and runs the loop, and its stages, one file each.

loop.py        read this first: the loop, a few dozen lines
layout.py      every array the loop works on; its codes are in hilnode/shared/codes.py
commands.py    what people ask for, applied at the tick's edge
lifecycle.py   configured, armed, running, tripped, cleared
inputs.py      mailboxes to plant inputs, stale ones replaced
stimulus.py    made-up input values: sine, chirp, table ...
slots.py       which stimuli and faults a signal has
faults.py      things that go wrong on purpose
condition.py   scale, clamp, rate limit, low pass
outputs.py     plant outputs to device commands, or their safe values
alarms.py      watch a signal, act
overrun.py     what to do when a deadline was missed
call.py        a call through the plant's pointer
"""
