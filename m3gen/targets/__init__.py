"""What a GPU is: architectures, devices, and what fits on a compute unit."""

from m3gen.targets.architecture import Architecture, Vendor
from m3gen.targets.catalogue import (
    ARCHITECTURES,
    DEVICES,
    UnknownTarget,
    architecture,
    default_device,
    device,
)
from m3gen.targets.device import Device
from m3gen.targets.occupancy import Occupancy, occupancy

__all__ = [
    "ARCHITECTURES",
    "DEVICES",
    "Architecture",
    "Device",
    "Occupancy",
    "UnknownTarget",
    "Vendor",
    "architecture",
    "default_device",
    "device",
    "occupancy",
]
