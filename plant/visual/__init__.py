"""The visual description of a machine, for displays: shapes, colours, frames."""
