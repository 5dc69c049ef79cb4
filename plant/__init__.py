"""Physics: model, state, step. Knows no time of day, no device, no network, no file."""
