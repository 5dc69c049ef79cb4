"""Wheeled vehicles: tires, steering geometry, stability margin."""
