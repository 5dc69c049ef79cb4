"""Recordings of every row as MCAP: written, scanned, exported, replayed."""
