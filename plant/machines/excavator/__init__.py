"""A wheeled excavator of the 20-ton class: 14 bodies, 13 hinges, a bucket linkage, tires, soil, hydraulics, sensors."""
