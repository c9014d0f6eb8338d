"""What a user sees of candidates that abort the compiler, hang it, or ask for more LDS than there is.

python benchmarks/faults.py

Five candidates of `sparse_decode` on gfx942, compiled by real workers and taken through the real gate. One worker
calls abort(), as LLVM does; one hangs with the signals ignored that would end it, until its deadline of 20
seconds; one candidate compiles to more LDS than a workgroup may have. Takes a minute or two.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from m3gen.cli import live, output
from m3gen.report import history, outcome, words
from m3gen.store import Store
from m3gen.testing.faulty_session import DEVICE, FAILURES, open_session

DEADLINE_S = 20.0


def main() -> int:
    console = output.stdout()
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/m3gen.db") as store:
        with live.view(output.stderr(), words.predictor(DEVICE)) as view:
            result = open_session(store, Path(folder), deadline_s=DEADLINE_S, listener=view).run()
        console.print(outcome.session(result, DEVICE, (), str(store.location)))
        console.print()
        console.print(history.failures(store.failures()))
    return 0 if result.rows and result.progress.failed == FAILURES else 1


if __name__ == "__main__":
    sys.exit(main())
