"""Faults of decode attentions and caches that others met in service, and the tests that keep m3gen from them.

Each row: what went wrong, where it is public, and the tests, `module::function` of this folder or, with a slash, of
another. Rows without a place come from reading vLLM's kernels and running them (docs/beside_vllm.md).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import pytest

VLLM, AITER = "https://github.com/vllm-project/vllm/", "https://github.com/ROCm/aiter/"
ATOM, SGLANG = "https://github.com/ROCm/ATOM/", "https://github.com/sgl-project/sglang/"


@dataclass(frozen=True, slots=True)
class Fault:
    symptom: str
    places: tuple[str, ...]
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "merge of splits gives NaN in rows with nothing to attend to",
        (VLLM + "issues/49054",),
        (
            "test_decode_faults::test_rows_of_padding_come_out_nan_from_the_merge",
            "test_index_score_faults::test_query_rows_before_the_sequence_began_see_nothing",
        ),
    ),
    Fault(
        "-1 of a list indexes the block table before its row",
        (VLLM + "pull/54597",),
        ("test_decode_faults::test_a_sentinel_indexes_the_table_before_its_row",),
    ),
    Fault(
        "ids of a longer step stay behind those of a shorter one",
        (VLLM + "pull/54604",),
        (
            "test_index_topk_faults::test_ids_of_a_longer_step_before_do_not_survive_a_shorter_one",
            "test_index_score_faults::test_scores_of_a_longer_step_before_do_not_survive_a_shorter_one",
        ),
    ),
    Fault(
        "bytes of one e4m3 dialect read as the other",
        (VLLM + "issues/45562", VLLM + "pull/45720"),
        (
            "test_decode_faults::test_bytes_of_one_fp8_dialect_are_read_as_the_other",
            "test_cache_faults::test_8_bit_codes_are_of_the_dialect_of_the_hardware",
            "test_kv_convert_dialects::test_every_code_without_a_scale_is_torchs_cast",
            "test_kv_convert_dialects::test_with_a_scale_per_token_every_code_means_the_same_before_and_after",
        ),
    ),
    Fault(
        "a token-major buffer taken for a head-major one",
        (VLLM + "issues/48603", VLLM + "pull/49149", VLLM + "pull/48929"),
        (
            "test_index_topk_faults::test_token_major_lists_are_no_head_major_ones_even_when_rows_equal_heads",
            "test_index_score_faults::test_token_major_scores_are_no_head_major_ones_even_when_rows_equal_heads",
        ),
    ),
    Fault(
        "speculative rows share one row of the page-16 table",
        (VLLM + "issues/52860", VLLM + "pull/52893"),
        ("test_faults_across_ops::test_query_rows_of_a_request_share_one_page_table_row",),
    ),
    Fault(
        "padded speculative rows build wrong table rows, or change real ones",
        (VLLM + "pull/47984",),
        (
            "test_index_topk_faults::test_padded_rows_of_a_speculative_batch_have_empty_page_tables",
            "test_decode_faults::test_requests_of_padding_among_several_query_rows_change_the_others",
        ),
    ),
    Fault(
        "a split that some rows do not see: 0 * NaN",
        (AITER + "issues/4711",),
        ("test_decode_faults::test_a_split_that_early_rows_do_not_see_weighs_in",),
    ),
    Fault(
        "score buffer smaller than the longest sequence",
        (SGLANG + "issues/31133",),
        (
            "test_index_score_faults::test_a_score_buffer_under_the_longest_sequence_is_refused",
            "test_index_score_faults::test_a_length_past_the_table_writes_nothing_out_of_bounds",
            "test_index_topk_faults::test_more_blocks_than_scores_read_nothing_out_of_bounds",
        ),
    ),
    Fault(
        "length 0 less 1 as an unsigned number: the kernel never ends",
        (
            "https://github.com/flashinfer-ai/flashinfer/issues/5015",
            VLLM + "issues/51538",
            SGLANG + "issues/30378",
        ),
        (
            "test_decode_faults::test_a_length_of_zero_less_one_is_four_billion",
            "test_index_score_faults::test_a_request_of_length_zero_scores_nothing_and_ends",
            "test_index_topk_faults::test_a_request_of_length_zero_selects_nothing_and_ends",
        ),
    ),
    Fault(
        "pad tokens counted as requests",
        ("https://github.com/NVIDIA/TensorRT-LLM/pull/18034",),
        (
            "test_decode_faults::test_tokens_of_padding_are_counted_as_requests",
            "test_index_score_faults::test_rows_of_padding_score_nothing_beside_real_ones",
            "test_index_topk_faults::test_rows_of_padding_select_nothing_beside_real_ones",
            "test_cache_faults::test_padding_rows_touch_no_cache_and_still_give_their_query",
        ),
    ),
    Fault(
        "the last entry of a list taken for the partial block",
        (SGLANG + "issues/30971",),
        (
            "test_decode_faults::test_unordered_ids_mask_the_wrong_block",
            "test_index_topk_faults::test_ids_may_be_asked_for_in_ascending_order",
        ),
    ),
    Fault(
        "page or head times stride in 32 bits",
        (
            VLLM + "issues/47671",
            VLLM + "issues/46222",
            VLLM + "issues/50427",
            SGLANG + "issues/39948",
            SGLANG + "issues/20389",
        ),
        (
            "test_decode_faults::test_an_offset_past_two_gi_elements_wraps",
            "test_cache_faults::test_page_offsets_pass_2_31",
            "test_cache_faults::test_head_offsets_pass_2_31",
            "test_index_score_faults::test_page_offsets_pass_two_to_the_thirty_first",
            "test_index_topk_faults::test_offsets_into_the_scores_pass_two_to_the_thirty_first",
        ),
    ),
    Fault(
        "RoPE exchanges lanes with the wrong partner",
        (VLLM + "issues/51049", VLLM + "issues/50903", VLLM + "issues/57681"),
        ("test_cache_faults::test_rotation_pairs_element_i_with_i_plus_32_and_leaves_the_upper_half_alone",),
    ),
    Fault(
        "shared memory over the limit, found at launch",
        (AITER + "pull/3257", AITER + "pull/5035", AITER + "pull/4385"),
        (
            "test_decode_faults::test_tiles_that_exceed_shared_memory_reach_the_gpu",
            "compiler/test_compile::test_shared_memory_over_the_limit_is_a_resource_fault",
        ),
    ),
    Fault(
        "two stages that fit, two to four times slower than one",
        (AITER + "pull/5483",),
        ("test_faults_across_ops::test_every_schedule_has_two_stages_or_more",),
    ),
    Fault(
        "a GQA group that is no power of two",
        (
            VLLM + "pull/40792",
            "https://github.com/pytorch/pytorch/issues/151359",
            "https://github.com/Sandermage/genesis-vllm-patches/issues/7",
        ),
        (
            "test_decode_faults::test_a_group_that_is_no_power_of_two_loses_its_tail_heads",
            "test_cache_ops::test_the_gate_passes",
        ),
    ),
    Fault(
        "kernels compiled while serving",
        (VLLM + "pull/45631", VLLM + "pull/57669", "https://github.com/vllm-project/vllm-ascend/pull/13637"),
        (
            "test_decode_faults::test_kernels_are_compiled_while_serving",
            "test_cache_faults::test_one_compile_serves_every_number_of_rows",
            "test_cache_faults::test_one_compile_serves_every_gather",
            "test_index_score_compile::test_the_number_of_compiles_does_not_grow_with_the_shapes_of_a_service",
            "test_index_topk_compile::test_the_number_of_compiles_does_not_grow_with_the_shapes_of_a_service",
        ),
    ),
    Fault(
        "garbage past the end of a page drifts into the output",
        ("https://github.com/vllm-project/vllm-ascend/issues/13391",),
        (
            "test_decode_faults::test_what_lies_past_the_end_in_the_last_page_drifts_into_the_output",
            "test_index_score_faults::test_garbage_past_the_end_of_a_page_never_reaches_a_score",
        ),
    ),
    Fault(
        "a copied block leaves its index keys or its scales behind",
        (ATOM + "pull/1368", ATOM + "pull/2140", ATOM + "pull/2146", VLLM + "issues/50882"),
        (
            "test_cache_faults::test_a_page_moves_with_its_index_and_its_scales",
            "test_faults_across_ops::test_a_copied_page_is_attended_to_without_its_scales",
        ),
    ),
    Fault(
        "240 as a literal on hardware that has 448",
        (ATOM + "pull/2205",),
        (
            "test_cache_faults::test_the_largest_number_is_that_of_the_dialect_not_a_literal",
            "test_decode_faults::test_the_largest_value_of_a_dialect_is_a_literal_of_another",
        ),
    ),
    Fault(
        "a page size other than 128 served wrongly",
        (
            "https://github.com/sgl-project/sglang-jax/issues/1376",
            "https://github.com/SemiAnalysisAI/InferenceX/pull/1856",
        ),
        (
            "test_decode_faults::test_another_page_size_is_served_wrongly",
            "test_faults_across_ops::test_a_cache_op_serves_another_page_size_wrongly",
            "test_index_score_faults::test_a_wrong_argument_is_named_before_any_launch",
        ),
    ),
    Fault(
        "an 8-bit cache with sparse attention crashes",
        ("https://github.com/ggml-org/llama.cpp/issues/26155", "https://github.com/ggml-org/llama.cpp/pull/24908"),
        (
            "test_decode_faults::test_what_was_written_with_a_scale_is_read_without",
            "test_index_score::test_every_dtype_is_right_on_awkward_lengths",
        ),
    ),
    Fault(
        "a launch waits for the device, allocates, or takes its shape from data",
        (ATOM + "pull/1480",),
        (
            "test_faults_across_ops::test_a_launcher_allocates_or_waits_for_the_device",
            "test_decode_faults::test_a_launch_waits_for_the_device",
        ),
    ),
    Fault(
        "a page of -1 is loaded",
        (VLLM + "pull/50032",),
        ("test_decode_faults::test_a_negative_page_is_loaded",),
    ),
    Fault(
        "a score of -inf takes another block along and leaves -1 in mid-list",
        (),
        (
            "test_index_topk_faults::test_an_infinitely_bad_block_neither_leaves_nor_takes_another_along",
            "test_index_score_faults::test_a_block_of_infinite_keys_keeps_its_infinity_and_no_other_blocks_score",
        ),
    ),
    Fault(
        "a score of NaN costs a block its place",
        (),
        (
            "test_index_topk_faults::test_nan_ranks_last_and_drops_no_block",
            "test_index_score_faults::test_a_nan_in_real_data_is_kept_and_stays_in_its_block",
        ),
    ),
    Fault(
        "blocks after a hole in the list are lost",
        (),
        ("test_decode_faults::test_blocks_after_a_hole_in_the_list_are_lost",),
    ),
    Fault(
        "ties fall to other blocks by the size of the captured graph, or on another path",
        (),
        (
            "test_index_topk_faults::test_equal_scores_go_to_the_lower_id_whatever_the_width_of_the_buffer",
            "test_index_topk_faults::test_zeros_of_both_signs_are_one_score",
        ),
    ),
    Fault(
        "a cache written at unit scale and read at another",
        (),
        (
            "test_faults_across_ops::test_the_insert_writes_at_unit_scale_what_the_attention_reads_at_another",
            "test_cache_faults::test_the_writer_divides_by_the_scale_that_the_reader_multiplies_by",
        ),
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.symptom)
def test_each_fault_has_its_tests(fault: Fault) -> None:
    assert fault.tests
    for node in fault.tests:
        file, name = node.split("::")
        module = importlib.import_module("tests." + (file if "/" in file else f"ops/{file}").replace("/", "."))
        assert callable(getattr(module, name, None)), f"{node} is no test"
        assert name.startswith("test_")


def test_places_are_public_and_named_once() -> None:
    places = [place for fault in FAULTS for place in fault.places]
    assert all(place.startswith("https://github.com/") and place.rsplit("/", 1)[1].isdigit() for place in places)
    assert len(set(places)) == len(places)
