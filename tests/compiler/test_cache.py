from __future__ import annotations

import gzip
import json
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.compiler.cache import FactsCache
from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.errors import UserError

KEY = "ab" + "0" * 62


def facts(registers: int = 128) -> KernelFacts:
    loop = LoopFacts(
        label=".LBB0_1",
        depth=1,
        instructions=10,
        mix={"vector": 10},
        matrix_cycles=0,
        load_bytes_per_lane=0,
        load_widths={},
        shared_read_bytes_per_lane=0,
        shared_write_bytes_per_lane=0,
        waits=0,
        barriers=0,
        branches=1,
    )
    return KernelFacts(
        kernel="attend",
        arch="gfx942",
        num_warps=4,
        registers=registers,
        accumulation_registers=0,
        scalar_registers=20,
        vector_spills=0,
        scalar_spills=0,
        scratch_bytes=0,
        shared_bytes=0,
        workgroups_per_cu=4,
        waves_per_simd=4.0,
        occupancy_limit="registers",
        instructions=20,
        mix={"vector": 20},
        matrix_instructions={},
        matrix_cycles=0,
        load_widths={"16": 2},
        loops=(loop,),
        code_bytes=160,
        compile_seconds=1.5,
        compiler="triton-3.9.0-0",
        code_sha="c" * 64,
        extra={"stage_seconds": {"llir": 1.0}},
    )


@pytest.fixture
def cache(tmp_path: Path) -> FactsCache:
    return FactsCache.open(tmp_path / "facts")


def entry(cache: FactsCache) -> Path:
    return cache.root / "ab" / f"{KEY}.json"


def test_what_is_put_is_got(cache: FactsCache) -> None:
    assert cache.get(KEY) is None
    assert cache.assembly(KEY) is None
    assert cache.put(KEY, facts(), "s_endpgm\n")
    assert cache.get(KEY) == facts()
    assert cache.assembly(KEY) == "s_endpgm\n"
    assert cache.put(KEY, facts(registers=64), "s_nop 0\n")
    assert cache.get(KEY) == facts(registers=64)


def _damages() -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "no json", b"\x80\x04K\x01."
    yield "another shape", b"[1, 2]"
    yield "another schema", b'{"schema": 0}'
    yield "null", b"null"


@pytest.mark.parametrize(("what", "content"), list(_damages()))
def test_a_corrupt_entry_is_a_miss(cache: FactsCache, what: str, content: bytes) -> None:
    cache.put(KEY, facts(), "")
    entry(cache).write_bytes(content)
    assert cache.get(KEY) is None
    assert cache.put(KEY, facts(), "")
    assert cache.get(KEY) == facts()


def test_every_truncation_is_a_miss(cache: FactsCache) -> None:
    cache.put(KEY, facts(), "")
    whole = entry(cache).read_bytes()
    for length in range(0, len(whole), 37):
        entry(cache).write_bytes(whole[:length])
        assert cache.get(KEY) is None


def test_a_changed_digit_is_a_miss(cache: FactsCache) -> None:
    cache.put(KEY, facts(registers=128), "")
    entry(cache).write_bytes(entry(cache).read_bytes().replace(b'"registers": 128', b'"registers": 129'))
    assert cache.get(KEY) is None


def test_missing_or_new_fields_are_a_miss(cache: FactsCache) -> None:
    cache.put(KEY, facts(), "")
    data = json.loads(entry(cache).read_bytes())
    del data["facts"]["registers"]
    entry(cache).write_text(json.dumps(data))
    assert cache.get(KEY) is None


def test_an_entry_under_another_name_is_a_miss(cache: FactsCache) -> None:
    """The key inside is compared, so a renamed or restored file never answers for another kernel."""
    cache.put(KEY, facts(), "")
    other = KEY[:-1] + "1"
    shutil.copy(entry(cache), cache.root / "ab" / f"{other}.json")
    assert cache.get(other) is None


def test_assembly_that_does_not_unpack_is_a_miss(cache: FactsCache) -> None:
    cache.put(KEY, facts(), "s_endpgm\n")
    path = cache.root / "ab" / f"{KEY}.s.gz"
    path.write_bytes(gzip.compress(b"s_endpgm\n")[:-3])
    assert cache.assembly(KEY) is None


def test_a_key_is_no_path(cache: FactsCache) -> None:
    with pytest.raises(ValueError, match="no key"):
        cache.put("../../etc/passwd", facts(), "")


def test_an_unwritable_root_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="M3GEN_CACHE"):
        FactsCache.open(tmp_path / "file" / "facts")


def test_a_disk_that_refuses_later_does_not_raise(cache: FactsCache) -> None:
    (cache.root / "ab").write_text("a file where a folder should be")
    assert not cache.put(KEY, facts(), "")
    assert cache.get(KEY) is None


def _write(root: Path, registers: int) -> int:
    cache = FactsCache(root)
    wrong = 0
    for _ in range(60):
        cache.put(KEY, facts(registers=registers), "x" * registers)
        got = cache.get(KEY)
        wrong += got is None or got.registers not in (64, 128, 256)
    return wrong


def test_concurrent_writers_leave_a_whole_entry_at_every_moment(cache: FactsCache) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.starmap(_write, [(cache.root, n) for n in (64, 128, 256)]) == [0, 0, 0]
    assert sorted(path.suffix for path in (cache.root / "ab").iterdir()) == [".gz", ".json"]
