"""A row: what an instruction means, and the lines in which it is tried.

A row's signature is "results : sources" in the kinds of `numbers`, with "scc" and "lanes" (a bit for each lane in two
scalar registers) among them; "=f32" is what the destination held before, "@scc" and "@vcc" are no operands. Its
formula takes Python's numbers and gives one, or a tuple.

`vary` chooses a line: the encoding (e32, e64, sdwa), where each source comes from (vector, scalar or a constant),
signs and magnitudes of floats, op_sel, clamp, SDWA's bytes and words, and whether the destination is a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from m3gen.emulator.group import Group
from tests.emulator.harness import machine
from tests.emulator.isa.numbers import bits, decode, draw, encode, is_float, mask, matches, signed

WAVES, LANES = 2, 64
_TARGET, _VECTORS, _SCALARS, _MASK_IN, _MASK_OUT = 0, 2, 40, 60, 62
_FLOAT_CONSTANTS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
_INTEGER_CONSTANTS = (0, 1, 2, 7, 31, 63, 64, -1, -2, -16)


@dataclass(frozen=True)
class Row:
    """`forms` are the encodings that there are; `ulps` and `absolute` how far off a float may be;
    `extra` modifiers of every line;
    `saturates` whether clamp stops an integer at the ends of its range; `op_sel` whether halves can be chosen;
    `keeps_half` whether the other half of a 16-bit result stays; `only` limits the words of a source."""

    signature: str
    formula: Callable[..., Any]
    forms: tuple[str, ...] = ("e64",)
    arch: str = "gfx942"
    ulps: float = 0
    absolute: float = 0
    saturates: bool = False
    op_sel: bool = False
    keeps_half: bool | None = False
    modifiers: bool = True
    only: Mapping[int, Callable[[int], int]] = field(default_factory=dict)

    @property
    def results(self) -> list[str]:
        return self.signature.split(":")[0].split()

    @property
    def sources(self) -> list[str]:
        return self.signature.split(":")[1].split()


@dataclass
class Line:
    """One line with what its registers hold: words [WAVES, 64] as nested lists for each source."""

    text: str
    words: list[list[list[int]]]
    vectors: dict[int, list[list[int]]]
    scalars: dict[int, list[int]]
    scc: list[int]
    target: int
    mask_out: str
    clamp: bool = False
    high: bool = False
    dst_sel: str = "DWORD"
    dst_unused: str = "UNUSED_PAD"


def vary(mnemonic: str, row: Row, form: str, seed: int) -> Line:
    """A line of a vector instruction and its registers, chosen by a seed."""
    return _Writer(mnemonic, row, form, seed).line()


class _Writer:
    def __init__(self, mnemonic: str, row: Row, form: str, seed: int) -> None:
        self.mnemonic, self.row, self.form = mnemonic, row, form
        self.random = np.random.default_rng(seed)
        self.vectors: dict[int, list[list[int]]] = {}
        self.scalars: dict[int, list[int]] = {}
        self.words: list[list[list[int]]] = []
        self.texts: list[str] = []
        self.tail = ""
        # One scalar register or literal a line: the mask is one.
        self.scalar_used = any(kind in ("lanes", "@vcc", "k32") for kind in row.sources)

    def chance(self, one_in: int) -> bool:
        return int(self.random.integers(one_in)) == 0

    def choose(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def line(self) -> Line:
        row, form = self.row, self.form
        explicit = [kind for kind in row.sources if kind[0] not in "@="]
        selected = [0] * (len(explicit) + 1)
        if row.op_sel and self.chance(2):
            selected = [int(self.random.integers(2)) for _ in selected]
            self.tail += " op_sel:[" + ",".join(map(str, selected)) + "]"
        selects = {}
        if form == "sdwa":
            selects = self._sdwa(explicit)
        scc = [int(self.random.integers(2)) for _ in range(WAVES)]
        number = 0
        for kind in row.sources:
            if kind == "@scc":
                self.words.append([[one] * LANES for one in scc])
            elif kind in ("@vcc", "lanes"):
                self.words.append(self._mask(kind))
            elif kind[0] == "=":
                self.words.append(self._register(kind[1:], _TARGET))
            else:
                self._source(number, kind, selected[number], selects.get(f"src{number}_sel", "DWORD"))
                number += 1
        results = [kind for kind in row.results if kind != "scc"]
        mask_out = "vcc" if form in ("e32", "sdwa") or self.chance(3) else f"s[{_MASK_OUT}:{_MASK_OUT + 1}]"
        target = self._target(results, explicit)
        clamp = self._clamp(results)
        names = [mask_out if kind == "lanes" else _name("v", target, kind) for kind in results]
        suffix = "" if form == "" else f"_{form}"
        text = f"{self.mnemonic}{suffix} {', '.join([*names, *self.texts])}{' clamp' if clamp else ''}{self.tail}"
        return Line(
            text, self.words, self.vectors, self.scalars, scc, target, mask_out, clamp, bool(selected[-1]),
            selects.get("dst_sel", "DWORD"), selects.get("dst_unused", "UNUSED_PAD"),
        )  # fmt: skip

    def _register(self, kind: str, first: int) -> list[list[int]]:
        """Words in vector registers from `first` on; above 16-bit values anything."""
        words = [draw(kind, self.random, LANES) for _ in range(WAVES)]
        self._place(kind, first, words)
        return words

    def _place(self, kind: str, first: int, words: list[list[int]], high: bool = False) -> None:
        width = bits(kind)
        if width == 64:
            self.vectors[first] = [[word & mask(32) for word in wave] for wave in words]
            self.vectors[first + 1] = [[word >> 32 for word in wave] for wave in words]
        elif width == 16:
            other = [[int(x) for x in self.random.integers(0, 1 << 16, LANES)] for _ in words]
            self.vectors[first] = [
                [(a << 16 | b) if high else (b << 16 | a) for a, b in zip(wave, rest, strict=True)]
                for wave, rest in zip(words, other, strict=True)
            ]
        else:
            self.vectors[first] = words

    def _mask(self, kind: str) -> list[list[int]]:
        """A bit for each lane, from VCC or another pair of scalar registers."""
        masks = [int(self.random.integers(0, 1 << 64, None, np.uint64)) for _ in range(WAVES)]
        first = 106 if kind == "@vcc" or self.form in ("e32", "sdwa") or self.chance(3) else _MASK_IN
        self.scalars[first], self.scalars[first + 1] = [m & mask(32) for m in masks], [m >> 32 for m in masks]
        if kind == "lanes":
            self.texts.append("vcc" if first == 106 else f"s[{first}:{first + 1}]")
        return [[m >> lane & 1 for lane in range(LANES)] for m in masks]

    def _source(self, number: int, kind: str, high: int, select: str) -> None:
        at = _VECTORS + 2 * number
        if kind == "k32":
            word = draw(kind, self.random, 1)[0]
            self.texts.append(f"{word:#x}")
            self.words.append([[word] * LANES for _ in range(WAVES)])
            return
        where = "vector"
        if self.form in ("e64", "") or (self.form == "e32" and number == 0):
            where = self.choose(("vector", "vector", "scalar", "constant"))
        if where == "scalar" and (self.scalar_used or number in self.row.only):
            where = "vector"
        if where == "constant" and number in self.row.only:
            where = "vector"
        if where == "constant" and high:
            where = "vector"
        if where == "vector":
            words = [[self._limit(number, w) for w in draw(kind, self.random, LANES)] for _ in range(WAVES)]
            self._place(kind, at, words, bool(high))
            text = _name("v", at, kind)
            if select != "DWORD":
                words = [[_select(w, select) for w in wave] for wave in self.vectors[at]]
        elif where == "scalar":
            self.scalar_used = True
            words = [[w] * LANES for w in draw(kind, self.random, WAVES)]
            self._place_scalar(kind, words, bool(high))
            text = _name("s", _SCALARS, kind)
        else:
            text, word = self._constant(kind)
            words = [[word] * LANES for _ in range(WAVES)]
        self._signs(number, kind, text, words, select, where == "constant")

    def _limit(self, number: int, word: int) -> int:
        return self.row.only.get(number, lambda w: w)(word)

    def _place_scalar(self, kind: str, words: list[list[int]], high: bool) -> None:
        first = [wave[0] for wave in words]
        if bits(kind) == 64:
            self.scalars[_SCALARS], self.scalars[_SCALARS + 1] = (
                [w & mask(32) for w in first],
                [w >> 32 for w in first],
            )
        elif bits(kind) == 16:
            self.scalars[_SCALARS] = [w << 16 | 0x5A5A if high else w | 0xA5A50000 for w in first]
        else:
            self.scalars[_SCALARS] = first

    def _constant(self, kind: str) -> tuple[str, int]:
        width = bits(kind)
        if is_float(kind) and self.chance(2):
            text = self.choose(_FLOAT_CONSTANTS)
            return text, encode(f"f{width}", float(text))
        if self.form == "e32" and width == 32 and not self.scalar_used and self.chance(2):
            word = draw(kind, self.random, 1)[0]
            return f"{word:#x}", word
        number = self.choose(_INTEGER_CONSTANTS)
        return str(number), number & mask(width)

    def _signs(
        self, number: int, kind: str, text: str, words: list[list[int]], select: str, constant: bool
    ) -> None:
        """Write the source with a sign and a magnitude, or sext(), and change the words accordingly."""
        width = bits(kind)
        if self.form == "sdwa" and not is_float(kind) and self.chance(2) and self.row.modifiers:
            text = f"sext({text})"
            of = {"BYTE": 8, "WORD": 16, "DWOR": 32}[select[:4]]
            words = [[signed(w, min(of, width)) & mask(width) for w in wave] for wave in words]
        elif is_float(kind) and self.form in ("", "e64", "sdwa") and not constant and self.row.modifiers:
            if self.chance(3):
                text, words = f"|{text}|", [[w & mask(width - 1) for w in wave] for wave in words]
            if self.chance(3):
                text, words = f"-{text}", [[w ^ 1 << (width - 1) for w in wave] for wave in words]
        self.texts.append(text)
        self.words.append(words)

    def _sdwa(self, explicit: list[str]) -> dict[str, str]:
        names = {16: ("WORD_0", "WORD_1"), 32: ("DWORD", "WORD_0", "WORD_1", *(f"BYTE_{n}" for n in range(4)))}
        selects = {}
        if self.row.results[0] != "lanes":
            result = self.row.results[0]
            selects["dst_sel"] = self.choose(
                names[bits(result)] if not is_float(result) or bits(result) == 16 else ("DWORD",)
            )
            selects["dst_unused"] = self.choose(("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"))
        for number, kind in enumerate(kind for kind in explicit if kind != "lanes"):
            whole = is_float(kind) and bits(kind) == 32
            selects[f"src{number}_sel"] = "DWORD" if whole else self.choose(names[bits(kind)])
        self.tail += "".join(f" {name}:{value}" for name, value in selects.items())
        return selects

    def _target(self, results: list[str], explicit: list[str]) -> int:
        """A register of its own, or that of the first source; what it holds is known."""
        kinds = [kind for kind in results if kind != "lanes"]
        alias = _VECTORS in self.vectors and self.chance(4) and not any(k[0] == "=" for k in self.row.sources)
        if alias and kinds and bits(kinds[0]) == bits(explicit[0]):
            return _VECTORS
        for register in (_TARGET, _TARGET + 1):
            if register not in self.vectors:
                self.vectors[register] = [draw("u32", self.random, LANES) for _ in range(WAVES)]
        return _TARGET

    def _clamp(self, results: list[str]) -> bool:
        """Of floats in e64 and SDWA, of integers where they saturate."""
        if not self.row.modifiers or self.form == "e32" or results[0] == "lanes" or len(results) > 1:
            return False
        if results[0][0] == "f":
            return self.chance(4)
        return self.row.saturates and self.form != "sdwa" and self.chance(2)


def _name(bank: str, first: int, kind: str) -> str:
    return f"{bank}[{first}:{first + 1}]" if bits(kind) == 64 else f"{bank}{first}"


def _select(word: int, select: str) -> int:
    what, _, number = select.partition("_")
    width = {"BYTE": 8, "WORD": 16, "DWORD": 32}[what]
    return word >> (width * int(number or 0)) & mask(width)


def run(line: Line, arch: str, masks: list[int]) -> Group:
    """The group after the line; `masks` is EXEC of each wave."""
    numbers = np.arange(len(masks))
    group = Group(numbers, numbers, np.zeros_like(numbers))
    for register, words in line.vectors.items():
        group.v[register] = np.array(words, np.uint32)
    for register, scalar in line.scalars.items():
        group.s[register] = np.array(scalar, np.uint32)[:, None]
    group.scc = np.array(line.scc, bool)[:, None]
    group.set_exec64(np.array(masks, np.uint64)[:, None])
    with np.errstate(all="ignore"):
        machine(line.text, arch)._steps[0](group)
    return group


def check(mnemonic: str, row: Row, form: str, seed: int) -> None:
    """Run a line and hold every lane against the formula."""
    line = vary(mnemonic, row, form, seed)
    random = np.random.default_rng(seed + 1)
    masks = [mask(64), int(random.integers(0, 1 << 64, None, np.uint64))]
    group = run(line, row.arch, masks)
    results = [_result(group, line, kind) for kind in row.results]
    kinds = [kind.lstrip("=") for kind in row.sources]
    for wave, active in enumerate(masks):
        for lane in range(LANES):
            numbers = [_decoded(kind, source[wave][lane]) for kind, source in zip(kinds, line.words, strict=True)]
            expected = row.formula(*numbers)
            values = expected if len(results) > 1 else (expected,)
            for kind, (found, before), value in zip(row.results, results, values, strict=True):
                wrong = _wrong(row, kind, line, found[wave][lane], before[wave][lane], value, active >> lane & 1)
                if wrong:
                    words = ", ".join(hex(source[wave][lane]) for source in line.words)
                    raise AssertionError(f"{line.text}: lane {lane}, of {words} = {numbers}: {wrong}")


def _decoded(kind: str, word: int) -> Any:
    return bool(word) if kind in ("lanes", "@vcc", "@scc") else decode(kind, word)


def _result(group: Group, line: Line, kind: str) -> tuple[list[list[int]], list[list[int]]]:
    """What a destination holds, [WAVES, 64], and what it held before."""
    if kind == "lanes":
        first = 106 if line.mask_out == "vcc" else _MASK_OUT
        words = [[int(group.s[first + n][wave, 0]) for n in (0, 1)] for wave in range(WAVES)]
        found = [[words[wave][lane // 32] >> lane % 32 & 1 for lane in range(LANES)] for wave in range(WAVES)]
        return found, found
    target = line.target
    now = [np.broadcast_to(group.v[target + n], (WAVES, LANES)).astype(np.uint64) for n in (0, 1)]
    then = [np.array(line.vectors.get(target + n, [[0] * LANES] * WAVES), np.uint64) for n in (0, 1)]
    if bits(kind) < 64:
        return now[0].tolist(), then[0].tolist()
    return (now[0] | now[1] << np.uint64(32)).tolist(), (then[0] | then[1] << np.uint64(32)).tolist()


def _wrong(row: Row, kind: str, line: Line, found: int, before: int, result: Any, on: int) -> str:
    """What is wrong with a lane's result, if anything."""
    if kind == "lanes":
        return "" if found == int(on and bool(result)) else f"the bit is {found}"
    if not on:
        return "" if found == before else f"outside EXEC, {before:#x} became {found:#x}"
    if line.clamp:
        result = _clamped(kind, result)
    part, other, wanted = _parts(row, kind, line, found, before)
    if line.dst_sel != "DWORD" and bits(kind) == 32:
        result = int(result) & mask(8 if line.dst_sel.startswith("BYTE") else 16)
    if row.absolute and abs(decode(kind, part) - result) <= row.absolute:
        return ""
    if not matches(kind, part, result, row.ulps):
        told = f"{result} = {encode(kind, result):#x}"
        return f"{part:#x}, not {told}"
    return "" if other == wanted else f"the rest of the register is {other:#x}, not {wanted:#x}"


def _parts(row: Row, kind: str, line: Line, found: int, before: int) -> tuple[int, int, int]:
    """The part of a register that was written; the rest of it, and what that should be."""
    if line.dst_sel != "DWORD":
        what, _, number = line.dst_sel.partition("_")
        width = 8 if what == "BYTE" else 16
        shift = width * int(number)
    elif bits(kind) == 16:
        width, shift = 16, 16 * line.high
    else:
        return found, 0, 0
    part = found >> shift & mask(width)
    others = mask(32) & ~(mask(width) << shift)
    if line.dst_sel == "DWORD":
        wanted = before if line.high or row.keeps_half else found if row.keeps_half is None else 0
    else:
        sign = signed(part << shift, shift + width) & mask(32)
        wanted = {"UNUSED_PAD": 0, "UNUSED_PRESERVE": before, "UNUSED_SEXT": sign}[line.dst_unused]
    return part, found & others, wanted & others


def _clamped(kind: str, result: Any) -> Any:
    """Floats to 0 ... 1, NaN to 0; integers to their range."""
    if is_float(kind):
        return 0.0 if result != result or result <= 0 else min(result, 1.0)
    width = bits(kind)
    low, high = (-(1 << (width - 1)), mask(width - 1)) if kind[0] == "i" else (0, mask(width))
    return max(low, min(high, result))
