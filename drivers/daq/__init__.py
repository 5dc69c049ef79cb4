"""NI DAQ cards through nidaqmx."""
