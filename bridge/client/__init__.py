"""Clients of a running node: blocking, asyncio, subscriptions, the pytest plugin."""
