"""What a launch is counted as, on kernels whose numbers are known by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from m3gen.emulator import Profile, Recording, emulating
from m3gen.emulator.descriptor import Descriptor
from m3gen.emulator.profile import space
from tests.emulator import kernels
from tests.emulator.harness import machine

ARCHS = ["gfx942", "gfx950"]


def added(arch: str, n: int = 1000, **options: bool) -> Profile:
    """1000 floats in 4 workgroups of 4 waves: 256 a workgroup, the last 24 masked."""
    x, y, out = torch.randn(n), torch.randn(n), torch.empty(n)
    with emulating(arch, profile=True, **options) as emulator:
        kernels.add[(4,)](x, y, out, n, BLOCK=256)
    [profile] = emulator.profiles
    return profile


def numbers(profile: Profile, start: str) -> list[int]:
    """Of the instructions whose text starts so."""
    return [n for n, line in enumerate(profile.program.instructions) if line.text.startswith(start)]


def on_memory(text: str, size: int, groups: int) -> Recording:
    """Of workgroups of one wave, with the address of `size` bytes in s[0:1]."""
    one = machine(text, profile=True)
    region = one.memory.register_array("memory", np.zeros(size, np.uint8))
    one.program = replace(one.program, descriptor=Descriptor.parse(".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"))
    recording = one.launch((groups, 1, 1), 1, 0, region.start)
    assert recording is not None
    return recording


@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_and_lines_of_an_addition(arch: str) -> None:
    profile = added(arch)
    assert profile.traffic["global_read"] == 2 * 4 * 1000
    assert profile.traffic["global_written"] == 4 * 1000
    loads = numbers(profile, "buffer_load")
    assert profile.counts.waves[loads].tolist() == [16, 16]
    # 4,000 bytes are 31 lines and a quarter, and a wave's 256 bytes lie in two of them.
    assert profile.counts.lines[loads].tolist() == [32, 32]
    assert profile.footprint.written_lines == 32
    kernarg_lines = profile.footprint.read_lines - 64
    assert kernarg_lines == 1
    assert profile.footprint.lines == 97
    assert profile.footprint.workgroup_lines.tolist() == [25, 25, 25, 25]


@pytest.mark.parametrize("arch", ARCHS)
def test_what_each_unit_executed(arch: str) -> None:
    profile = added(arch)
    units = profile.by_unit
    assert units["vmem"] == 3 * 16
    assert "matrix" not in units
    assert sum(units.values()) == int(profile.counts.waves.sum()) == 16 * len(profile.program.instructions)


@pytest.mark.parametrize("late", [True, False])
def test_a_wait_knows_what_is_under_way(late: bool) -> None:
    profile = added("gfx942", late=late)
    waits = numbers(profile, "s_waitcnt vmcnt(0)")
    under_way = 2 * 16 if late else 0  # two loads in 16 waves; nothing when memory completes at once
    assert profile.counts.outstanding[0, waits].tolist() == [under_way]
    assert profile.counts.awaited[0, waits].tolist() == [under_way]
    assert profile.counts.outstanding[1, waits].tolist() == [0]


def test_a_wait_that_leaves_some_waits_for_the_others() -> None:
    text = "s_load_dword s4, s[0:1], 0x0\ns_load_dword s5, s[0:1], 0x4\ns_waitcnt lgkmcnt(1)\ns_endpgm"
    recording = on_memory(text, 64, groups=2)
    assert recording.counts.outstanding[:, 2].tolist() == [0, 4]
    assert recording.counts.awaited[:, 2].tolist() == [0, 2]


def test_strided_loads_touch_a_line_each() -> None:
    """Lane n reads word 32 n: 64 lines for 256 bytes."""
    text = "v_lshlrev_b32 v0, 7, v0\nglobal_load_dword v1, v0, s[0:1]\ns_waitcnt vmcnt(0)\ns_endpgm"
    recording = on_memory(text, 128 * 64, groups=3)
    assert (recording.counts.bytes[1], recording.counts.lines[1]) == (3 * 256, 3 * 64)
    assert recording.footprint.lines == 64
    assert recording.footprint.workgroup_lines.tolist() == [64, 64, 64]


@pytest.mark.parametrize(("stride", "conflicts"), [(128, 62), (132, 0)])
def test_a_column_of_a_tile_in_the_lds(stride: int, conflicts: int) -> None:
    """A transposing read: rows of 32 words lie in one bank, rows of 33 in all."""
    text = f"v_mul_u32_u24 v0, {stride}, v0\nds_write_b32 v0, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v1, v0\n"
    recording = machine(text + "s_waitcnt lgkmcnt(0)\ns_endpgm", profile=True).launch((1, 1, 1), 1, 64 * stride, 0)
    assert recording is not None
    assert recording.counts.shared_bytes[[1, 3]].tolist() == [256, 256]
    assert recording.counts.conflicts[[1, 3]].tolist() == [conflicts, conflicts]
    assert recording.counts.passes[[1, 3]].tolist() == [conflicts + 2, conflicts + 2]


def test_an_atomic_of_the_lds_is_one_access_of_its_lanes() -> None:
    text = "v_lshlrev_b32 v0, 2, v0\nds_add_u32 v0, v0\ns_waitcnt lgkmcnt(0)\ns_endpgm"
    recording = machine(text, profile=True).launch((1, 1, 1), 1, 256, 0)
    assert recording is not None
    assert (recording.counts.shared_bytes[1], recording.counts.passes[1]) == (256, 2)


@pytest.mark.parametrize("arch", ARCHS)
def test_bytes_of_atomics(arch: str) -> None:
    counter, order = torch.zeros(1, dtype=torch.int32), torch.zeros(70, dtype=torch.int32)
    with emulating(arch, profile=True) as emulator:
        kernels.count[(70,)](counter, order, BLOCK=64)
    assert emulator.profiles[0].traffic["global_atomic"] == 4 * 70


@pytest.mark.parametrize(
    ("arch", "dtype", "clocks"),
    [
        ("gfx942", torch.bfloat16, 16 * 16 * 16 / 16),  # products in a clock: 16x16x16 in 4 passes of 4 clocks
        ("gfx950", torch.bfloat16, 16 * 16 * 32 / 16),
        ("gfx942", torch.float8_e4m3fnuz, 16 * 16 * 32 / 16),
        ("gfx950", torch.float8_e4m3fn, 16 * 16 * 128 / 32),
    ],
)
def test_passes_of_a_product(arch: str, dtype: torch.dtype, clocks: float) -> None:
    a, b = torch.randn(32, 128).to(dtype), torch.randn(128, 64).to(dtype)
    with emulating(arch, profile=True) as emulator:
        kernels.matmul[(1,)](a, b, torch.empty(32, 64), 128, M=32, N=64, TILE=128, num_warps=1)
    assert emulator.profiles[0].matrix_passes * 4 == 32 * 64 * 128 / clocks


@pytest.mark.parametrize("arch", ARCHS)
def test_programs_that_take_another_way(arch: str) -> None:
    n = 70 * 64
    x, out = torch.randn(n), torch.zeros(n)
    with emulating(arch, profile=True) as emulator:
        kernels.double_some[(70,)](x, out, n, 3, BLOCK=64, num_warps=1)
    [profile] = emulator.profiles
    behaviours = profile.behaviours()
    assert sorted(map(sorted, behaviours)) == [[0, 1, 2], list(range(3, 70))]
    assert profile.traffic["global_written"] == 3 * 64 * 4
    few, many = profile.trace(0), profile.trace(69)
    stores = numbers(profile, "buffer_store") or numbers(profile, "global_store")
    assert set(stores) & set(few.instructions.tolist())
    assert not set(stores) & set(many.instructions.tolist())


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", range(3))
def test_traces_add_up_to_the_counts(arch: str, seed: int) -> None:
    """Waves that part, meet and wait for each other at barriers."""
    x = torch.tensor([1, 2, 3, 1000, 7, 1 << 30, 5, 1], dtype=torch.int32)
    with emulating(arch, profile=True, seed=seed) as emulator:
        kernels.search[(8,)](x, torch.empty_like(x), BLOCK=64)
        kernels.softmax[(8,)](torch.randn(8, 300), torch.empty(8, 300), 300, BLOCK=512, num_warps=4)
    for profile in emulator.profiles:
        traces = [profile.trace(group, wave) for group in range(8) for wave in range(profile.waves)]
        size = len(profile.program.instructions)
        executed, values = np.zeros(size, int), np.zeros((size, 5), int)
        for trace in traces:
            np.add.at(executed, trace.instructions, 1)
            np.add.at(values, trace.instructions, trace.values)
        counts = profile.counts
        assert executed.tolist() == counts.waves.tolist()
        wanted = [counts.bytes, counts.lines, counts.shared_bytes, counts.passes, counts.conflicts]
        assert values.T.tolist() == [one.tolist() for one in wanted]


def test_a_trace_of_a_wave_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no wave 4 of workgroup 0 in 4 of 4 waves"):
        added("gfx942").trace(0, 4)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_dump_replays(arch: str) -> None:
    profile = added(arch)
    dump = json.loads(json.dumps(profile.as_dict(), allow_nan=False))
    [trace] = dump["traces"]
    order = [first + step for first, count in trace["runs"] for step in range(count)]
    assert order == profile.trace().instructions.tolist()
    assert dump["behaviours"] == [[0, 1, 2, 3]]
    load = numbers(profile, "buffer_load")[0]
    at = order.index(load)
    assert [at, 256, 2, 0, 0, 0] in trace["memory"]
    assert dump["instructions"][load]["counter"] == "vm"
    assert dump["instructions"][load]["source"].startswith("kernels.py:")


def test_nothing_is_recorded_unless_asked() -> None:
    with emulating("gfx942") as emulator:
        kernels.add[(4,)](torch.randn(1024), torch.randn(1024), torch.empty(1024), 1024, BLOCK=256)
    assert emulator.profiles == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("s_load_dwordx2 s[2:3], s[0:1], 0x0", "scalar_read"),
        ("global_load_dwordx4 v[0:3], v4, s[0:1]", "global_read"),
        ("buffer_store_short v1, v0, s[0:3], 0 offen", "global_written"),
        ("global_atomic_add v1, v0, v2, s[0:1] sc0", "global_atomic"),
        ("scratch_load_dword v0, off, s0", "scratch_read"),
        ("scratch_store_dword off, v0, s0", "scratch_written"),
        ("ds_read2st64_b32 v[0:1], v2 offset1:1", "shared_read"),
        ("ds_write_b8 v0, v1", "shared_written"),
        ("ds_add_u32 v0, v1", "shared_atomic"),
        ("ds_bpermute_b32 v0, v1, v2", ""),
        ("v_add_u32 v0, v1, v2", ""),
    ],
)
def test_where_an_instruction_moves_bytes(text: str, kind: str) -> None:
    assert space(machine(text).program.instructions[0]) == kind


@pytest.mark.parametrize("grid", [(2, 70), (2, 1, 70), (2, 7, 10)])
def test_of_a_grid_that_counts_arrivals_all_that_count_each_other_run(grid: tuple[int, ...]) -> None:
    """Once the first ones ran, of which none is the last, so that what the last does was in no prediction."""
    counter, order = torch.zeros(1, dtype=torch.int32), torch.zeros(140, dtype=torch.int32)
    x, out = torch.randn(70 * 64), torch.zeros(70 * 64)
    with emulating("gfx942", profile=True, workgroups=64) as emulator:
        kernels.count[grid](counter, order, BLOCK=64)
        kernels.double_some[(70,)](x, out, 70 * 64, 3, BLOCK=64, num_warps=1)
    counting, doubling = emulator.profiles
    assert counter.item() == 70
    assert sorted(sum(counting.behaviours(), ())) == list(range(0, 140, 2))
    assert sorted(sum(doubling.behaviours(), ())) == list(range(64))
