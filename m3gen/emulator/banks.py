"""The LDS as the hardware serves it: a wave's access goes in phases of some lanes each, and a phase takes one pass
for every different word that its busiest bank is asked for.

Lanes of a phase: "Understanding AMD GPU LDS and Bank Conflicts" (CK Tile documentation) for gfx942; measured on MI355X
for HipKittens (arXiv 2511.08083, github.com/HazyResearch/HipKittens, analysis/paper_experiments/phases) for gfx950,
whose writes go as gfx942's do. Assumed, for want of a measurement: accesses of 4 bytes and less go by half waves;
gfx942 reads 8 bytes a lane as it writes them; transposing reads are served as plain ones of their width.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from m3gen.emulator.group import I32, LANES, Array

_WORD = 4
# Of 32 lanes, of which the other 32 are the image: ds_read_b128 (gfx942), ds_read_b96 (both).
_EIGHTS = ((0, 20), (4, 16), (8, 28), (12, 24))


def passes(arch: str, where: Array, active: Array, width: int, *, write: bool) -> tuple[Array, Array]:
    """Passes that an access of `width` bytes a lane takes, and how many it would take without conflicts: int [n] both.
    where: byte addresses, int [n, 64]; active: bool [n, 64]."""
    lanes, banks = _phases(arch, width, write)
    count = max(1, width // _WORD)
    words = np.where(active, (where & 0xFFFFFFFF) >> 2, -count).astype(I32)[:, lanes, None] + np.arange(
        count, dtype=I32
    )
    n, phases = len(where), len(lanes)
    words = words.reshape(n, phases, -1)
    words.sort(axis=2)
    fresh = words >= 0
    fresh[:, :, 1:] &= words[:, :, 1:] != words[:, :, :-1]
    bank = np.arange(n * phases).reshape(n, phases, 1) * banks + words % banks
    busiest = np.bincount(bank[fresh], minlength=n * phases * banks).reshape(n, phases, banks).max(axis=2)
    return busiest.sum(axis=1), (busiest > 0).sum(axis=1)


@cache
def _phases(arch: str, width: int, write: bool) -> tuple[Array, int]:
    """Lanes of each phase, int [phases, lanes], and the number of banks."""
    wide = arch == "gfx950" and not write
    banks = 64 if wide else 32
    if width <= 4:
        return LANES.reshape(2, 32), banks
    if width == 8:
        return LANES.reshape(2 if wide else 4, -1), banks
    if write:
        return LANES.reshape(8, 8), banks
    eights = [[*range(a, a + 4), *range(b, b + 4)] for a, b in _EIGHTS]
    if wide and width == 16:
        eights = [eights[0] + eights[3], eights[1] + eights[2]]
    return np.array([[half + lane for lane in phase] for half in (0, 32) for phase in eights]), banks
