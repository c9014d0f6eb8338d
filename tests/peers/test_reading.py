"""Files of peers: what a good one says, and one clear error for each way to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from m3gen.codegen.launch import Pointer
from m3gen.errors import UserError
from m3gen.peers import read
from m3gen.peers.reading import parse
from m3gen.peers.resolve import require, resolve, samples

FILE = Path(__file__).parent / "gather.toml"
TEXT = FILE.read_text(encoding="utf-8")
VLLM = sorted((Path(__file__).parents[2] / "benchmarks/peers").glob("*.toml"))


def changed(old: str, new: str) -> str:
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


def test_a_file_becomes_launches_and_their_work() -> None:
    peer = read(FILE)
    loaded = resolve(peer, "gfx942", {"rows": 3})
    [launch], [work] = loaded.launches, loaded.works
    assert (launch.kernel, launch.grid, launch.options) == ("gather", (3, 1, 1), (("num_warps", 1),))
    arguments = dict(launch.arguments)
    assert arguments["pages"] == Pointer("bf16", 256, 131072 * 64 * 2)
    assert (arguments["count"], arguments["BLOCK"]) == (64, 64)
    assert (work.kernel, work.written_bytes, work.loop_trips) == ("gather", 3 * 64 * 4, 64)
    assert loaded.tensors[0]["table"].shape == (3, 64)


def test_the_samples_keep_what_they_do_not_change() -> None:
    peer = read(FILE)
    found = list(samples(peer, "gfx942", {"rows": 5}))
    assert [names["rows"] for names, _ in found] == [5, 5]
    assert [one.works[0].loop_trips for _, one in found] == [16, 48]


def test_a_derived_name_can_be_given_a_value() -> None:
    assert resolve(read(FILE), "gfx942", {"elements": 10}).works[0].written_bytes == 40


def test_a_launch_that_is_not_wanted_is_left_out() -> None:
    text = changed('grid = ["rows"]\n', 'grid = ["rows"]\nwhen = "vendor == \'amd\'"\n')
    peer = parse(text, "mine.toml")
    assert len(resolve(peer, "gfx942", {}).launches) == 1
    with pytest.raises(UserError, match="no launch is left"):
        resolve(peer, "sm_90", {})


READING: dict[str, tuple[Callable[[], str], str]] = {
    "no TOML": (lambda: "format = ", "is no TOML"),
    "a format to come": (lambda: changed("format = 1", "format = 2"), "format 2: this m3gen reads format 1"),
    "an unknown field": (lambda: changed('source = "tests"', 'source = "t"\nspeed = 9'), "unknown field 'speed'"),
    "no place": (lambda: changed('path = "toys.py"', ""), "expected either path or module"),
    "two places": (lambda: changed('path = "toys.py"', 'path = "a.py"\nmodule = "a"'), "either path or module"),
    "a name taken": (
        lambda: changed('elements = "rows', 'rows = "1"\nelements = "rows'),
        "rows means something else",
    ),
    "a function's name": (lambda: changed("count = 64\n", "count = 64\nmin = 3\n"), "min means something else"),
    "a call": (
        lambda: changed('"rows * 64"', "\"open('x')\""),
        "derived.elements: .*: open is no function here",
    ),
    "no grid": (
        lambda: changed('grid = ["rows"]', "grid = []"),
        r"launches\[0\] \(gather\): grid: expected one to",
    ),
    "no flops": (lambda: changed("flops = 0\n", ""), r"launches\[0\] \(gather\): work: flops is missing"),
    "work of nothing": (lambda: changed("flops = 0", "flops = 0\nhops = 1"), "work: unknown field 'hops'"),
    "a tensor of no dtype": (lambda: changed('dtype = "i32"\n', ""), "tensors.table: dtype is missing"),
    "an unknown arch": (
        lambda: changed('path = "toys', 'archs = ["gfx1"]\npath = "toys'),
        "archs: expected a list",
    ),
    "a fill of nothing": (
        lambda: changed('table = "block table"', "tabel = 0"),
        "sample: fill: tabel is no tensor",
    ),
    "a sample of nothing": (
        lambda: changed("{ count = 16,", "{ conut = 16,"),
        r"loads\[0\]: conut is no dimension",
    ),
}


@pytest.mark.parametrize(("make", "said"), READING.values(), ids=READING.keys())
def test_what_is_wrong_is_said_with_its_place(make: Callable[[], str], said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        parse(make(), "mine.toml")
    assert str(error.value).startswith("mine.toml")
    assert "\n" not in str(error.value)


RESOLVING: dict[str, tuple[Callable[[], str], str]] = {
    "an unknown name": (lambda: changed('"rows * 64"', '"rows * width"'), "derived.elements: .*there is no width"),
    "a wrong dtype": (lambda: changed('dtype = "bf16"', 'dtype = "half"'), "tensors.pages_of_all: unknown dtype"),
    "half an extent": (
        lambda: changed('["pages", 64]', '["pages / 2", 64]'),
        "tensors.pages_of_all: .*an integer",
    ),
    "too little storage": (
        lambda: changed('["pages", 64]', '["pages", 64]\nstorage_bytes = 10'),
        "tensors.pages_of_all: its elements reach to byte",
    ),
    "strides of another": (
        lambda: changed('["pages", 64]', '["pages", 64]\nstrides = [1]'),
        "tensors.pages_of_all: expected 2 strides",
    ),
    "an empty grid": (
        lambda: changed('grid = ["rows"]', 'grid = ["rows - rows"]'),
        r"launches\[0\] \(gather\): grid",
    ),
    "work below nothing": (
        lambda: changed("flops = 0", "flops = -1"),
        r"work.flops: expected a number of 0 and more",
    ),
    "all idle": (lambda: changed("flops = 0", "flops = 0\nidle = 1"), r"work.idle: expected a number of 0 to 1"),
    "an option of a fraction": (
        lambda: changed("num_warps = 1", "num_warps = 0.5"),
        "options.num_warps: expected",
    ),
}


@pytest.mark.parametrize(("make", "said"), RESOLVING.values(), ids=RESOLVING.keys())
def test_what_makes_no_sense_under_a_load_is_said_with_its_place(make: Callable[[], str], said: str) -> None:
    peer = parse(make(), "mine.toml")
    with pytest.raises(UserError, match=said) as error:
        resolve(peer, "gfx942", {})
    assert str(error.value).startswith("mine.toml: ")


def test_an_unknown_dimension_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean count"):
        resolve(read(FILE), "gfx942", {"counts": 3})


def test_a_file_for_amd_refuses_nvidia() -> None:
    peer = parse(changed('path = "toys', 'archs = ["gfx942"]\npath = "toys'), "mine.toml")
    require(peer, "gfx942")
    with pytest.raises(UserError, match="is for gfx942, not for sm_90"):
        require(peer, "sm_90")


def test_no_file() -> None:
    with pytest.raises(UserError, match="cannot read"):
        read(FILE.parent / "nowhere.toml")


@pytest.mark.parametrize("path", VLLM, ids=lambda path: path.stem)
@pytest.mark.parametrize("rows", [1, 64])
def test_the_files_of_vllm_resolve_on_every_architecture(path: Path, rows: int) -> None:
    peer = read(path)
    load = {name: value for name, value in {"rows": rows, "context": 131072}.items() if name in peer.dimensions}
    for arch in peer.archs or ("gfx942", "gfx950", "sm_90", "sm_100"):
        loaded = resolve(peer, arch, load)
        for _, small in samples(peer, arch, load):
            assert [one.kernel for one in small.launches] == [one.kernel for one in loaded.launches]
        assert all(work.read_bytes > 0 for work in loaded.works)


def test_the_file_in_the_documentation_is_a_good_one() -> None:
    page = (Path(__file__).parents[2] / "docs/peers.md").read_text(encoding="utf-8")
    peer = parse(page.split("```toml\n")[1].split("```")[0], "docs/peers.md")
    [launch] = resolve(peer, "gfx942", {}).launches
    assert (launch.grid, dict(launch.arguments)["stride"]) == ((64, 4, 1), 4096)
    assert len(list(samples(peer, "gfx942", {}))) == 1
