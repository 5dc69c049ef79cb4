"""Reports on a run or a PC: jitter, headroom, latency, doctor, rerun."""
