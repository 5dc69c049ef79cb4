"""Everything that leaves the PC: wire format, publisher, commands, recorder, viewer."""
