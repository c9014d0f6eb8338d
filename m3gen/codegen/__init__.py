"""Config and template in, source out; and the winners as modules."""

from m3gen.codegen.build import build
from m3gen.codegen.generate import generate
from m3gen.codegen.interpreted import build_interpreted
from m3gen.codegen.launch import Argument, Launch, Pointer
from m3gen.codegen.module import load_module
from m3gen.codegen.render import render, template_shas
from m3gen.codegen.source import KernelSource
from m3gen.codegen.trace import trace

__all__ = [
    "Argument",
    "KernelSource",
    "Launch",
    "Pointer",
    "build",
    "build_interpreted",
    "generate",
    "load_module",
    "render",
    "template_shas",
    "trace",
]
