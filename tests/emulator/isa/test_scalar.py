"""Scalar instructions: 64 waves at once, each with its own words and its own SCC."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.emulator.group import Group
from tests.emulator.harness import machine
from tests.emulator.isa.numbers import bits, decode, draw, encode, mask, signed

WAVES = 64
M32, M64 = mask(32), mask(64)
_TARGET, _SOURCES = 0, 8
_INLINE = (0, 1, 2, 31, 63, 64, -1, -16)


@dataclass(frozen=True)
class Scalar:
    """Kinds as in `numbers`; "scc" among the results, "@scc" and "=u32" (the destination before) among the sources;
    i16 and u16 are constants in the line."""

    signature: str
    formula: Callable[..., Any]

    @property
    def results(self) -> list[str]:
        return self.signature.split(":")[0].split()

    @property
    def sources(self) -> list[str]:
        return self.signature.split(":")[1].split()


def nonzero(width: int, of: Callable[..., int]) -> Callable[..., tuple[int, bool]]:
    """A result, and in SCC whether it is not zero."""

    def both(*sources: int) -> tuple[int, bool]:
        result = of(*sources)
        return result, result & mask(width) != 0

    return both


def carried(value: int) -> tuple[int, bool]:
    return value, value > M32 or value < 0


def overflowed(value: int) -> tuple[int, bool]:
    return value, not -(1 << 31) <= value < 1 << 31


def extracted(x: int, field: int) -> int:
    return x >> field % 32 & mask(field >> 16 & 127)


def extracted_signed(x: int, field: int) -> int:
    width = field >> 16 & 127
    return signed(extracted(x, field), width) if width else 0


def ones(x: int) -> tuple[int, bool]:
    return f"{x:b}".count("1"), x != 0


def same_as_sign(x: int) -> int:
    text = f"{x & M32:032b}"
    return next((n for n in range(1, 32) if text[n] != text[0]), -1)


ROWS: dict[str, Scalar] = {
    "s_add_u32": Scalar("u32 scc : u32 u32", lambda x, y: carried(x + y)),
    "s_addc_u32": Scalar("u32 scc : u32 u32 @scc", lambda x, y, c: carried(x + y + c)),
    "s_sub_u32": Scalar("u32 scc : u32 u32", lambda x, y: carried(x - y)),
    "s_subb_u32": Scalar("u32 scc : u32 u32 @scc", lambda x, y, c: carried(x - y - c)),
    "s_add_i32": Scalar("i32 scc : i32 i32", lambda x, y: overflowed(x + y)),
    "s_sub_i32": Scalar("i32 scc : i32 i32", lambda x, y: overflowed(x - y)),
    "s_mul_i32": Scalar("i32 : i32 i32", lambda x, y: x * y),
    "s_mul_hi_u32": Scalar("u32 : u32 u32", lambda x, y: x * y // (1 << 32)),
    "s_mul_hi_i32": Scalar("i32 : i32 i32", lambda x, y: x * y // (1 << 32)),
    "s_bfe_u32": Scalar("u32 scc : u32 u32", nonzero(32, extracted)),
    "s_bfe_i32": Scalar("i32 scc : i32 u32", nonzero(32, extracted_signed)),
    "s_bfm_b32": Scalar("u32 : u32 u32", lambda n, at: mask(n % 32) << at % 32),
    "s_cselect_b32": Scalar("u32 : u32 u32 @scc", lambda x, y, c: x if c else y),
    "s_cselect_b64": Scalar("u64 : u64 u64 @scc", lambda x, y, c: x if c else y),
    "s_pack_ll_b32_b16": Scalar("u32 : u32 u32", lambda x, y: x % 65536 + y % 65536 * 65536),
    "s_pack_lh_b32_b16": Scalar("u32 : u32 u32", lambda x, y: x % 65536 + y // 65536 * 65536),
    "s_pack_hh_b32_b16": Scalar("u32 : u32 u32", lambda x, y: x // 65536 + y // 65536 * 65536),
    "s_not_b32": Scalar("u32 scc : u32", nonzero(32, lambda x: M32 - x)),
    "s_not_b64": Scalar("u64 scc : u64", nonzero(64, lambda x: M64 - x)),
    "s_mov_b32": Scalar("u32 : u32", lambda x: x),
    "s_mov_b64": Scalar("u64 : u64", lambda x: x),
    "s_abs_i32": Scalar("i32 scc : i32", nonzero(32, abs)),
    "s_bcnt1_i32_b32": Scalar("u32 scc : u32", ones),
    "s_bcnt1_i32_b64": Scalar("u32 scc : u64", ones),
    "s_ff1_i32_b32": Scalar("i32 : u32", lambda x: (x & -x).bit_length() - 1),
    "s_ff1_i32_b64": Scalar("i32 : u64", lambda x: (x & -x).bit_length() - 1),
    "s_flbit_i32_b32": Scalar("i32 : u32", lambda x: 32 - x.bit_length() if x else -1),
    "s_flbit_i32": Scalar("i32 : i32", same_as_sign),
    "s_brev_b32": Scalar("u32 : u32", lambda x: int(f"{x:032b}"[::-1], 2)),
    "s_sext_i32_i8": Scalar("i32 : u32", lambda x: signed(x, 8)),
    "s_sext_i32_i16": Scalar("i32 : u32", lambda x: signed(x, 16)),
    "s_bitset0_b32": Scalar("u32 : u32 =u32", lambda n, x: x & (M32 - (1 << n % 32))),
    "s_bitset1_b32": Scalar("u32 : u32 =u32", lambda n, x: x | 1 << n % 32),
    "s_movk_i32": Scalar("i32 : i16", lambda k: k),
    "s_cmovk_i32": Scalar("i32 : i16 =i32 @scc", lambda k, x, c: k if c else x),
    "s_addk_i32": Scalar("i32 scc : i16 =i32", lambda k, x: overflowed(x + k)),
    "s_mulk_i32": Scalar("i32 : i16 =i32", lambda k, x: x * k),
    **{
        f"s_lshl{n}_add_u32": Scalar("u32 scc : u32 u32", lambda x, y, n=n: carried((x << n) + y))
        for n in range(1, 5)
    },
}
for _kind in ("i32", "u32"):
    # The first wins a tie of maxima, not one of minima.
    ROWS[f"s_min_{_kind}"] = Scalar(f"{_kind} scc : {_kind} {_kind}", lambda x, y: (min(x, y), x < y))
    ROWS[f"s_max_{_kind}"] = Scalar(f"{_kind} scc : {_kind} {_kind}", lambda x, y: (max(x, y), x >= y))
for _name, _of in {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "andn2": lambda x, y: x & ~y,
    "orn2": lambda x, y: x | ~y,
    "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y),
    "xnor": lambda x, y: ~(x ^ y),
}.items():
    for _width in (32, 64):
        _kind = f"u{_width}"
        ROWS[f"s_{_name}_b{_width}"] = Scalar(f"{_kind} scc : {_kind} {_kind}", nonzero(_width, _of))
for _width in (32, 64):
    _kind, _signed = f"u{_width}", f"i{_width}"
    ROWS[f"s_lshl_b{_width}"] = Scalar(
        f"{_kind} scc : {_kind} u32", nonzero(_width, lambda x, n, w=_width: x << n % w)
    )
    ROWS[f"s_lshr_b{_width}"] = Scalar(
        f"{_kind} scc : {_kind} u32", nonzero(_width, lambda x, n, w=_width: x >> n % w)
    )
    ROWS[f"s_ashr_i{_width}"] = Scalar(
        f"{_signed} scc : {_signed} u32", nonzero(_width, lambda x, n, w=_width: x >> n % w)
    )
    for _bit in (0, 1):
        ROWS[f"s_bitcmp{_bit}_b{_width}"] = Scalar(
            f"scc : {_kind} u32", lambda x, n, w=_width, bit=_bit: x >> n % w & 1 == bit
        )
_ORDERS = {
    "eq": operator.eq, "lg": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
for _name, _test in _ORDERS.items():
    for _kind in ("i32", "u32"):
        ROWS[f"s_cmp_{_name}_{_kind}"] = Scalar(f"scc : {_kind} {_kind}", _test)
        ROWS[f"s_cmpk_{_name}_{_kind}"] = Scalar(f"scc : {_kind} {_kind[0]}16", _test)
    if _name in ("eq", "lg"):
        ROWS[f"s_cmp_{_name}_u64"] = Scalar("scc : u64 u64", _test)
_SAVED = {
    "and": lambda x, e: x & e,
    "or": lambda x, e: x | e,
    "xor": lambda x, e: x ^ e,
    "andn1": lambda x, e: ~x & e,
    "andn2": lambda x, e: x & ~e,
    "orn1": lambda x, e: ~x | e,
    "orn2": lambda x, e: x | ~e,
}  # the new EXEC of what is given and the EXEC before
SAVEEXEC = {f"s_{name}_saveexec_b64": of for name, of in _SAVED.items()}
SPECIAL = set(SAVEEXEC)


class Writer:
    """A line of an instruction and the registers that it looks at, chosen by a seed."""

    def __init__(self, mnemonic: str, row: Scalar, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.scalars: dict[int, list[int]] = {}
        self.words: list[list[int]] = []
        self.scc = [int(x) for x in random.integers(0, 2, WAVES)]
        self.target = _TARGET
        wide = bool(row.results) and row.results[0].endswith("64")
        for register in (_TARGET, _TARGET + 1):
            self.scalars[register] = draw("u32", random, WAVES)
        texts = []
        for number, kind in enumerate(row.sources):
            if kind == "@scc":
                self.words.append(self.scc)
            elif kind[0] == "=":
                self.words.append(self.scalars[_TARGET])
            else:
                texts.append(self._source(kind, _SOURCES + 2 * number, random))
        if row.results[0] != "scc":
            if random.integers(4) == 0 and _SOURCES in self.scalars and not any(k[0] == "=" for k in row.sources):
                self.target = _SOURCES
                for register in (_SOURCES, _SOURCES + 1):
                    self.scalars.setdefault(register, [0] * WAVES)
            texts.insert(0, f"s[{self.target}:{self.target + 1}]" if wide else f"s{self.target}")
        self.text = f"{mnemonic} {', '.join(texts)}"

    def _source(self, kind: str, at: int, random: np.random.Generator) -> str:
        if kind in ("i16", "u16"):
            word = draw(kind, random, 1)[0]
            self.words.append([word] * WAVES)
            return hex(word)
        if random.integers(4) == 0:
            number = int(random.choice(_INLINE))
            self.words.append([number & mask(bits(kind))] * WAVES)
            return str(number)
        words = draw(kind, random, WAVES)
        self.words.append(words)
        self.scalars[at] = [word & M32 for word in words]
        if bits(kind) == 64:
            self.scalars[at + 1] = [word >> 32 for word in words]
            return f"s[{at}:{at + 1}]"
        return f"s{at}"


def run(text: str, scalars: dict[int, list[int]], scc: list[int], execs: list[int] | None = None) -> Group:
    numbers = np.arange(WAVES)
    group = Group(numbers, numbers, np.zeros_like(numbers))
    for register, words in scalars.items():
        group.s[register] = np.array(words, np.uint32)[:, None]
    group.scc = np.array(scc, bool)[:, None]
    if execs is not None:
        group.set_exec64(np.array(execs, np.uint64)[:, None])
    with np.errstate(all="ignore"):
        machine(text)._steps[0](group)
    return group


def held(group: Group, register: int, wide: bool) -> list[int]:
    words = [np.broadcast_to(group.s[register + n], (WAVES, 1))[:, 0].tolist() for n in range(1 + wide)]
    return [low | high << 32 for low, high in zip(*words, strict=True)] if wide else words[0]


@pytest.mark.parametrize("mnemonic", ROWS)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8, deadline=None)
def test_a_line_gives_what_its_formula_says(mnemonic: str, seed: int) -> None:
    row = ROWS[mnemonic]
    line = Writer(mnemonic, row, seed)
    group = run(line.text, line.scalars, line.scc)
    flags = np.broadcast_to(group.scc, (WAVES, 1))[:, 0].tolist()
    kind = row.results[0]
    found = [] if kind == "scc" else held(group, line.target, bits(kind) == 64)
    for wave in range(WAVES):
        numbers = [
            bool(words[wave]) if source == "@scc" else decode(source.lstrip("="), words[wave])
            for source, words in zip(row.sources, line.words, strict=True)
        ]
        expected = row.formula(*numbers)
        result, flag = (expected, line.scc[wave]) if "scc" not in row.results else (None, expected)
        if len(row.results) == 2:
            result, flag = expected
        what = f"{line.text}: {numbers}"
        assert bool(flags[wave]) == bool(flag), f"{what}: SCC"
        if found:
            assert found[wave] == encode(kind, result), f"{what}: {found[wave]:#x}, not {encode(kind, result):#x}"


@pytest.mark.parametrize("mnemonic", SAVEEXEC)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8, deadline=None)
def test_saveexec(mnemonic: str, seed: int) -> None:
    """The old EXEC is kept, the new one combined from it; SCC says whether a lane is left. The source may be the
    destination."""
    random = np.random.default_rng(seed)
    given_, before = draw("u64", random, WAVES), draw("u64", random, WAVES)
    source = 8 if seed % 2 else 0
    scalars = {source: [x & M32 for x in given_], source + 1: [x >> 32 for x in given_]}
    group = run(f"{mnemonic} s[0:1], s[{source}:{source + 1}]", scalars, [0] * WAVES, before)
    after = np.broadcast_to(group.exec64(), (WAVES, 1))[:, 0].tolist()
    for wave, (x, e) in enumerate(zip(given_, before, strict=True)):
        expected = SAVEEXEC[mnemonic](x, e) & M64
        assert (held(group, 0, True)[wave], after[wave]) == (e, expected)
        assert bool(group.scc[wave, 0]) == (expected != 0)
