"""`Program`: amdgcn assembly, as LLVM prints it for gfx942 and gfx950, as instructions that can be looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from m3gen.emulator.descriptor import Descriptor
from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.operand import Operand, parse_operand

Modifier = int | str | bool | tuple[int, ...]

_CODE = re.compile(r"\s+((?:s|v|ds|global|buffer|flat|scratch)_\w+)\s*(.*)")
_LABEL = re.compile(r"([.\w$]+):")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+(?:"([^"]*)"\s+)?"([^"]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_ENCODING = re.compile(r"_e(?:32|64)$")
_SUFFIX = re.compile(r"_(dpp|sdwa)$")
# Modifiers start behind the operands, each after a blank: the first of these words ends the operand list.
_FLAGS = (
    "offen",
    "idxen",
    "lds",
    "sc0",
    "sc1",
    "nt",
    "glc",
    "slc",
    "clamp",
    "gds",
    "row_mirror",
    "row_half_mirror",
)
_MODIFIER = re.compile(r"(?:^|\s)(?:(\w+):(\[[^\]]*\]|\S+)|(" + "|".join(_FLAGS) + r")(?=\s|$))")
_DIFFERENCE = re.compile(r"\(([.\w$]+)-([.\w$]+)\)(?:&\d+|(>>32))?")
_FREE = ("s_waitcnt", "s_setreg", "s_getreg", "s_sendmsg")  # their operands are words of their own


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line. `suffix` is "", "dpp" or "sdwa"; `line` counts the text's lines from 1; `source` is "file:line" of
    the kernel's source, where the text says so."""

    mnemonic: str
    suffix: str
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, Modifier]
    line: int
    source: str
    text: str

    @property
    def where(self) -> str:
        return f"line {self.line}: {self.text}" + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions in address order; `labels` name the index that they stand before, `paths` where the source files
    that instructions name lie."""

    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    descriptor: Descriptor
    paths: Mapping[str, str]


def parse(assembly: str) -> Program:
    """The only kernel of a text. `UnknownInstruction` for a line that cannot be read."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    files: dict[str, str] = {}
    paths: dict[str, str] = {}
    source = ""
    for number, line in enumerate(assembly.partition("\n.Lfunc_end")[0].splitlines(), 1):
        code = line.partition(";")[0].rstrip()
        if label := _LABEL.match(code):
            labels[label[1]] = len(instructions)
        elif match := _CODE.fullmatch(code):
            instructions.append(_instruction(match[1], match[2].strip(), number, source))
        elif loc := _LOC.match(code):
            source = f"{files.get(loc[1], '?')}:{loc[2]}" if loc[2] != "0" else source
        elif file := _FILE.match(code):
            files[file[1]] = file[3]
            paths[file[3]] = f"{file[2]}/{file[3]}" if file[2] else file[3]
    resolved = tuple(_resolved(one, labels) for one in instructions)
    return Program(resolved, labels, Descriptor.parse(assembly), paths)


def instruction(text: str) -> Instruction:
    """One line by itself, as `Instruction.text` has it; labels in it stay names."""
    mnemonic, _, rest = text.partition(" ")
    return _instruction(mnemonic, rest, 0, "")


def _instruction(mnemonic: str, rest: str, line: int, source: str) -> Instruction:
    bare = _ENCODING.sub("", mnemonic)
    suffix = _SUFFIX.search(bare)
    bare = _SUFFIX.sub("", bare)
    text = f"{mnemonic} {rest}".strip()
    if bare.startswith(_FREE):
        return Instruction(bare, "", (Operand("label", text=rest),), {}, line, source, text)
    modifiers: dict[str, Modifier] = {}
    first = len(rest)
    for match in _MODIFIER.finditer(rest):
        first = min(first, match.start())
        if match[3]:
            modifiers[match[3]] = True
        else:
            modifiers[match[1]] = _value(match[2])
    try:
        operands = tuple(parse_operand(part) for part in _split(rest[:first]))
    except ValueError as error:
        raise UnknownInstruction(f"cannot read line {line} of the assembly, {text!r}: {error}") from None
    return Instruction(bare, suffix[1] if suffix else "", operands, modifiers, line, source, text)


def _resolved(line: Instruction, labels: Mapping[str, int]) -> Instruction:
    """Differences of labels, which far branches add to the program counter, in instructions."""
    if not any(operand.kind == "difference" for operand in line.operands):
        return line
    operands = []
    for operand in line.operands:
        match = _DIFFERENCE.fullmatch(operand.text)
        if operand.kind == "difference" and match:
            distance = labels[match[1]] - labels[match[2]]
            operand = Operand("int", value=distance >> 32 if match[3] else distance & 0xFFFFFFFF)
        operands.append(operand)
    return replace(line, operands=tuple(operands))


def _split(text: str) -> list[str]:
    """At the commas outside brackets."""
    return [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def _value(text: str) -> Modifier:
    if text.startswith("["):
        return tuple(int(part, 0) for part in text[1:-1].split(","))
    try:
        return int(text, 0)
    except ValueError:
        return text
