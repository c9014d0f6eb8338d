"""The entry point: the verbs, and what becomes of errors.

    2    bad input or environment: one line on standard error (typer's own usage errors exit with 2 as well)
    130  interrupted
    141  whoever read the output closed it

Any other exception is a fault of m3gen and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from m3gen.cli import (
    bench,
    bundle,
    explain,
    generate,
    judge,
    mnemonics,
    portfolio,
    repredict,
    run_asm,
    show,
    store,
    tables,
    targets,
    tune,
    validate,
    verify,
)
from m3gen.errors import UserError

BAD_INPUT, INTERRUPTED, READER_GONE = 2, 130, 141
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Verbs(TyperGroup):
    # Here and not in main(): typer's versions differ in what they make of Ctrl-C and of closed pipes.

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _errors_told():  # reading the arguments is what prints --help and --version
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _errors_told():
            return super().invoke(ctx)


@contextmanager
def _errors_told() -> Iterator[None]:
    """End the process with a line and a status for what is no fault of m3gen, what was printed being out."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except UserError as error:
        _say(f"m3gen: {' '.join(str(error).split())}")
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        _say("m3gen: interrupted; nothing that was stored is lost")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _drop_output()
        sys.exit(READER_GONE)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _drop_output()
        what = error.filename or "the output"
        _say(f"m3gen: cannot write {what} ({error.strerror}): free some space and run again")
        sys.exit(BAD_INPUT)


app = typer.Typer(
    name="m3gen",
    cls=_Verbs,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: importing rich costs more than all the rest of it
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(tune.tune)
app.command()(show.show)
app.command()(portfolio.portfolio)
app.command()(verify.verify)
app.command()(generate.generate)
app.add_typer(tables.app)
app.add_typer(store.app)
app.command()(explain.explain)
app.command()(bundle.bundle)
app.command()(mnemonics.mnemonics)
app.command()(targets.targets)
app.command("run-asm")(run_asm.run_asm)
app.command()(validate.validate)
app.command()(judge.judge)
app.command()(repredict.repredict)
app.add_typer(bench.app, name="bench")


def _print_version(asked: bool) -> None:
    if asked:
        from m3gen import __version__

        typer.echo(f"m3gen {__version__}")
        raise typer.Exit


@app.callback()
def m3gen(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Generate and tune the decode-attention and KV-cache kernels of MiniMax-M3.

    Start with: m3gen tune --arch gfx942. No GPU is needed.
    """


def main() -> None:
    """Entry point of the `m3gen` script."""
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a terminal that has no "±" gets a "?", not an exception
    app()


def _fill_closed_streams() -> None:
    """Refuse to start without standard output; without an error stream, say nothing.

    A descriptor left free would go to the next file that is opened, and what a library prints into that file.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    if sys.stdout is None:
        _say("m3gen: standard output is closed: leave it open, or send it to a file or to /dev/null")
        sys.exit(BAD_INPUT)


def _drop_output() -> None:
    """Python flushes standard output once more when it ends: let that succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(line: str) -> None:
    with suppress(OSError):  # a full disk under the error stream: the status still tells
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
