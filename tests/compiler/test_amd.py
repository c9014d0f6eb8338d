from __future__ import annotations

import re

import pytest

from m3gen.compiler import amd
from m3gen.compiler.instruction import tally, unknowns
from m3gen.compiler.loops import natural_loops
from tests.compiler import kernels
from tests.compiler.kernels import compiled


def parse(*lines: str) -> amd.Program:
    text = "\n".join(line if line.endswith(":") else f"\t{line}" for line in lines)
    return amd.parse(f"{text}\n.Lfunc_end0:\n\tv_not_code_f32 v0\n", "gfx942")


def unit(line: str) -> str:
    return parse(line).instructions[0].unit


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[0:3]", "matrix"),
        ("v_exp_f32_e32 v0, v0", "transcendental"),
        ("v_cvt_pk_bf16_f32 v0, v1, v2", "convert"),
        ("v_pk_fma_f32 v[0:1], v[0:1], v[0:1], v[0:1]", "vector"),
        ("v_accvgpr_read_b32 v0, a0", "vector"),
        ("v_add_f32_dpp v0, v1, v2 row_shr:1", "permute"),
        ("v_readlane_b32 s0, v0, 1", "permute"),
        ("ds_bpermute_b32 v0, v1, v2", "permute"),
        ("ds_add_rtn_u32 v0, v1, v2", "atomic"),
        ("global_atomic_add v[0:1], v2, off", "atomic"),
        ("s_load_dwordx4 s[0:3], s[0:1], 0x0", "scalar"),
        ("s_waitcnt vmcnt(0)", "wait"),
        ("s_barrier", "barrier"),
        ("s_cbranch_execz .LBB0_1", "branch"),
        ("s_nop 1", "other"),
        ("buffer_wbl2 sc1", "other"),
        ("scratch_load_dword v0, off, s32", "spill"),
    ],
)
def test_units(line: str, expected: str) -> None:
    assert unit(line) == expected


@pytest.mark.parametrize(
    ("line", "width"),
    [
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", 16),
        ("global_load_ushort v0, v[0:1], off", 2),
        ("global_load_short_d16_hi v0, v[0:1], off", 2),
        ("buffer_load_ubyte v0, v1, s[0:3], 0 offen", 1),
        ("global_load_lds_dwordx4 v[0:1], off", 16),
        ("buffer_load_dword v1, s[0:3], 0 offen lds", 4),
        ("flat_store_dwordx2 v[0:1], v[2:3]", 8),
        ("ds_read_b128 v[0:3], v4", 16),
        ("ds_read2_b64 v[0:3], v4 offset1:1", 16),
        ("ds_read2st64_b32 v[0:1], v4 offset1:1", 8),
        ("ds_read_u16_d16_hi v0, v1", 2),
        ("ds_read_b64_tr_b16 v[0:1], v2", 8),
        ("ds_write2st64_b64 v0, v[0:1], v[2:3] offset1:8", 16),
    ],
)
def test_widths(line: str, width: int) -> None:
    assert parse(line).instructions[0].bytes == width


def test_loads_that_go_to_shared_memory_count_as_both() -> None:
    sums = tally(
        parse("global_load_lds_dwordx4 v[0:1], off", "buffer_load_dword v1, s[0:3], 0 offen lds").instructions
    )
    assert sums["load_bytes"] == sums["shared_write_bytes"] == 20
    assert sums["load_widths"] == {"4": 1, "16": 1}


def test_what_the_tables_lack_is_reported() -> None:
    body = parse(
        "v_mfma_f32_16x16x64_new v0, v1, v2, v0", "buffer_load_dwordx8 v[0:7], v8, s[0:3], 0"
    ).instructions
    assert unknowns(body) == {
        "unknown_matrix": {"v_mfma_f32_16x16x64_new": 1},
        "unknown_memory": {"buffer_load_dwordx8": 1},
    }
    assert unknowns(parse("v_mfma_f32_16x16x16_f16 v0, v1, v2, v0", "ds_read_b32 v0, v1").instructions) == {}


def test_a_branch_too_far_for_its_offset_is_followed() -> None:
    """LLVM relaxes it to address arithmetic and s_setpc; the loop would be lost."""
    program = parse(
        ".LBB0_1:",
        "v_add_u32_e32 v0, 1, v0",
        "s_cbranch_scc0 .LBB0_2",
        "s_getpc_b64 s[4:5]",
        ".Lpost_getpc0:",
        "s_add_u32 s4, s4, (.LBB0_1-.Lpost_getpc0)&4294967295",
        "s_addc_u32 s5, s5, (.LBB0_1-.Lpost_getpc0)>>32",
        "s_setpc_b64 s[4:5]",
        ".LBB0_2:",
        "s_endpgm",
    )
    (loop,) = natural_loops(program.instructions, program.labels)
    assert loop.label == ".LBB0_1"
    assert len(loop.instructions) == 6


def test_code_ends_where_the_function_does() -> None:
    assert [i.mnemonic for i in parse("s_endpgm").instructions] == ["s_endpgm"]


def test_missing_metadata_is_an_error_not_a_zero() -> None:
    with pytest.raises(ValueError, match="vgpr_count"):
        amd.code_sha("\ts_endpgm\n")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("launch", [kernels.attend(kv_bytes=3 * kernels.GIB), kernels.sum_rows()])
def test_loops_are_those_that_llvm_names_in_its_comments(arch: str, launch: kernels.Launch) -> None:
    """LLVM's MachineLoopInfo, printed beside the code, against branches alone: headers, depths and blocks."""
    assembly = compiled(arch, launch).assembly
    headers: dict[str, int] = {}
    members: dict[str, set[str]] = {}
    label = ""
    for line in assembly.splitlines():
        if found := re.match(r"^\.L(BB\d+_\d+):", line):
            label = found[1]
        elif re.match(r"^; %bb", line):
            label = ""
        if found := re.search(r"=>\s*This (?:Inner )?Loop Header: Depth=(\d+)", line):
            headers[label] = int(found[1])
        if (found := re.search(r"in Loop: Header=(BB\d+_\d+)", line)) and label:
            members.setdefault(found[1], {found[1]}).add(label)
    program = amd.parse(assembly, arch)
    loops = natural_loops(program.instructions, program.labels)
    assert headers
    assert {loop.label.removeprefix(".L"): loop.depth for loop in loops} == headers
    for loop in loops:
        for member in members.get(loop.label.removeprefix(".L"), ()):
            assert program.labels[f".L{member}"] in loop.instructions
