"""The virtual operator: scripted inputs in phases."""
