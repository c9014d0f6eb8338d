"""What is read from a wheel, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.moe.campaign import GFX942_BF16, GFX942_FP8
from benchmarks.moe.config import MoeConfig
from benchmarks.moe.kernel import source
from benchmarks.moe.tables import NotVllm, entries
from tests.benchmarks.wheel import FOLDER, table_entry, write_table

ENTRY = table_entry(16, 64, 128, 4, matrix_instr_nonkdim=16, kpack=2)

KERNEL = """
import vllm.envs as envs

@triton.jit
def write_zeros_to_output(c_ptr):
    tl.store(c_ptr, 0)

@triton.jit
def another_kernel(c_ptr):
    pass

@triton.jit
def fused_moe_kernel(c_ptr, N: tl.constexpr = 1):
    write_zeros_to_output(c_ptr)
"""


def test_only_the_campaigns_own_tables_are_read(tmp_path: Path) -> None:
    names = {
        "E=8,N=7168,device_name=AMD_Instinct_MI300X.json": 1,
        "E=8,N=7168,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8.json": 2,
        "E=8,N=7168,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json": 3,
        "E=8,N=7168,device_name=AMD_Instinct_MI308X.json": 4,
        "E=8,N=7168,device_name=NVIDIA_H100.json": 5,
    }
    for name, tokens in names.items():
        write_table(tmp_path, name, {"triton_version": "3.5", str(tokens): ENTRY})
    assert [entry.tokens for entry in entries(tmp_path, GFX942_BF16)] == [1]
    assert [entry.tokens for entry in entries(tmp_path, GFX942_FP8)] == [2]


def test_entries_come_in_order_of_tokens_and_name_their_winner(tmp_path: Path) -> None:
    other = table_entry(128, 128, 64, 8)
    write_table(tmp_path, "E=60,N=1408,device_name=AMD_Instinct_MI300X.json", {"1024": other, "2": ENTRY})
    found = list(entries(tmp_path, GFX942_BF16))
    assert [(entry.tokens, entry.winner) for entry in found] == [
        (2, MoeConfig(16, 64, 128, 4, 16, 2)),
        (1024, MoeConfig(128, 128, 64, 8, 0, 1)),
    ]
    assert (found[0].device, found[0].experts, found[0].intermediate) == ("MI300X", 60, 1408)


@pytest.mark.parametrize("option", [{"num_stages": 3}, {"waves_per_eu": 2}])
def test_an_entry_outside_the_ranked_space_is_refused(option: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="num_stages"):
        MoeConfig.of_entry({**ENTRY, **option})


def test_a_folder_without_tables_or_kernel_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(NotVllm, match=r"no tables for gfx942-bf16.*pip download"):
        list(entries(tmp_path, GFX942_BF16))
    with pytest.raises(NotVllm, match=r"no vllm/.*fused_moe.py.*pip download"):
        source(tmp_path)


def test_the_kernel_is_cut_out_of_a_file_that_could_not_be_imported(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "fused_moe.py").write_text(KERNEL)
    text = source(tmp_path).text
    assert "vllm" not in text
    assert "another_kernel" not in text
    assert text.count("@triton.jit\ndef ") == 2
    assert text.index("def write_zeros_to_output") < text.index("def fused_moe_kernel")
