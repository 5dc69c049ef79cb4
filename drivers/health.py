"""The health record of a driver, where drivers and their runner look for it; it is laid out in `hilnode/health.py`."""

from hilnode.health import HEALTH_KIND, HEALTH_WORDS, H, Health, bucket, put_text

__all__ = ["HEALTH_KIND", "HEALTH_WORDS", "H", "Health", "bucket", "put_text"]
