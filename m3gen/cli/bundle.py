"""`m3gen bundle`: the machine code of every shipped kernel, made ahead of time."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from m3gen.cli.options import Arch, Jobs, Json, cpus

if TYPE_CHECKING:
    from m3gen.compiler.bundle import BundleRequest, BundleResult
    from m3gen.compiler.request import CompileRequest
    from m3gen.tables.table import Table

_DATE = (2020, 1, 1, 0, 0, 0)  # of every file in the zip: the same code gives the same bytes


def bundle(
    arch: Arch,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The bundle. Default: m3gen-ARCH.bundle.zip here.")
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Pack the machine code of every kernel that ships for ARCH, with its facts and digests.

    m3gen.runtime.load(ARCH, bundle=FILE) hands it to Triton through Triton's own cache, where the compiler and the GPU
    are those of the bundle, and says why where they are not: then kernels are compiled as ever. What is in it is for
    arguments as an engine passes them, 16-byte aligned; Triton compiles anew for others.

    \b
    Exit status:
      0    packed
      1    packed, without what did not compile
      2    bad input or environment
    """
    from importlib.resources import files

    from m3gen import targets
    from m3gen.cli import output, tables_work
    from m3gen.errors import UserError
    from m3gen.tables.load import load

    name = targets.architecture(arch).name
    target = out or Path(f"m3gen-{name}.bundle.zip")
    output.require_writable(target.absolute().parent, "name another file with --out")
    paths = sorted((Path(str(files("m3gen.tuning_db"))) / name).glob("*.json"))
    if not paths:
        raise UserError(f"no table ships for {name}: there is nothing to bundle")
    tables = [load(path) for path in paths]
    with tempfile.TemporaryDirectory(prefix="m3gen-bundle-") as folder:
        asked = [pair for table in tables for pair in requests(table, folder)]
        results = built([request for request, _ in asked], jobs or cpus())
        facts = tables_work.compiled([compiled for _, compiled in asked], jobs or cpus(), output.stderr())
        entries, failures = [], []
        for (request, _), result, known in zip(asked, results, facts, strict=True):
            if result.reason or not known.ok:
                failures.append(f"{request.module}: {result.reason or known.reason}")
                continue
            entries += _entries(request, result, [known.facts[key] for key in known.keys[0]])
        pack(target, name, entries, Path(folder))
    if as_json:
        output.print_object("bundle", {"file": str(target), "entries": entries, "failures": failures})
    else:
        print(f"{target}: {len(entries)} kernels of {len(asked)} modules, {target.stat().st_size:,} bytes")
        print("\n".join(failures), end="\n" if failures else "")
    raise typer.Exit(1 if failures else 0)


def requests(table: Table, folder: str) -> list[tuple[BundleRequest, CompileRequest]]:
    """What to compile for a table: each module once for every shape that it runs, and the same for its facts."""
    from m3gen import ops
    from m3gen.codegen.generate import legal_config
    from m3gen.compiler.bundle import BundleRequest
    from m3gen.compiler.request import CompileRequest

    op = ops.get(table.op)
    found: dict[tuple[Any, str], tuple[BundleRequest, CompileRequest]] = {}
    for point in table.points:
        config = legal_config(op, point.problem, table.configs[point.config])
        module = f"m3gen.generated.{table.arch}.{table.op}_{table.kernel(point.problem, point.config)}"
        request = BundleRequest(table.op, module, point.problem, config, folder)
        found.setdefault(
            (point.problem.with_load(1, 1), point.config),
            (request, CompileRequest(table.op, (point.problem,), config)),
        )
    return list(found.values())


def built(asked: list[BundleRequest], jobs: int) -> list[BundleResult]:
    """Each through the compiler, in the order given."""
    from m3gen.cli.tables_work import COMPILE_DEADLINE_S
    from m3gen.compiler.bundle import HANDLER, BundleResult
    from m3gen.compiler.pool import WorkerPool
    from m3gen.spec import Status

    found: dict[int, BundleResult] = {}
    with WorkerPool(HANDLER, jobs=jobs, deadline_s=COMPILE_DEADLINE_S) as pool:
        tickets = [pool.submit(request) for request in asked]
        while len(found) < len(tickets):
            for one in pool.poll(1.0):
                died = BundleResult(one.status, one.reason)
                found[one.ticket] = one.value if one.status is Status.OK else died
    return [found[ticket] for ticket in tickets]


def pack(target: Path, arch: str, entries: list[dict[str, Any]], folder: Path) -> None:
    """The zip, in place of the one that is there when it is whole."""
    from m3gen import __version__
    from m3gen.compiler.bundle import manifest_text
    from m3gen.compiler.fingerprint import fingerprint
    from m3gen.runtime.bundle import FORMAT, MANIFEST

    fields = {"format": FORMAT, "m3gen": __version__, "arch": arch, "compiler": fingerprint(), "entries": entries}
    part = target.with_name(f".{target.name}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST, _DATE), manifest_text(fields))
        packed = {(entry["folder"], name) for entry in entries for name in entry["files"]}
        for of, name in sorted(packed):
            info = zipfile.ZipInfo(f"code/{of}/{name}", _DATE)
            archive.writestr(info, (folder / of / name).read_bytes(), zipfile.ZIP_DEFLATED)
    part.replace(target)


def _entries(request: BundleRequest, result: BundleResult, facts: list[Any]) -> list[dict[str, Any]]:
    from m3gen.tables.findings import launch_code

    return [
        {
            "op": request.op,
            "module": request.module,
            "kernel": entry.kernel,
            "folder": entry.folder,
            "files": entry.files,
            "facts": asdict(launch_code(of)),
        }
        for entry, of in zip(result.entries, facts, strict=True)
    ]
