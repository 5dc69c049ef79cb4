"""Velocity-level steppers `spook`, `linearised` and `projected`: step, position projection, force fields, reset."""
