from __future__ import annotations

import pytest
import torch

from m3gen.evaluate.comparison import Comparison, compare, first_difference, poison
from m3gen.ops.base import Tolerance

LOOSE = Tolerance(row_rms=1e-2, mean_abs=1e-2, max_abs=1e-1)
FLOAT8 = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz]


def judge(
    output: torch.Tensor,
    expected: torch.Tensor,
    zero_rows: tuple[int, ...] = (),
    tolerance: Tolerance = LOOSE,
) -> Comparison:
    return compare({"out": output}, {"out": expected}, zero_rows, tolerance)


def test_equal_outputs_have_no_error() -> None:
    expected = torch.randn(4, 8, dtype=torch.float64)
    assert judge(expected.clone(), expected) == Comparison(0.0, 0.0, 0.0)


def test_errors_are_as_defined() -> None:
    expected = torch.tensor([[3.0, 4.0], [100.0, 0.0]], dtype=torch.float64)
    found = judge(expected + torch.tensor([[0.05, 0.0], [0.0, 0.01]]).double(), expected)
    assert found.row_rms == pytest.approx(0.05 / 5)
    assert found.mean_abs == pytest.approx(0.015)
    assert found.max_abs == pytest.approx(0.05)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_not_finite_where_the_reference_is_names_the_row(value: float) -> None:
    expected = torch.ones(5, 4)
    output = expected.clone()
    output[3, 2] = value
    found = judge(output, expected)
    assert "row 3 of 5" in found.reason
    assert "1 elements in 1 rows" in found.reason
    assert found.row_rms == float("inf")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_reference_may_demand_what_is_not_finite(value: float) -> None:
    expected = torch.ones(3, 4).double()
    expected[1, 1] = value
    assert not judge(expected.float(), expected).reason
    assert judge(torch.ones(3, 4), expected).reason
    assert judge(-expected.float(), expected).reason


def test_one_destroyed_row_among_many_is_found_though_the_mean_error_is_tiny() -> None:
    expected = torch.randn(4096, 64).double() * 1e3
    expected[77] *= 1e-9
    output = expected.clone()
    output[77] = 0
    found = judge(output, expected)
    assert found.mean_abs < 1e-9
    assert found.max_abs < 1e-5
    assert "row 77" in found.reason


@pytest.mark.parametrize(
    ("tolerance", "word"),
    [
        (Tolerance(row_rms=1e-4), "RMS"),
        (Tolerance(mean_abs=1e-4), "mean"),
        (Tolerance(max_abs=1e-4), "largest"),
    ],
)
def test_each_bound_is_held_alone(tolerance: Tolerance, word: str) -> None:
    expected = torch.ones(2, 2).double()
    assert word in judge(expected + 1e-3, expected, tolerance=tolerance).reason
    assert not judge(expected + 1e-5, expected, tolerance=tolerance).reason
    assert not judge(expected + 1e-3, expected, tolerance=Tolerance()).reason


def test_zero_rows_are_exactly_zero() -> None:
    expected = torch.ones(4, 4).double()
    expected[2] = 0
    output = expected.clone()
    assert not judge(output, expected, (2,)).reason
    output[2, 0] = 1e-30
    assert "row 2 of 4 must be exactly zero" in judge(output, expected, (2,), Tolerance(max_abs=1.0)).reason


def test_a_zero_row_of_an_output_with_another_neutral_value_follows_the_reference() -> None:
    expected = torch.tensor([0.5, float("-inf")]).double()
    assert not judge(expected.float(), expected, (1,)).reason


def test_integers_are_equal_or_wrong() -> None:
    expected = torch.tensor([[1, 2], [3, -1]])
    assert not judge(expected.int(), expected.double()).reason
    output = expected.clone()
    output[1, 0] = 4
    assert "row 1 of 2 differs" in judge(output.int(), expected.double(), tolerance=Tolerance(max_abs=9)).reason


def test_the_worst_of_several_outputs_counts() -> None:
    one, two = torch.ones(2, 2).double(), torch.ones(3).double()
    found = compare({"one": one, "two": two + 0.5}, {"one": one, "two": two}, (), LOOSE)
    assert found.reason.startswith("two: row 0")
    assert found.max_abs == 0.5


def test_a_reference_of_another_shape_is_a_fault_of_the_op() -> None:
    with pytest.raises(ValueError, match="reference of 'out'"):
        judge(torch.ones(2), torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, *FLOAT8])
def test_poison_of_floats_is_nan(dtype: torch.dtype) -> None:
    whole = torch.ones(4, 4).to(dtype)
    poison(whole[:, :2])
    assert whole.float().isnan().tolist() == [[True, True, False, False]] * 4


@pytest.mark.parametrize(("dtype", "value"), [(torch.int32, -(2**31)), (torch.uint8, 255)])
def test_poison_of_integers_is_out_of_the_way(dtype: torch.dtype, value: int) -> None:
    output = torch.zeros(3, dtype=dtype)
    poison(output)
    assert output.tolist() == [value] * 3


def test_difference_is_bitwise() -> None:
    zero, nan = torch.zeros(3, 2), torch.full((3, 2), float("nan"))
    assert first_difference(nan, nan.clone()) is None
    other = zero.clone()
    other[1, 1] = -0.0
    assert first_difference(zero, other) == 1
    assert first_difference(torch.zeros(()), torch.zeros(())) is None
    assert first_difference(torch.zeros(2, 2).T, torch.zeros(2, 2).T) is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e4m3fnuz])
def test_rounding_once_is_never_past_rounding_and_a_step_further_is(dtype: torch.dtype) -> None:
    reference = torch.randn((4, 4096), dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    reference[0] *= 2.0**-6  # down to where the 8-bit floats are denormal
    bound = Tolerance(past_rounding=1e-9)
    rounded = reference.to(dtype)
    assert compare({"y": rounded}, {"y": reference}, (), bound).reason == ""
    spoiled = rounded.clone()
    spoiled.view(torch.uint8)[2, 17 * dtype.itemsize] ^= 1
    found = compare({"y": spoiled}, {"y": reference}, (), bound).reason
    assert "row 2 is off by" in found
    assert "past one rounding" in found


def test_the_error_past_rounding_is_told_of_the_worst_output() -> None:
    reference = torch.ones((2, 8), dtype=torch.float64)
    off = reference.clone()
    off[1, 3] += 0.25
    outputs = {"a": reference.clone(), "b": off, "rows": torch.ones(2, dtype=torch.int32)}
    found = compare(
        outputs, dict.fromkeys("ab", reference) | {"rows": torch.ones(2)}, (), Tolerance(past_rounding=1)
    )
    assert found.past_rounding == pytest.approx(0.25)
    assert found.reason == ""
    assert judge(off, reference).past_rounding is None


def test_fp32_arithmetic_before_the_rounding_is_what_the_bound_leaves_room_for() -> None:
    reference = torch.tensor([[1.0 + 2**-8 - 2**-30, 1.0]], dtype=torch.float64)  # just under a tie of bf16
    rounded_up = torch.tensor([[1.0 + 2**-7, 1.0]], dtype=torch.bfloat16)
    assert compare({"y": rounded_up}, {"y": reference}, (), Tolerance(past_rounding=1e-6)).reason == ""
    assert compare({"y": rounded_up}, {"y": reference}, (), Tolerance(past_rounding=1e-10)).reason != ""


def test_exact_outputs_are_held_to_every_bit() -> None:
    zero, negative = torch.zeros(2, 3, dtype=torch.bfloat16), -torch.zeros(2, 3, dtype=torch.bfloat16)
    assert compare({"y": zero}, {"y": negative}, (), Tolerance()).reason == ""
    found = compare({"y": zero}, {"y": negative}, (), Tolerance(), exact=("y",))
    assert found.reason == "y: row 0 of 2 is not the reference bit by bit"
    assert found.max_abs == float("inf")
    assert compare({"y": zero}, {"y": zero.clone()}, (), Tolerance(), exact=("y",)).reason == ""
    with pytest.raises(ValueError, match=r"torch.float64 .*torch.bfloat16"):
        compare({"y": zero}, {"y": zero.double()}, (), Tolerance(), exact=("y",))
