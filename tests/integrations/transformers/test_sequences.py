"""Sequences of unequal length, steps of several tokens, and steps that fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from m3gen.errors import UserError
from m3gen.integrations.transformers import PagedCache
from m3gen.runtime import Reason
from tests.integrations.transformers import tiny
from tests.integrations.transformers.test_generate import BOUND, shuffled

LENGTHS = (300, 127)  # a block and a half more; one token before the end of a block


@pytest.fixture
def model() -> Any:
    return tiny.model()


def prefill(model: Any, cache: PagedCache, ids: torch.Tensor) -> torch.Tensor:
    """The first LENGTHS tokens of two sequences, padded on the right; the logits of each one's last."""
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    padded = ids[:, : max(LENGTHS)] * mask
    with torch.no_grad():
        found: torch.Tensor = model(padded, attention_mask=mask, cache=cache).logits
    return found[torch.arange(2), torch.tensor(LENGTHS) - 1]


def decode(model: Any, cache: PagedCache, ids: torch.Tensor, tokens: int) -> torch.Tensor:
    """The next `tokens` of each sequence in one step, from its own end."""
    positions = torch.tensor(cache.lengths)[:, None] + torch.arange(tokens)
    with torch.no_grad():
        found: torch.Tensor = model(ids.gather(1, positions), position_ids=positions, cache=cache).logits
    return found


@pytest.mark.parametrize("query_lens", [(1, 1, 1), (3, 1), (2, 3)])
def test_each_sequence_goes_on_at_its_own_end(model: Any, query_lens: tuple[int, ...]) -> None:
    ids = tiny.prompts(2, max(LENGTHS) + sum(query_lens))
    cache = shuffled(model, max_batch=2, max_len=384, query_lens=(1, 3))
    found = [prefill(model, cache, ids)[:, None]]
    assert cache.lengths == LENGTHS
    found += [decode(model, cache, ids, query_len) for query_len in query_lens]

    expected = tiny.logits(tiny.model(attention="sdpa"), ids)
    ours = torch.cat(found, 1)
    for row, length in enumerate(LENGTHS):
        assert (ours[row] - expected[row, length - 1 : length + sum(query_lens)]).abs().max() < BOUND
    stock_steps = query_lens.count(2)  # no kernels are bound for two tokens
    assert cache.state.counters.fallbacks == {Reason.NO_DECODE: 1 + stock_steps}
    assert cache.state.counters.specialised == len(query_lens) - stock_steps


def test_the_first_step_may_be_one_token(model: Any) -> None:
    ids = tiny.prompts(2, 3)
    cache = shuffled(model, max_batch=2, max_len=128, debug=True)
    with torch.no_grad():
        ours = torch.cat([model(ids[:, i : i + 1], cache=cache).logits for i in range(3)], 1)
    assert (ours - tiny.logits(tiny.model(attention="sdpa"), ids)).abs().max() < BOUND
    assert cache.state.counters.specialised == 3
    assert cache.state.health().ok


def test_a_step_that_fails_leaves_the_sequences_where_they_were(model: Any) -> None:
    ids = tiny.prompts(2, 400)
    cache = shuffled(model, max_batch=2, max_len=384, query_lens=(1, 3))
    prefill(model, cache, ids)
    with pytest.raises(UserError, match=r"position_ids of sequence 1 hold 300 for its token 127"), torch.no_grad():
        model(ids[:, :1], cache=cache)
    assert cache.lengths == LENGTHS
    ours = decode(model, cache, ids, 1)[1, 0]
    assert (ours - tiny.logits(tiny.model(attention="sdpa"), ids[1:, :128])[0, -1]).abs().max() < BOUND


def test_tokens_that_were_cropped_are_not_seen(model: Any) -> None:
    ids = tiny.prompts(1, 131)
    cache = shuffled(model, max_batch=1, max_len=384)
    with torch.no_grad():
        model(ids, cache=cache)
        cache.crop(-5)
        assert (cache.lengths, len(cache.pool.free)) == ((126,), 2)
        ours = torch.cat([model(ids[:, i : i + 1], cache=cache).logits for i in range(3)], 1)
    seen = torch.cat([ids[:, :126], ids[:, :3]], 1)
    assert (ours - tiny.logits(tiny.model(attention="sdpa"), seen)[:, -3:]).abs().max() < BOUND
