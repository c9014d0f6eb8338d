"""Outputs against a float64 reference, row by row, so that one destroyed row cannot hide among thousands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import torch

from m3gen.ops.base import Tolerance

# What an output holds before a launch, so that an element left unwritten shows. bool has no such value.
_NAN_CODES = {
    torch.float8_e4m3fn: 0x7F,
    torch.float8_e4m3fnuz: 0x80,
    torch.float8_e5m2: 0x7F,
    torch.float8_e5m2fnuz: 0x80,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Errors as in `CaseResult`, infinite when they cannot be told. `reason` is empty when all is well, else
    names the output, its first offending row, and what was wrong."""

    row_rms: float
    mean_abs: float
    max_abs: float
    reason: str = ""
    past_rounding: float | None = None


_HOPELESS = float("inf")


def poison(output: torch.Tensor) -> None:
    """Fill with NaN; integers with their least value (unsigned: the greatest)."""
    if output.dtype in _NAN_CODES:
        output.view(torch.uint8).fill_(_NAN_CODES[output.dtype])
    elif output.dtype.is_floating_point:
        output.fill_(float("nan"))
    elif output.dtype is not torch.bool:
        limits = torch.iinfo(output.dtype)
        output.fill_(limits.min if limits.min < 0 else limits.max)


def first_difference(before: torch.Tensor, after: torch.Tensor) -> int | None:
    """The first row in which two tensors of one shape and dtype differ in any bit; None when they agree."""
    pair = (_rows(tensor).contiguous().view(torch.uint8) for tensor in (before, after))
    rows = torch.ne(*pair).any(1).nonzero()
    return int(rows[0]) if len(rows) else None


def compare(
    outputs: Mapping[str, torch.Tensor],
    reference: Mapping[str, torch.Tensor],
    zero_rows: Iterable[int],
    tolerance: Tolerance,
    exact: Collection[str] = (),
) -> Comparison:
    """Every output of one case against its reference: the worst of each error, the first failure.

    Rows are the first dimension. Where the reference is finite the output must be; where it is infinite or
    NaN the output must be just that. Integers must be equal. `zero_rows` must be exactly zero in every output
    whose reference is zero there. The outputs named in `exact` must be the reference bit by bit. Raises
    `KeyError` or `ValueError` when the reference does not fit.
    """
    rows = tuple(zero_rows)
    results = [
        _compare_bits(name, output, reference[name])
        if name in exact
        else _compare(name, output, reference[name], rows, tolerance)
        for name, output in outputs.items()
    ]
    past_rounding = [result.past_rounding for result in results if result.past_rounding is not None]
    return Comparison(
        row_rms=max(result.row_rms for result in results),
        mean_abs=max(result.mean_abs for result in results),
        max_abs=max(result.max_abs for result in results),
        reason=next((result.reason for result in results if result.reason), ""),
        past_rounding=max(past_rounding, default=None),
    )


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(len(tensor), -1) if tensor.dim() else tensor.reshape(1, 1)


def _compare_bits(name: str, output: torch.Tensor, expected: torch.Tensor) -> Comparison:
    if (output.shape, output.dtype) != (expected.shape, expected.dtype):
        raise ValueError(
            f"reference of {name!r} is {expected.dtype} {tuple(expected.shape)}, "
            f"the output {output.dtype} {tuple(output.shape)}"
        )
    row = first_difference(output, expected) if output.numel() else None
    if row is None:
        return Comparison(0.0, 0.0, 0.0)
    reason = f"{name}: row {row} of {len(output)} is not the reference bit by bit"
    return Comparison(_HOPELESS, _HOPELESS, _HOPELESS, reason)


def _compare(
    name: str, output: torch.Tensor, expected: torch.Tensor, zero_rows: tuple[int, ...], tolerance: Tolerance
) -> Comparison:
    if output.shape != expected.shape:
        raise ValueError(f"reference of {name!r} is {tuple(expected.shape)}, the output {tuple(output.shape)}")
    if not output.numel():
        return Comparison(0.0, 0.0, 0.0)
    is_float = output.dtype.is_floating_point
    actual, wanted = _rows(output.double()), _rows(expected.double())
    if reason := _wrong_kind(actual, wanted) or _nonzero(actual, wanted, zero_rows):
        return Comparison(_HOPELESS, _HOPELESS, _HOPELESS, f"{name}: {reason}")

    finite = wanted.isfinite()
    error = torch.where(finite, actual - wanted, 0.0)
    row_rms = _relative(error, torch.where(finite, wanted, 0.0))
    worst = int(row_rms.argmax())
    measured = Comparison(float(row_rms[worst]), float(error.abs().mean()), float(error.abs().max()))
    if is_float:
        past = None if tolerance.past_rounding is None else _past_rounding(error, wanted, output.dtype)
        reason = _over(measured, worst, tolerance) or _over_past_rounding(past, tolerance)
        measured = replace(measured, past_rounding=None if past is None else float(past.max()))
    else:
        reason = _unequal(error)
    return replace(measured, reason=f"{name}: {reason}" if reason else "")


def _wrong_kind(actual: torch.Tensor, wanted: torch.Tensor) -> str:
    """NaN or infinity where they should not be, or not where they should."""
    same = (actual == wanted) | (actual.isnan() & wanted.isnan()) | (actual.isfinite() & wanted.isfinite())
    bad = (~same).nonzero()
    if not len(bad):
        return ""
    row, column = bad[0].tolist()
    rows = int((~same).any(1).sum())
    return (
        f"row {row} of {len(actual)} holds {actual[row, column]:g} where the reference is "
        f"{wanted[row, column]:g} ({len(bad)} elements in {rows} rows)"
    )


def _nonzero(actual: torch.Tensor, wanted: torch.Tensor, zero_rows: tuple[int, ...]) -> str:
    for row in zero_rows:
        if row < len(wanted) and not wanted[row].any() and actual[row].any():
            return f"row {row} of {len(actual)} must be exactly zero and holds {actual[row].abs().max():g}"
    return ""


def _relative(error: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """RMS of the error over RMS of the reference, per row; a reference of zero allows no error."""
    error_rms, wanted_rms = (value.square().mean(1).sqrt() for value in (error, wanted))
    return torch.where(error_rms == 0, 0.0, error_rms / wanted_rms)


def _over(measured: Comparison, worst: int, tolerance: Tolerance) -> str:
    if tolerance.row_rms is not None and not measured.row_rms <= tolerance.row_rms:
        return f"row {worst} is off by {measured.row_rms:.3g} of its RMS, over {tolerance.row_rms:g}"
    if tolerance.mean_abs is not None and not measured.mean_abs <= tolerance.mean_abs:
        return f"the mean error is {measured.mean_abs:.3g}, over {tolerance.mean_abs:g}"
    if tolerance.max_abs is not None and not measured.max_abs <= tolerance.max_abs:
        return f"the largest error is {measured.max_abs:.3g}, over {tolerance.max_abs:g}"
    return ""


def _past_rounding(error: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How much further from the reference an output is than rounding it once explains, over its row's RMS."""
    info = torch.finfo(dtype)
    finite = torch.where(wanted.isfinite(), wanted, 0.0)
    exponent = torch.frexp(finite.abs().clamp_min(info.smallest_normal)).exponent - 1
    half_ulp = torch.exp2(exponent.double()) * (info.eps / 2)
    return _relative_to_row((error.abs() - half_ulp).clamp_min(0.0), finite)


def _over_past_rounding(past: torch.Tensor | None, tolerance: Tolerance) -> str:
    if past is None or tolerance.past_rounding is None or past.max() <= tolerance.past_rounding:
        return ""
    row = int(past.amax(1).argmax())
    return f"row {row} is off by {past.max():.3g} of its RMS past one rounding, over {tolerance.past_rounding:g}"


def _relative_to_row(value: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return torch.where(value == 0, 0.0, value / wanted.square().mean(1, keepdim=True).sqrt())


def _unequal(error: torch.Tensor) -> str:
    rows = error.any(1).nonzero()
    return f"row {int(rows[0])} of {len(error)} differs ({len(rows)} rows)" if len(rows) else ""
