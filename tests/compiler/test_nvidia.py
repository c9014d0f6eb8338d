from __future__ import annotations

import pytest

from m3gen.compiler import nvidia
from m3gen.compiler.instruction import tally, unknowns
from m3gen.compiler.loops import natural_loops
from m3gen.targets import architecture


def parse(*lines: str) -> nvidia.Program:
    """Lines as nvdisasm prints them, labels with a colon; a trap and padding behind, as ptxas leaves them."""
    text = []
    for index, line in enumerate([*lines, ".L_x_99:", "BRA `(.L_x_99)", "NOP", "NOP"]):
        text.append(line if line.endswith(":") else f"        /*{16 * index:04x}*/               {line} ;")
    return nvidia.parse("\n".join(text), architecture("sm_90"))


@pytest.mark.parametrize(
    ("line", "unit", "width"),
    [
        ("LDG.E.128 R16, desc[UR10][R2.64+0x800]", "load", 16),
        ("@P0 LDG.E.U16.CONSTANT R16, desc[UR10][R2.64]", "load", 2),
        ("LDG.E R0, desc[UR10][R6.64]", "load", 4),
        ("LDGSTS.E.BYPASS.128 [R67], desc[UR10][R2.64], !P1", "load", 16),
        ("UTMALDG.2D [UR8], [UR4]", "load", None),
        ("STG.E.64 desc[UR10][R2.64], R12", "store", 8),
        ("LDSM.16.MT88.4 R12, [R5]", "shared_read", 16),
        ("LDSM.16.M88 R12, [R5]", "shared_read", 4),
        ("LDS.U8 R1, [R2]", "shared_read", 1),
        ("STSM.16.M88.2 [R5], R12", "shared_write", 8),
        ("LDL.LU R4, [R1+0x10]", "spill", 4),
        ("STL.64 [R1], R4", "spill", 8),
        ("LDGDEPBAR", "wait", 0),
        ("DEPBAR.LE SB0, 0x0", "wait", 0),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier", 0),
        ("MUFU.EX2 R4, R5", "transcendental", 0),
        ("F2FP.BF16.F32.PACK_AB R4, R5, R6", "convert", 0),
        ("SHFL.BFLY PT, R4, R5, 0x1, 0x1f", "permute", 0),
        ("HFMA2.MMA R4, -RZ, RZ, 0, 0", "vector", 0),
        ("UIADD3 UR4, UR4, 0x1, URZ", "scalar", 0),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", "atomic", 0),
    ],
)
def test_units_and_widths(line: str, unit: str, width: int | None) -> None:
    instruction = parse(line).instructions[0]
    assert (instruction.unit, instruction.bytes) == (unit, width)


def test_the_trap_and_the_padding_behind_the_kernel_are_no_code_and_no_loop() -> None:
    program = parse("LDC R1, c[0x0][0x28]", "EXIT")
    assert [i.mnemonic for i in program.instructions] == ["LDC", "EXIT"]
    assert natural_loops(program.instructions, program.labels) == ()


@pytest.mark.parametrize("branch", ["@!P0 BRA `(.L_x_1)", "@P6 BRA `(.L_x_1)", "BRA.U UP0, `(.L_x_1)"])
def test_a_conditional_branch_backwards_is_a_loop(branch: str) -> None:
    program = parse("MOV R0, RZ", ".L_x_1:", "IADD3 R0, R0, 0x1, RZ", branch, "EXIT")
    (loop,) = natural_loops(program.instructions, program.labels)
    assert (loop.label, loop.instructions) == (".L_x_1", (1, 2))


def test_a_cold_block_behind_the_exit_is_no_loop() -> None:
    program = parse(
        "@P0 BRA `(.L_x_2)",
        ".L_x_1:",
        "STG.E desc[UR4][R2.64], R0",
        "EXIT",
        ".L_x_2:",
        "MOV R0, RZ",
        "BRA `(.L_x_1)",
    )
    assert natural_loops(program.instructions, program.labels) == ()


def test_a_loop_reconverges_through_bsync() -> None:
    """BSYNC goes on at the label that its BSSY named."""
    program = parse(
        "MOV R0, RZ",
        ".L_x_1:",
        "BSSY B0, `(.L_x_3)",
        "@P1 BRA `(.L_x_2)",
        "MUFU.EX2 R4, R5",
        ".L_x_2:",
        "BSYNC B0",
        ".L_x_3:",
        "@P0 BRA `(.L_x_1)",
        "EXIT",
    )
    (loop,) = natural_loops(program.instructions, program.labels)
    assert loop.instructions == (1, 2, 3, 4, 5)


def test_what_the_tables_lack_is_reported() -> None:
    body = parse("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8]", "UTMALDG.2D [UR8], [UR4]").instructions
    assert unknowns(body) == {"unknown_matrix": {"UTCHMMA": 1}, "unknown_memory": {"UTMALDG.2D": 1}}


def test_copies_to_shared_memory_count_as_both() -> None:
    sums = tally(parse("LDGSTS.E.BYPASS.128 [R67], desc[UR10][R2.64]").instructions)
    assert sums["load_bytes"] == sums["shared_write_bytes"] == 16


def test_what_is_no_cubin_is_an_error() -> None:
    with pytest.raises((RuntimeError, ValueError), match="cuobjdump"):
        nvidia.disassemble(b"no cubin")
