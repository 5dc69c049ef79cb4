"""Lock-free buffers in shared memory: `Mailbox` (latest value) and `Ring` (every row).

Kept empty of imports: the watchdog needs `segment` alone and must not load a compiler.
"""
