"""Sensor models: the errors of a channel (noise, bias, delay, quantisation, failure), and the IMU."""
