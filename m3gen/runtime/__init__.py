"""The runtime: kernels for an engine to hold, chosen from tables, needing torch, Triton and nothing else."""

from m3gen.runtime.backend import Place
from m3gen.runtime.binding import BoundLayer, CacheBinding, LayerCache, TensorIdentity
from m3gen.runtime.counters import Counters
from m3gen.runtime.dispatch import Dispatch
from m3gen.runtime.feature import Feature
from m3gen.runtime.health import Health
from m3gen.runtime.kernels import KernelSet, OpKernels, load
from m3gen.runtime.layer import DecodeLayer, NormWeights
from m3gen.runtime.plan import Plan
from m3gen.runtime.refusal import Refusal, RefusalCode, Refused
from m3gen.runtime.selection import NoKernel, Rung, Selection
from m3gen.runtime.settings import Limits, Settings
from m3gen.runtime.state import ModelState
from m3gen.runtime.step import GraphMode, Reason, StepInputs

__all__ = [
    "BoundLayer",
    "CacheBinding",
    "Counters",
    "DecodeLayer",
    "Dispatch",
    "Feature",
    "GraphMode",
    "Health",
    "KernelSet",
    "LayerCache",
    "Limits",
    "ModelState",
    "NoKernel",
    "NormWeights",
    "OpKernels",
    "Place",
    "Plan",
    "Reason",
    "Refusal",
    "RefusalCode",
    "Refused",
    "Rung",
    "Selection",
    "Settings",
    "StepInputs",
    "TensorIdentity",
    "load",
]
