"""`Selection`: the kernel that answers a problem, and why it is this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType

import torch

from m3gen.errors import UserError
from m3gen.spec import Problem
from m3gen.tables.load import Point, Values

Launcher = Callable[..., None]
Workspace = Callable[[int, int, int], Mapping[str, tuple[tuple[int, ...], torch.dtype]]]
Build = Callable[[Problem], tuple[ModuleType, Values]]
"""Makes a module for a problem that no table knows, and says with which configuration: `m3gen.codegen.build`."""


class Rung(StrEnum):
    """Where an answer comes from, the first that has one wins; after the last there is only a refusal."""

    OVERRIDE = "override"  # tables named in the call of `load`
    USER = "user"  # the user's own tables
    SITE = "site"  # those of the machine or the cluster, for all its users
    RELEASE = "release"  # those that ship with m3gen
    DEMOTED = (
        "demoted"  # a row of one of these for another compiler, or checked as an earlier text of its template
    )
    HEURISTIC = "heuristic"  # the fallback of one of these tables, for the same kernel variant
    BUILT = "built"  # rendered on the spot by the caller's builder: neither tuned nor verified


class NoKernel(UserError):
    """No rung has a kernel for a problem; the message names what the nearest row differs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`launcher(**arguments)` launches and returns; its docstring gives shapes. `workspace(rows, kv_heads,
    group_size)` names the buffers it wants beside its inputs. `point` is None on the heuristic
    and the built rung."""

    launcher: Launcher
    workspace: Workspace
    config: Values
    rung: Rung
    point: Point | None
    reason: str
    module: str  # name of the generated module

    def buffers(
        self, rows: int, kv_heads: int, group_size: int, device: torch.device | str
    ) -> dict[str, torch.Tensor]:
        """The workspace for up to `rows` query rows, zeroed, by the launcher's argument names."""
        wanted = self.workspace(rows, kv_heads, group_size)
        return {name: torch.zeros(shape, dtype=dtype, device=device) for name, (shape, dtype) in wanted.items()}
