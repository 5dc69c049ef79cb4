"""The terminal monitor: how a running node is doing, from anywhere that reaches it. `hilnode monitor`."""
