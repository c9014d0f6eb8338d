"""`Launch`: one kernel launch as the launcher would make it, without a device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pointer:
    """A tensor argument: what specialisation looks at. `dtype` is m3gen's name ("bf16", "i32", ...)."""

    dtype: str
    alignment: int  # largest power of two that divides the address, in bytes; at most 256
    storage_bytes: int  # of the whole storage: over 2 GiB the compiler may not assume 32-bit offsets


Argument = Pointer | int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel[grid](...)`: the kernel's name, its arguments by parameter name, compile options apart.

    `options` holds what the launcher passed beside parameters (num_warps, num_stages, waves_per_eu, ...).
    """

    kernel: str
    arguments: tuple[tuple[str, Argument], ...]
    options: tuple[tuple[str, int | bool | str], ...]
    grid: tuple[int, int, int]

    @property
    def programs(self) -> int:
        """Workgroups of the launch."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def num_warps(self) -> int:
        return int(dict(self.options).get("num_warps", 4))
