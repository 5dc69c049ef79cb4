"""The ECU lane: inputs and outputs of an ECU over ZeroMQ, row by row."""
