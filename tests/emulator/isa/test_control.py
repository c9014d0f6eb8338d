"""Branches, jumps, waits, barriers, clocks and what has no effect, as programs of a few lines."""

from __future__ import annotations

import random

import numpy as np
import pytest

from m3gen.emulator.faults import Hang, MissingWait, UnknownInstruction
from tests.emulator.harness import LANES, machine
from tests.emulator.isa.memories import ALL, Wave, of_module

# Registers that make each condition true, and false: SCC, VCC, EXEC.
Condition = tuple[bool, int, int]
CONDITIONS: dict[str, tuple[list[Condition], list[Condition]]] = {
    "scc0": ([(False, ALL, ALL)], [(True, 0, 0)]),
    "scc1": ([(True, 0, 0)], [(False, ALL, ALL)]),
    "vccz": ([(True, 0, ALL)], [(False, 1, 0), (False, 1 << 63, 0)]),
    "vccnz": ([(False, 1, 0), (False, 1 << 63, 0)], [(True, 0, ALL)]),
    "execz": ([(True, ALL, 0)], [(False, 0, 1), (False, 0, 1 << 63)]),
    "execnz": ([(False, 0, 1), (False, 0, 1 << 63)], [(True, ALL, 0)]),
}
BRANCH = """
    s_mov_b64 vcc, s[4:5]
    s_mov_b64 exec, s[6:7]
    s_cmp_eq_u32 s8, 1
    {branch} .LBB0_2
    s_mov_b32 s20, 1
    s_endpgm
    .LBB0_2:
    s_mov_b32 s20, 2
    s_endpgm
"""


def lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def counts(text: str, waves: int = 1, groups: int = 1, **options: bool) -> list[int]:
    """How many waves execute each instruction."""
    recording = machine(lines(text), profile=True, **options).launch((groups, 1, 1), waves, 64, 0)
    assert recording is not None
    found: list[int] = recording.counts.waves.tolist()
    return found


def stepped(text: str, wave: Wave) -> None:
    """Run the lines of one wave, memory late, until it ends."""
    made = machine(lines(text), memory=wave.memory)
    made._shared, made._left = wave.lds, np.array([1])
    parts = [wave.group]
    while parts:
        parts = made._advance(parts[0])


def taken(mnemonic: str, state: Condition) -> bool:
    wave = Wave(random.Random(0))
    wave.wide_scalar(4, state[1])
    wave.wide_scalar(6, state[2])
    wave.scalar(8, int(state[0]))
    stepped(BRANCH.format(branch=mnemonic), wave)
    assert wave.word(20) in (1, 2)
    return wave.word(20) == 2


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditional_branches(name: str) -> None:
    true, false = CONDITIONS[name]
    assert [taken(f"s_cbranch_{name}", state) for state in true] == [True] * len(true)
    assert [taken(f"s_cbranch_{name}", state) for state in false] == [False] * len(false)


def test_a_branch() -> None:
    assert taken("s_branch", (False, 0, 0))


def test_waves_of_one_launch_part_and_meet() -> None:
    """Workgroup n goes through a loop n + 1 times; s1 is its number."""
    text = """
        .amdhsa_user_sgpr_count 1
        .LBB0_1:
        s_sub_i32 s1, s1, 1
        s_cmp_ge_i32 s1, 0
        s_cbranch_scc1 .LBB0_1
        s_nop 0
        s_endpgm
    """
    assert counts(text, groups=4) == [10, 10, 10, 4, 4]


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(UnknownInstruction, match=r"there is no label \.LBB0_9, line 2"):
        machine("s_branch .LBB0_9")


def test_a_loop_without_end_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("m3gen.emulator.machine._MOST_STEPS", 100)
    with pytest.raises(Hang, match="more than 100 branches, line 3: s_branch"):
        counts(".LBB0_1:\ns_branch .LBB0_1")


@pytest.mark.parametrize("back", [False, True])
def test_far_jumps(back: bool) -> None:
    """A program counter, a difference of labels added to it, and a jump: how LLVM spells a far branch."""
    text = """
        s_branch .LBB0_3
        .LBB0_1:
        s_mov_b32 s20, 7
        s_endpgm
        .LBB0_3:
        s_getpc_b64 s[4:5]
        .Lpost0:
        s_add_u32 s4, s4, (.LBB0_1-.Lpost0)&4294967295
        s_addc_u32 s5, s5, (.LBB0_1-.Lpost0)>>32
        s_setpc_b64 s[4:5]
        .LBB0_4:
        s_mov_b32 s20, 8
        s_endpgm
    """
    wave = Wave(random.Random(0))
    stepped(text if back else text.replace("(.LBB0_1-", "(.LBB0_4-"), wave)
    assert wave.word(20) == (7 if back else 8)


LOADS = """
    global_load_dword v1, v[8:9], off
    global_load_dword v2, v[8:9], off offset:4
    s_load_dword s20, s[4:5], 0x8
    ds_read_b32 v3, v10
    {wait}
    {use}
    s_endpgm
"""


def waited(wait: str, use: str) -> Wave:
    wave = Wave(random.Random(0), memory=64, lds=64)
    wave.wide(8, [wave.start] * LANES)
    wave.wide_scalar(4, wave.start)
    wave.vector(10, [0] * LANES)
    stepped(LOADS.format(wait=wait, use=use), wave)
    return wave


def word(image: bytes, at: int) -> int:
    return int.from_bytes(image[at : at + 4], "little")


@pytest.mark.parametrize(
    ("wait", "ready"),
    [
        ("s_waitcnt vmcnt(1)", "v1"),
        ("s_waitcnt vmcnt(0)", "v1 v2"),
        ("s_waitcnt vmcnt(2) lgkmcnt(0)", "s20 v3"),
        ("s_waitcnt lgkmcnt(1)", ""),  # scalar loads come in any order
        ("s_waitcnt vmcnt(1) lgkmcnt(0)", "v1 s20 v3"),
        ("s_waitcnt expcnt(0)", ""),
        ("s_waitcnt 0", "v1 v2 s20 v3"),
        ("s_nop 0", ""),
    ],
)
def test_waits(wait: str, ready: str) -> None:
    """What may be used after each, and that nothing else may."""
    for register in ("v1", "v2", "s20", "v3"):
        if register not in ready.split():
            with pytest.raises(MissingWait, match=f"{register} is used while a load"):
                waited(wait, f"v_mov_b32 v0, {register}")
            continue
        wave = waited(wait, f"v_mov_b32 v0, {register}")
        memory = wave.bytes_.tobytes()
        there = {
            "v1": word(memory, 0),
            "v2": word(memory, 4),
            "s20": word(memory, 8),
            "v3": word(wave.lds_bytes, 0),
        }
        assert wave.lanes(0) == [there[register]] * LANES


def test_a_wait_for_something_else_is_refused() -> None:
    with pytest.raises(UnknownInstruction, match="a wait for"):
        machine("s_waitcnt depctr_sa_sdst(0)")


def test_a_barrier_brings_waves_together() -> None:
    """Each of four waves adds its number to an LDS word before the barrier, and all read the whole sum behind it."""
    text = """
        v_lshrrev_b32 v1, 6, v0
        v_mov_b32 v2, 0
        s_mov_b64 exec, 1
        {clear}
        ds_add_u32 v2, v1
        s_waitcnt lgkmcnt(0)
        s_barrier
        ds_read_b32 v3, v2
        s_waitcnt lgkmcnt(0)
        v_readfirstlane_b32 s4, v3
        s_cmp_eq_u32 s4, 6
        s_cbranch_scc1 .LBB0_1
        s_nop 0
        .LBB0_1:
        s_endpgm
    """
    cleared = "ds_and_b32 v2, v2\ns_waitcnt lgkmcnt(0)\ns_barrier"
    found = counts(text.format(clear=cleared), waves=4, groups=3)
    assert found[-2:] == [0, 12]  # nobody read another sum
    unsynchronised = text.replace("s_barrier", "s_nop 1")
    found = counts(unsynchronised.format(clear=cleared), waves=4, groups=3)
    assert found[-2] > 0


def test_an_end_completes_what_is_under_way() -> None:
    wave = Wave(random.Random(0), memory=64)
    wave.wide(8, [wave.start] * LANES)
    stepped("global_store_dword v[8:9], v1, off\ns_endpgm", wave)
    assert word(wave.bytes_.tobytes(), 0) == wave.lanes(1)[63]


@pytest.mark.parametrize("mnemonic", ["s_memtime", "s_memrealtime"])
def test_clocks_do_not_go_back(mnemonic: str) -> None:
    text = f"""
        {mnemonic} s[20:21]
        s_waitcnt lgkmcnt(0)
        s_branch .LBB0_1
        .LBB0_1:
        {mnemonic} s[22:23]
        s_waitcnt lgkmcnt(0)
        s_endpgm
    """
    wave = Wave(random.Random(0))
    stepped(text, wave)
    first, second = (wave.word(n) | wave.word(n + 1) << 32 for n in (20, 22))
    assert second >= first


WITHOUT_EFFECT = {
    "s_nop": "7",
    "s_sleep": "2",
    "s_setprio": "3",
    "s_sethalt": "0",
    "s_icache_inv": "",
    "s_dcache_inv": "",
    "s_dcache_wb": "",
    "s_setreg_b32": "hwreg(HW_REG_MODE, 0, 4), s4",
    "s_setreg_imm32_b32": "hwreg(HW_REG_MODE, 0, 4), 15",
    "buffer_inv": "sc1",
    "buffer_wbl2": "sc1",
}


@pytest.mark.parametrize("mnemonic", WITHOUT_EFFECT)
def test_what_has_no_effect_on_results(mnemonic: str) -> None:
    wave = Wave(random.Random(0), memory=64, lds=64)
    before = [wave.lanes(n) for n in range(512)], [wave.word(n) for n in range(128)], wave.bytes_.tobytes()
    wave.run(f"{mnemonic} {WITHOUT_EFFECT[mnemonic]}".strip())
    after = [wave.lanes(n) for n in range(512)], [wave.word(n) for n in range(128)], wave.bytes_.tobytes()
    assert after == before


def test_every_mnemonic_is_here() -> None:
    tested = {f"s_cbranch_{name}" for name in CONDITIONS} | set(WITHOUT_EFFECT)
    tested |= {"s_branch", "s_getpc_b64", "s_setpc_b64", "s_waitcnt", "s_barrier", "s_endpgm"}
    tested |= {"s_memtime", "s_memrealtime"}
    assert of_module("control") == tested


@pytest.mark.parametrize(("wait", "offset"), [("s_waitcnt vmcnt(0)", 12), ("s_waitcnt vmcnt(1)", None)])
def test_a_vector_load_may_be_under_way_to_the_register_of_an_older_one(wait: str, offset: int | None) -> None:
    """LLVM waits for neither where a loop may leave out what uses the first: they return in order."""
    newer = "global_load_dword v1, v[8:9], off offset:12\n"
    if offset is None:
        with pytest.raises(MissingWait, match="v1 is used while a load"):
            waited(newer + wait, "v_mov_b32 v0, v1")
        return
    wave = waited(newer + wait, "v_mov_b32 v0, v1")
    assert wave.lanes(0) == [word(wave.bytes_.tobytes(), offset)] * LANES


@pytest.mark.parametrize(
    ("use", "register"),
    [
        ("global_load_dword v1, v[1:2], off", "v1"),  # an address
        ("global_store_dword v[8:9], v1, off", "v1"),
        ("flat_load_dword v1, v[8:9]", "v1"),  # may come out of order
        ("ds_read_b32 v1, v10", "v1"),
        ("global_load_dword v3, v[8:9], off", "v3"),  # an LDS read is under way to it
        ("v_mov_b32 v1, 0", "v1"),
    ],
)
def test_nothing_else_may_touch_what_a_load_is_under_way_to(use: str, register: str) -> None:
    with pytest.raises(MissingWait, match=f"{register} is used while a load"):
        waited("s_nop 0", use)


@pytest.mark.parametrize(("more", "arrived"), [(61, False), (62, True), (63, True)])
def test_a_load_past_what_the_counter_can_count_waits_for_the_oldest(more: int, arrived: bool) -> None:
    """LLVM waits for none of 64 loads before it uses the first. Once a kernel of 64 was refused for it."""
    others = "".join(f"global_load_dword v{64 + number}, v[8:9], off offset:12\n" for number in range(more))
    if not arrived:
        with pytest.raises(MissingWait, match="v1 is used while a load"):
            waited(others, "v_mov_b32 v0, v1")
        return
    wave = waited(others, "v_mov_b32 v0, v1")
    assert wave.lanes(0) == [word(wave.bytes_.tobytes(), 0)] * LANES
