"""The runtime: kernels for an engine to hold, chosen from tables, needing torch, Triton and nothing else."""

from m3gen.runtime.dispatch import Dispatch
from m3gen.runtime.kernels import KernelSet, OpKernels, load
from m3gen.runtime.selection import NoKernel, Rung, Selection

__all__ = ["Dispatch", "KernelSet", "NoKernel", "OpKernels", "Rung", "Selection", "load"]
