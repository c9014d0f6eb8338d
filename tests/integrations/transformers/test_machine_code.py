"""`generate` gives the tokens of transformers when every op runs as machine code of an AMD GPU."""

from __future__ import annotations

import pytest

from m3gen import runtime
from m3gen.runtime import Place
from m3gen.testing.traced_build import TracedBuild
from tests.emulator.counting import Counting
from tests.integrations.transformers import tiny
from tests.integrations.transformers.test_generate import BOUND, shuffled

DENSE, SPARSE, PROMPT = 1, 2, 382


@pytest.mark.usefixtures("never_interpreted")
@pytest.mark.parametrize(("arch", "steps"), [("gfx942", 5), ("gfx950", 3)])
def test_the_tokens_are_those_of_transformers(arch: str, steps: int) -> None:
    """Two sequences, which go on from the third page to a fourth, of which two are selected; the pages are shuffled,
    and NaN wherever nothing was written."""
    ids = tiny.prompts(2, PROMPT)
    stock_tokens, stock_logits = tiny.generate(tiny.model(DENSE, SPARSE, attention="sdpa"), ids, steps + 1)
    assert min(len(set(row)) for row in stock_tokens.tolist()) > 2  # not one token over and over

    emulator, built = Counting(arch), TracedBuild()
    kernels = runtime.load(arch, build=built, adapt=emulator.emulated)
    assert kernels.place is Place.CALLER
    model = tiny.model(DENSE, SPARSE)
    cache = shuffled(model, max_batch=2, max_len=512, kernels=kernels)
    tokens, logits = tiny.generate(model, ids, steps + 1, cache=cache)
    assert tokens.tolist() == stock_tokens.tolist()
    assert (logits - stock_logits).abs().max() < BOUND

    counters = cache.state.counters
    assert counters.specialised == steps
    assert counters.launches == {
        "qk_norm_rope_insert": 0,
        "kv_insert": steps * (DENSE + SPARSE),
        "index_select": steps * SPARSE,
        "sparse_decode": steps * SPARSE,
        "dense_decode": steps * DENSE,
    }
    assert emulator.ran == built.launched(counters)
    assert emulator.launches == emulator.ran.total()


def test_the_selection_matters() -> None:
    """Of the first step already, so that kernels which attend to all would not pass."""
    ids = tiny.prompts(2, PROMPT)
    stock = tiny.logits(tiny.model(DENSE, SPARSE, attention="sdpa"), ids)[:, -1]
    everything = tiny.logits(tiny.model(DENSE, SPARSE, attention="sdpa", index_topk_blocks=4), ids)[:, -1]
    assert (everything - stock).abs().max() > 0.1
