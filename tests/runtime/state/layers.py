"""Two layers of random weights, a dense and a sparse one, and the model's own arithmetic in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from m3gen.runtime import KernelSet, LayerCache, Limits, ModelState, NormWeights, StepInputs
from tests.runtime.state.tiny import SPEC, settings

PAGE, PAGES, EPS = 128, 16, 1e-6
LENGTHS = (300, 127)  # before the first step; a third request is padding
BOUND = {torch.float32: 2e-5, torch.bfloat16: 3e-2}  # of a row


def norm_and_rotate(x: torch.Tensor, weight: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Heads [rows, heads, 128] in float64: Gemma RMSNorm, then NeoX RoPE on the first 64 elements."""
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * (1 + weight)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    low, high = x[..., :32], x[..., 32:64]
    return torch.cat([low * cos - high * sin, high * cos + low * sin, x[..., 64:]], -1)


@dataclass
class Reference:
    """One layer's history of each request, in float64."""

    k: list[torch.Tensor] = field(default_factory=list)  # [tokens, kv_heads, 128]
    v: list[torch.Tensor] = field(default_factory=list)
    index_k: list[torch.Tensor] = field(default_factory=list)  # [tokens, 128]

    def attend(self, request: int, length: int, q: torch.Tensor, index_q: torch.Tensor | None) -> torch.Tensor:
        """One row: q [q_heads, 128] over the first `length` tokens, those that its index queries select."""
        heads = []
        for head in range(SPEC.kv_heads):
            seen = torch.ones(length, dtype=torch.bool)
            if index_q is not None:
                blocks = (self.index_k[request][:length] @ index_q[head]).split(PAGE)
                scores = torch.stack([block.max() for block in blocks])
                scores[-1] = float("inf")
                best = scores.topk(min(SPEC.topk, len(scores))).indices
                seen = torch.isin(torch.arange(length) // PAGE, best)
            k, v = (part[request][:length, head][seen] for part in (self.k, self.v))
            weights = (q[4 * head : 4 * head + 4] @ k.T * 128**-0.5).softmax(-1)
            heads.append(weights @ v)
        return torch.cat(heads)


class Model:
    """Two layers of random weights over a shuffled page pool that is NaN wherever nothing was written."""

    def __init__(self, kernels: KernelSet, dtype: torch.dtype, query_len: int) -> None:
        self.dtype, self.query_len = dtype, query_len
        self.generator = torch.Generator().manual_seed(query_len)
        limits = Limits(max_requests=3, query_lens=(query_len,), max_model_len=1024)
        asked = settings(arch=kernels.arch, dtype=dtype, kv_dtype=dtype, limits=limits, debug=True)
        self.state = ModelState(asked, kernels)
        self.lengths = [*LENGTHS, 0]
        self.table = torch.zeros(3, 8, dtype=torch.int32)
        pages = torch.randperm(PAGES - 1, generator=self.generator).int() + 1
        self.table[0, :4], self.table[1, :4] = pages[:4], pages[4:8]
        self.cos_sin = self._angles(torch.arange(512))
        self.weights = [self._weights(sparse=layer > 0) for layer in (0, 1)]
        self.references = [Reference(), Reference()]
        self.state.initialize_kv_cache({layer: self._cache(layer) for layer in (0, 1)})

    def step(self) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """One decode step of all layers: yields layer, output rows, expected rows."""
        self.lengths = [length + self.query_len if length else 0 for length in self.lengths]
        plan = self.state.plan(2, self.query_len, 0, max(self.lengths), padded_requests=3)
        positions = torch.zeros(plan.rows, dtype=torch.int64)
        slots = torch.full((plan.rows,), -1)
        for row in range(2 * self.query_len):
            request, token = divmod(row, self.query_len)
            positions[row] = position = self.lengths[request] - self.query_len + token
            slots[row] = int(self.table[request, position // PAGE]) * PAGE + position % PAGE
        self.state.begin(
            plan, StepInputs(self.table, torch.tensor(self.lengths, dtype=torch.int32), positions, slots)
        )
        for number in (0, 1):
            heads = 8 + 4 + (3 if number else 0)
            qkv = self._random(plan.rows, heads * 128).to(self.dtype)
            out = torch.full((plan.rows, 8, 128), float("nan"), dtype=self.dtype)
            self.state.layer(number).run(qkv, self.weights[number], out)
            yield number, out.double(), self._expected(number, qkv.double(), positions)
        self.state.postprocess_state()

    def _expected(self, number: int, qkv: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        w, reference = self.weights[number], self.references[number]
        angle = self._radians(positions)
        heads = qkv.view(len(qkv), -1, 128)
        q = norm_and_rotate(heads[:, :8], w.q.double(), angle)
        k = norm_and_rotate(heads[:, 8:10], w.k.double(), angle)
        index_q = index_k = None
        if w.index_q is not None and w.index_k is not None:
            index_q = norm_and_rotate(heads[:, 12:14], w.index_q.double(), angle)
            index_k = norm_and_rotate(heads[:, 14:15], w.index_k.double(), angle)[:, 0]
        expected = torch.zeros(len(qkv), 8, 128, dtype=torch.float64)
        for request in (0, 1):
            rows = slice(request * self.query_len, (request + 1) * self.query_len)
            reference.k[request] = torch.cat([reference.k[request], k[rows]])
            reference.v[request] = torch.cat([reference.v[request], heads[rows, 10:12]])
            if index_k is not None:
                reference.index_k[request] = torch.cat([reference.index_k[request], index_k[rows]])
            for row in range(rows.start, rows.stop):
                length = int(positions[row]) + 1
                one_index_q = None if index_q is None else index_q[row]
                expected[row] = reference.attend(request, length, q[row], one_index_q)
        return expected

    def _cache(self, number: int) -> LayerCache:
        kv = torch.full((PAGES, 2, PAGE, 256), float("nan"), dtype=self.dtype)
        index = torch.full((PAGES, PAGE, 128), float("nan"), dtype=self.dtype)
        reference = self.references[number]
        for request, length in enumerate(LENGTHS):
            k, v = self._random(2, length, 2, 128).to(self.dtype)
            index_k = self._random(length, 128).to(self.dtype)
            reference.k.append(k.double())
            reference.v.append(v.double())
            reference.index_k.append(index_k.double())
            for token in range(length):
                page, offset = int(self.table[request, token // PAGE]), token % PAGE
                kv[page, :, offset, :128], kv[page, :, offset, 128:] = k[token], v[token]
                index[page, offset] = index_k[token]
        return LayerCache(kv=kv, index=index if number else None)

    def _weights(self, *, sparse: bool) -> NormWeights:
        weights = [self._random(128) * 0.2 for _ in range(4 if sparse else 2)]
        return NormWeights(weights[0], weights[1], self.cos_sin, *weights[2:])

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator)

    def _radians(self, positions: torch.Tensor) -> torch.Tensor:
        return positions.double()[:, None] * SPEC.rope_theta ** (-torch.arange(32).double() / 32)

    def _angles(self, positions: torch.Tensor) -> torch.Tensor:
        angle = self._radians(positions)
        return torch.cat([angle.cos(), angle.sin()], -1).float()


def check_steps(kernels: KernelSet, dtype: torch.dtype, query_len: int) -> ModelState:
    """Two steps of both layers, whose lengths cross a page's end; a padding request comes along; unused memory is
    NaN."""
    model = Model(kernels, dtype, query_len)
    for _ in range(2):
        for number, out, expected in model.step():
            live = 2 * query_len
            assert not out[live:].any(), f"layer {number}: padding rows"
            error = (out - expected)[:live].flatten(1).square().mean(1).sqrt()
            size = expected[:live].flatten(1).square().mean(1).sqrt()
            assert (error / size).max() < BOUND[dtype], f"layer {number}"
    assert model.state.health().ok
    counters = model.state.counters
    assert counters.launches == {
        "qk_norm_rope_insert": 4,
        "kv_insert": 0,
        "index_select": 2,
        "sparse_decode": 2,
        "dense_decode": 2,
    }
    assert counters.sizes == {(3, query_len): 2}
    return model.state


def check_parts(kernels: KernelSet) -> ModelState:
    """`store`, `select` and `attend` over lists that the engine gives."""
    limits = Limits(max_requests=1, max_model_len=512)
    state = ModelState(settings(arch=kernels.arch, limits=limits, norm=False), kernels)
    kv, index = torch.full((4, 2, PAGE, 256), float("nan")), torch.full((4, PAGE, 128), float("nan"))
    kv[1], index[1] = torch.randn(2, PAGE, 256), torch.randn(PAGE, 128)
    state.initialize_kv_cache({1: LayerCache(kv=kv, index=index)})
    table = torch.tensor([[1, 3]], dtype=torch.int32)
    lens, slot = torch.tensor([129], dtype=torch.int32), torch.tensor([3 * PAGE])
    state.begin(state.plan(1, 1, 0, 129), StepInputs(table, lens, slot_mapping=slot))
    k, v, index_k = torch.randn(1, 2, 128), torch.randn(1, 2, 128), torch.randn(1, 128)
    layer = state.layer(1)
    layer.store(k, v, index_k)
    assert torch.equal(kv[3, :, 0], torch.cat([k, v], -1)[0])
    assert torch.equal(index[3, 0], index_k[0])
    assert layer.select(torch.randn(1, 2, 128)).tolist() == [[[1, 0]], [[1, 0]]]  # the newest block is forced
    out = torch.empty(1, 8, 128)
    layer.attend(torch.zeros(1, 8, 128), out, ids=torch.tensor([[[1, -1]], [[-1, 0]]], dtype=torch.int32))
    torch.testing.assert_close(out[0, 0], v[0, 0])
    torch.testing.assert_close(out[0, 7], kv[1, 1, :, 128:].mean(0))
    return state
