"""`Sequences`: how far each sequence of a batch has come, and the `Step` that takes them further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from m3gen.errors import UserError
from m3gen.integrations.transformers.pool import PagePool
from m3gen.runtime import ModelState, Plan, StepInputs


@dataclass(slots=True)
class Step:
    """One forward pass over [batch, query_len] tokens.

    past, ends: int32 [batch], tokens of each sequence before the step and with it, padding of the step included.
    positions: int64 [batch, query_len], of each token in its own sequence. slots: the same shape, of each token
    in the pages. block_table: int32 [batch, max_blocks]. keys: tokens of the longest sequence, these included.
    specialised: m3gen's kernels run it. counts: tokens that each sequence gains, once a mask was seen. attended:
    layers that have.
    """

    past: torch.Tensor
    ends: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    block_table: torch.Tensor
    keys: int
    specialised: bool
    counts: tuple[int, ...] | None = None
    attended: int = 0

    @property
    def query_len(self) -> int:
        return self.positions.shape[1]

    def causal(self) -> torch.Tensor:
        """Bool [batch, 1, query_len, keys]: which keys of its sequence a token may see."""
        return torch.arange(self.keys, device=self.positions.device) <= self.positions[:, None, :, None]


class Sequences:
    """Up to `max_batch` sequences of up to `max_len` tokens in the pages of a pool, taken further step by step.

    A step counts once every layer has attended: one that fails half way leaves everything as it was.
    """

    def __init__(self, state: ModelState, pool: PagePool, layers: int, max_len: int) -> None:
        self.state = state
        self.pool = pool
        self.max_len = max_len
        self.lengths: tuple[int, ...] = ()
        self.width = 0  # columns of all steps, padding included, as transformers counts them
        self._layers = layers
        self._step: Step | None = None

    @property
    def padded(self) -> bool:
        return any(length != self.width for length in self.lengths)

    def step(self, layer: int, batch: int, query_len: int) -> Step:
        """The step that a layer takes part in: a new one for layer 0. Raises `UserError`."""
        if layer == 0:
            self._step = self._begin(batch, query_len)
        elif self._step is None or self._step.attended != layer:
            raise UserError(
                f"the layer before layer {layer} has not attended through m3gen: "
                'call model.set_attn_implementation("m3gen"), and the model from its first layer to its last'
            )
        return self._step

    def see(self, step: Step, mask: torch.Tensor | None, position_ids: torch.Tensor | None) -> None:
        """Learn from a step's mask, bool [batch or 1, 1, query_len, columns], which of its tokens are padding, and
        hold position_ids, [batch or 1, query_len], against where the others go. Raises `UserError`."""
        batch, query_len = step.positions.shape
        counts = None if mask is None else self._unpadded(step, mask)
        step.counts = (query_len,) * batch if counts is None else tuple(counts.tolist())
        if position_ids is None:
            return
        wrong = position_ids != step.positions
        if counts is not None:
            wrong &= torch.arange(query_len, device=wrong.device) < counts[:, None]
        if wrong.any():
            row, token = wrong.nonzero()[0].tolist()
            found = position_ids.expand(batch, query_len)[row, token].item()
            raise UserError(
                f"position_ids of sequence {row} hold {found} for its token {step.positions[row, token].item()}: "
                "needed are those that go on where each sequence ends, cache.lengths"
            )

    def attended(self, step: Step) -> None:
        """One more layer has; after the last the sequences have grown."""
        step.attended += 1
        if step.attended < self._layers:
            return
        assert step.counts is not None
        old = self.lengths or (0,) * len(step.counts)
        self.lengths = tuple(length + count for length, count in zip(old, step.counts, strict=True))
        self.width += step.query_len
        self._step = None
        if step.specialised:
            self.state.postprocess_state()

    def rewind(self, lengths: Sequence[int], width: int) -> list[int]:
        """Back to these lengths; returns the pages that are free again."""
        self.lengths, self.width, self._step = tuple(lengths), width, None
        return self.pool.shrink(self.lengths)

    def _begin(self, batch: int, query_len: int) -> Step:
        lengths = self._lengths_of(batch)
        keys = max(lengths) + query_len
        if keys > self.max_len:
            raise UserError(
                f"a sequence would hold {keys} tokens, the PagedCache was made for {self.max_len}: "
                "make it with a larger max_len"
            )
        self.pool.grow([length + query_len for length in lengths])
        device = self.pool.block_table.device
        past = torch.tensor(lengths, dtype=torch.int32, device=device)
        positions = past[:, None].long() + torch.arange(query_len, device=device)
        plan = self._plan(batch, query_len, keys)
        step = Step(
            past=past,
            ends=past + query_len,
            positions=positions,
            slots=self.pool.slots(positions),
            block_table=self.pool.block_table[:batch],
            keys=keys,
            specialised=plan.specialised,
        )
        if plan.specialised:
            self.state.begin(
                plan,
                StepInputs(
                    block_table=step.block_table,
                    seq_lens=step.ends,
                    positions=step.positions.flatten(),
                    slot_mapping=step.slots.flatten(),
                ),
            )
        return step

    def _lengths_of(self, batch: int) -> tuple[int, ...]:
        if (most := len(self.pool.block_table)) < batch:
            raise UserError(f"the batch has {batch} sequences, the PagedCache was made for max_batch={most}")
        if self.lengths and len(self.lengths) != batch:
            raise UserError(
                f"the batch has {batch} sequences, the PagedCache holds {len(self.lengths)}: reset() it first"
            )
        return self.lengths or (0,) * batch

    def _plan(self, batch: int, query_len: int, keys: int) -> Plan:
        if query_len in self.state.settings.limits.query_lens:
            return self.state.plan(batch, query_len, 0, keys)
        return self.state.plan(0, 1, batch * query_len, keys)

    def _unpadded(self, step: Step, mask: torch.Tensor) -> torch.Tensor:
        """Tokens of the step that are no padding, int64 [batch]: what its last query may see."""
        batch, query_len = step.positions.shape
        columns = self.width + query_len
        if mask.dtype != torch.bool or mask.shape[-2:] != (query_len, columns):
            raise UserError(
                f"attention_mask {mask.dtype} of {tuple(mask.shape)}, needed for a PagedCache: none, or one of "
                f"{batch} x {columns}, 0 for padding"
            )
        column = torch.arange(columns, device=mask.device)
        seen = mask[:, 0, -1].expand(batch, columns)
        before, now = seen[:, : self.width].sum(1), seen[:, self.width :]
        counts = now.sum(1)
        is_prefix = (now == (column[:query_len] < counts[:, None])).all(1)
        is_causal = (mask[:, 0] == (seen[:, None] & (column <= column[self.width :, None]))).flatten(1).all(1)
        tells_past = (before == step.past) | (before == self.width)  # padding that the cache knows, or nothing
        wrong = ~(seen[:, 0] & tells_past & is_prefix & is_causal) | (counts == 0)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            what = "hides tokens, or is not causal" if seen[row, 0] else "is padded on the left"
            raise UserError(
                f"attention_mask of sequence {row} {what}, needed: padding on the right, in the first step; the "
                "blocks that a token selects are counted from the first column"
            )
        return counts
