"""The terminal monitor of a running node, on this PC or another: `hilnode monitor`."""
