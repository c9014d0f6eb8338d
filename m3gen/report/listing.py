"""Machine code with what a launch made of it beside each line, 140 columns wide."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

from m3gen.emulator.profile import Profile, space
from m3gen.emulator.recording import LINE_BYTES
from m3gen.emulator.table import BRANCH, LDS, MATRIX, TRANSCENDENTAL, VALU, VMEM, WAIT

WIDTH = 140
_BY_LANES = (VALU, TRANSCENDENTAL, LDS, VMEM)
_COUNTERS = ("vm", "lgkm")
_HEADING = f"{'':>5} {'waves':>9} {'clocks':>7} {'lanes':>5}  {'':38} instruction"


def listing(profile: Profile) -> str:
    """A header with totals, then each instruction: waves that executed it, its share of all clocks that units were
    held, its share of lanes that acted, and what it moved, waited for or how often it branched."""
    return "\n".join(line[:WIDTH].rstrip() for line in [*header(profile), "", _HEADING, *_lines(profile)]) + "\n"


def header(profile: Profile) -> list[str]:
    """Totals of a launch."""
    totals = profile.totals()
    traffic, clocks = totals["traffic"], totals["clocks_by_unit"]
    asked = traffic["global_read"] + traffic["global_written"] + traffic["global_atomic"] + traffic["scalar_read"]
    lines = [
        f"{profile.kernel} on {profile.arch}: grid {' x '.join(map(str, profile.grid))}, {profile.waves} waves a "
        f"workgroup, {_counted(totals['instructions'], 'instruction')} executed",
        "instructions: " + _joined(totals["by_unit"]),
        "clocks of units: " + _joined(clocks),
    ]
    if totals["matrix_passes"]:
        lines.append(f"matrix unit: {totals['matrix_passes']:,} passes of 4 clocks")
    touched = totals["lines_touched"]
    lines += [
        f"memory: {_counted(asked, 'byte')} asked in {_counted(touched, 'line')} of {LINE_BYTES}, "
        f"{_share(asked, touched * LINE_BYTES)} of them used",
        f"different lines: {totals['lines']:,}, {totals['lines_read']:,} read and {totals['lines_written']:,} written; "
        f"{totals['workgroup_lines']:,} when each workgroup counts its own",
    ]
    lines.append("bytes: " + _joined({name: count for name, count in traffic.items() if count}))
    if totals["lds_passes"]:
        lines.append(
            f"LDS: {totals['lds_passes']:,} passes, {totals['lds_conflicts']:,} of them for bank conflicts"
        )
    if totals["unwritten_shared"]:
        lines.append(f"LDS: {_counted(totals['unwritten_shared'], 'byte')} read before anybody wrote them")
    sizes = sorted(map(len, profile.behaviours()), reverse=True)
    if len(sizes) > 1:
        lines.append(
            f"{len(sizes)} different ways through the code, of {', '.join(map(str, sizes[:12]))} workgroups"
        )
    return lines


def _lines(profile: Profile) -> Iterator[str]:
    total, counts, source = max(1, int(profile.clocks.sum())), profile.counts, ""
    labels: dict[int, list[str]] = {}
    for label, number in profile.program.labels.items():
        if label.startswith(".LBB"):
            labels.setdefault(number, []).append(label)
    for number, line in enumerate(profile.program.instructions):
        if line.source != source:
            source = line.source
            yield f"-- {source}  {_source_text(profile, source)}"
        for label in labels.get(number, ()):
            yield f"{label}:"
        waves = int(counts.waves[number])
        share = f"{100 * int(profile.clocks[number]) / total:.1f} %" if waves else ""
        acting = waves and profile.units[number] in _BY_LANES
        lanes = f"{100 * int(counts.lanes[number]) / (64 * waves):.0f} %" if acting else ""
        yield f"{number:>5} {waves:>9,} {share:>7} {lanes:>5}  {_what(profile, number):38} {line.text}"


def _what(profile: Profile, number: int) -> str:
    """What an instruction did beside executing."""
    counts, waves = profile.counts, int(profile.counts.waves[number])
    if not waves:
        return ""
    unit = profile.units[number]
    if counts.passes[number] and unit == LDS:
        return (
            f"{_bytes(counts.shared_bytes[number])}, {counts.passes[number]:,} passes, "
            f"{counts.conflicts[number]:,} conflicts"
        )
    if counts.bytes[number]:
        lines = int(counts.lines[number])
        if not lines:
            return f"{_bytes(counts.bytes[number])} {space(profile.program.instructions[number]).split('_')[0]}"
        used = _share(int(counts.bytes[number]), lines * LINE_BYTES)
        return f"{_bytes(counts.bytes[number])} in {_counted(lines, 'line')}, {used} used"
    if unit == WAIT:
        parts = [
            f"{name} {counts.awaited[which, number] / waves:.3g} of {counts.outstanding[which, number] / waves:.3g}"
            for which, name in enumerate(_COUNTERS)
            if counts.outstanding[which, number]
        ]
        return f"waits for {', '.join(parts)}" if parts else "nothing under way"
    if unit == BRANCH:
        return f"taken by {_share(int(counts.taken[number]), waves)}"
    if unit == MATRIX:
        return f"{profile.cycles[number] // 4} passes each"
    return ""


def _source_text(profile: Profile, source: str) -> str:
    file, _, line = source.rpartition(":")
    return linecache.getline(profile.program.paths.get(file, file), int(line or 0)).strip()


def _bytes(count: int) -> str:
    for unit, size in (("MB", 10**6), ("kB", 10**3)):
        if count >= 10 * size:
            return f"{count / size:,.0f} {unit}"
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _joined(numbers: dict[str, int]) -> str:
    """The largest first."""
    ordered = sorted(numbers.items(), key=lambda item: -item[1])
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in ordered)
