"""`ModelState`: the specialised decode of one model on one rank, from the weights to the last step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping

import torch

from m3gen.runtime.backend import Place
from m3gen.runtime.binding import CacheBinding, LayerCache, bind
from m3gen.runtime.counters import Counters
from m3gen.runtime.health import Health, Watch
from m3gen.runtime.held import Held, release
from m3gen.runtime.layer import OPS, DecodeLayer, Now
from m3gen.runtime.plan import Plan
from m3gen.runtime.plans import Bindable, Chosen, choose
from m3gen.runtime.refusal import Refusal, Refused
from m3gen.runtime.refusals import refusals
from m3gen.runtime.settings import Settings
from m3gen.runtime.step import GraphMode, Reason, StepInputs
from m3gen.runtime.warm_up import launch_all, padding

_STOCK = tuple(Plan(reason) for reason in Reason)


def is_capturing() -> bool:
    """Whether the current stream of the current GPU is being captured into a graph."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


class ModelState:
    """Holds the tuned kernels of a model, follows the life of its caches, and decides each step who runs.

    Built after the weights. `initialize_kv_cache` follows each allocation of the cache, the profiling one and the
    real one; `plan`, `begin` and the layers' launches run a step; `postprocess_state` ends it; `close`, or the
    finaliser, lets go of everything. A state belongs to one thread and one stream.

    After construction no step compiles (on a GPU: after `warm_up`), looks a kernel up or allocates: what does not
    fit goes to the stock path, with a reason that is counted.
    """

    def __init__(
        self,
        settings: Settings,
        kernels: Mapping[str, Bindable],
        *,
        capturing: Callable[[], bool] = is_capturing,
    ) -> None:
        """`kernels` are those of `m3gen.runtime.load(settings.arch)`. Raises `Refused` with every reason."""
        place = getattr(kernels, "place", Place.INTERPRETER)
        refused: list[Refusal] = list(refusals(settings, place))
        chosen: Chosen = {} if refused else choose(settings, kernels, refused)
        if refused:
            raise Refused(refused)
        self.settings = settings
        self._chosen = chosen
        self._capturing = capturing
        self._compiles = place is Place.GPU
        self._watch = Watch(settings.device, settings.spec.page_size) if settings.debug else None
        self._launches = [0] * len(OPS)
        self._fallbacks = [0] * len(Reason)
        self._specialised = 0
        self._generation = 0
        self._captured = frozenset(settings.limits.capture_requests)
        self._now = Now(_STOCK[Reason.NO_CACHE])
        self._held = Held(settings, chosen)
        self._blocked = Reason.NO_CACHE
        self._finalizer = weakref.finalize(self, release, self._held, self._now)
        self._finalizer.atexit = False

    @property
    def binding(self) -> CacheBinding | None:
        """The cache that is bound."""
        return self._held.binding

    @property
    def max_tokens(self) -> int:
        """The longest sequence that the score buffer has room for."""
        return self._held.max_tokens

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def initialize_kv_cache(self, caches: Mapping[int, LayerCache], *, profiling: bool = False) -> CacheBinding:
        """Bind the caches of this rank's layers, by layer; whatever was bound before is let go first.

        `UserError` naming every tensor that is not as it must be, and then nothing is bound. `RuntimeError` during
        graph capture, which would keep the old addresses, and after `close`.
        """
        if self.closed:
            raise RuntimeError("cannot bind a KV cache: the state is closed")
        if self._capturing():
            raise RuntimeError("cannot bind a KV cache while a graph is captured: bind before capturing")
        self.release_kv_cache()
        self._generation += 1
        binding = bind(caches, self.settings, profiling=profiling, generation=self._generation)
        if self.settings.limits.model_len() > self.max_tokens:
            self._held.make(self.settings, self._chosen)
        self._held.binding = binding
        self._held.layers = {
            layer: DecodeLayer(layer, bound, self._now, self._launches, self._watch)
            for layer, bound in binding.layers.items()
        }
        self._blocked = Reason.NONE
        if self._compiles and not profiling:
            self.warm_up()
        return binding

    def release_kv_cache(self) -> None:
        """Let go of every view of the cache, before the engine frees it; layers given out so far expire."""
        if self._capturing():
            raise RuntimeError("cannot release the KV cache while a graph is captured: it holds its addresses")
        self._held.drop_binding()
        self._now.drop(_STOCK[Reason.NO_CACHE])
        if not self.closed:
            self._blocked = Reason.NO_CACHE

    def layer(self, layer: int) -> DecodeLayer:
        """The launches of one layer, to be kept until the cache is bound anew. `KeyError` when it has no cache."""
        try:
            return self._held.layers[layer]
        except KeyError:
            bound = ", ".join(map(str, self._held.layers)) or "none"
            raise KeyError(f"layer {layer} has no cache bound: bound are {bound}") from None

    def plan(
        self,
        requests: int,
        query_len: int,
        prefill_tokens: int,
        max_seq_len: int,
        padded_requests: int = 0,
        graph: GraphMode = GraphMode.NONE,
    ) -> Plan:
        """Who runs a step: from integers that every rank shares, the same answer on each.

        The first `requests` of the batch decode `query_len` tokens each, as `padded_requests` (when more) after
        padding; `prefill_tokens` follow, which are the stock path's in any case. `max_seq_len` is the longest
        decode request's, query included; under a graph the longest it will ever replay.
        """
        size = requests if requests >= padded_requests else padded_requests
        if self._blocked:
            return self._stock(self._blocked)
        if not requests:
            return self._stock(Reason.NO_DECODE)
        plans = self._held.plans
        of_length = plans[query_len] if 0 < query_len < len(plans) else None
        if of_length is None:
            return self._stock(Reason.QUERY_LEN)
        if size >= len(of_length):
            return self._stock(Reason.TOO_MANY_REQUESTS)
        if max_seq_len > self._held.max_tokens:
            return self._stock(Reason.TOO_LONG)
        if graph is GraphMode.FULL and (prefill_tokens or (self._captured and size not in self._captured)):
            return self._stock(Reason.GRAPH)
        self._specialised += 1
        plan = of_length[size]
        plan.steps += 1
        return plan

    def begin(self, plan: Plan, inputs: StepInputs) -> None:
        """Take a specialised step's tensors. `ValueError` when their first sizes are not the plan's."""
        rows, requests, now = plan.rows, plan.requests, self._now
        table, index_table = inputs.block_table, inputs.index_block_table
        slots, index_slots = inputs.slot_mapping, inputs.index_slot_mapping
        if table.shape[0] != requests or inputs.seq_lens.shape[0] != requests:
            raise ValueError(
                f"the step has {table.shape[0]} rows of block_table and {inputs.seq_lens.shape[0]} of seq_lens, "
                f"expected the {requests} requests of {plan!r}"
            )
        if slots is not None and slots.shape[0] != rows:
            raise ValueError(f"slot_mapping has {slots.shape[0]} rows, expected the {rows} of {plan!r}")
        now.plan = plan
        now.seq_lens = inputs.seq_lens
        now.positions = inputs.positions
        now.slot_mapping = slots
        now.index_slot_mapping = slots if index_slots is None else index_slots
        now.block_table = table
        index_table = table if index_table is None else index_table
        width = self._held.width
        now.index_block_table = index_table if index_table.shape[1] <= width else index_table[:, :width]
        if self._watch is not None and self._held.binding is not None:
            pages = min(bound.k.shape[0] for bound in self._held.binding.layers.values())
            self._watch.inputs(table, inputs.seq_lens, slots, pages)

    def postprocess_state(self) -> None:
        """End the step: its tensors are let go. In debug mode a fault sends all later steps to the stock path."""
        self._now.drop(_STOCK[Reason.NO_DECODE])
        if self._watch is not None and not self._blocked and not self._capturing() and not self._watch.read().ok:
            self._blocked = Reason.UNHEALTHY

    def add_request(self, request: str) -> None:
        """Nothing of a request is kept: its pages and length come with every step."""

    def remove_request(self, request: str) -> None:
        """As `add_request`: unknown and preempted requests are as good as any."""

    def health(self) -> Health:
        """Whether all steps were clean. Waits for the device; always well without debug mode."""
        return Health(ok=True) if self._watch is None else self._watch.read()

    @property
    def counters(self) -> Counters:
        """A copy of the counts so far."""
        fallbacks = {reason: self._fallbacks[reason] for reason in Reason if self._fallbacks[reason]}
        plans = [plan for of_length in self._held.plans for plan in of_length or ()]
        return Counters(
            steps=self._specialised + sum(fallbacks.values()),
            specialised=self._specialised,
            fallbacks=fallbacks,
            launches=dict(zip(OPS, self._launches, strict=True)),
            sizes={(plan.requests, plan.query_len): plan.steps for plan in plans if plan.steps},
        )

    def explain(self) -> tuple[str, ...]:
        """One line for each kernel: op, query length, the rows it serves, where it comes from and why."""
        return tuple(
            f"{op}, query length {query_len}, up to {rows} rows: {selection.module}; {selection.reason}"
            for op, by_length in self._chosen.items()
            for query_len, dispatch in by_length.items()
            for rows, selection in dispatch.selections().items()
        )

    def warm_up(self) -> None:
        """Launch every kernel once on padding, which reads and writes no page, so that no step compiles."""
        edges = {
            (query_len, max(1, rows // query_len))
            for by_length in self._chosen.values()
            for query_len, dispatch in by_length.items()
            for rows in dispatch.selections()
        }
        kinds = {layer.is_sparse: layer for layer in self._held.layers.values()}
        for query_len, requests in sorted(edges):
            plan = self._held.plan(query_len, requests)
            self.begin(plan, padding(plan, self._held.width, self.settings.device))
            for layer in kinds.values():
                launch_all(layer, plan.rows, self.settings)
        self._launches[:] = [0] * len(OPS)
        self._now.drop(_STOCK[Reason.NO_DECODE])

    def close(self) -> None:
        """Let go of caches, buffers and kernels. Again does nothing."""
        self._finalizer()
        self._blocked = Reason.CLOSED

    def _stock(self, reason: Reason) -> Plan:
        self._fallbacks[reason] += 1
        return _STOCK[reason]
