"""CAN buses through python-can, with DBC databases."""
