"""Constraint rows: joints, couplings, actuators, springs, hydraulics, contacts."""
