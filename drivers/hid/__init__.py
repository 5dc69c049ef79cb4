"""Joysticks and other HID devices."""
