"""`M3genModelState`: vLLM's model-runner state that holds a `m3gen.runtime.ModelState` and follows it."""

from __future__ import annotations

import logging
import weakref
from typing import Any

import torch
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.worker.gpu.model_states.default import DefaultModelState

from m3gen.errors import UserError
from m3gen.integrations.vllm.layers import SparseLayer, prefill_only, sparse_layers
from m3gen.integrations.vllm.options import Options
from m3gen.integrations.vllm.reading import read
from m3gen.runtime import GraphMode, ModelState, Refused, StepInputs, load
from m3gen.runtime.selection import Build
from m3gen.spec import DTYPES

_log = logging.getLogger("vllm.m3gen")  # below vLLM's logger, so that its handlers show it


class M3genModelState(DefaultModelState):  # type: ignore[misc]
    """`m3gen` is the runtime's state; None on a pipeline rank without sparse layers."""

    def __init__(self, vllm_config: Any, model: Any, encoder_cache: Any, device: torch.device) -> None:
        """Raises `Refused` with every reason, vLLM's and the runtime's, before the engine allocates a cache."""
        super().__init__(vllm_config, model, encoder_cache, device)
        self.layers = sparse_layers(model)
        self.m3gen = _runtime_state(vllm_config, self.layers, device) if self.layers else None
        if self.m3gen is None:
            return
        # vLLM never closes a model-runner state: it deletes it.
        weakref.finalize(self, _let_go, self.m3gen, self.layers).atexit = False
        settings = self.m3gen.settings
        for layer in self.layers:
            layer.interpose(DTYPES[settings.index_q_name].torch())
        _log.info(
            "m3gen decodes sparse layers %s to %s with kernels of %s",
            self.layers[0].index, self.layers[-1].index, settings.arch,
        )  # fmt: skip
        for line in self.m3gen.explain():
            _log.debug("%s", line)

    def initialize_kv_cache(self, kv_cache_config: Any, block_tables: Any) -> None:
        """Bind the cache that vLLM has just bound to its layers: the profiling one, then the real one."""
        super().initialize_kv_cache(kv_cache_config, block_tables)
        if self.m3gen is None:
            return
        _check_groups(kv_cache_config, self.layers)
        scale = self.m3gen.settings.kv_scale
        # The profiling cache is allocated before vLLM knows how many blocks there will be.
        profiling = self.vllm_config.cache_config.num_gpu_blocks is None
        self.m3gen.initialize_kv_cache({one.index: one.cache(scale) for one in self.layers}, profiling=profiling)
        for one in self.layers:
            one.decode = self.m3gen.layer(one.index)

    def capture_inner_cudagraphs(self, *arguments: Any, **keywords: Any) -> None:
        """The end of a capture. Of the profiling cache's it is the last use, and vLLM frees that without a word."""
        super().capture_inner_cudagraphs(*arguments, **keywords)
        if self.m3gen is not None and self.m3gen.binding is not None and self.m3gen.binding.profiling:
            self.m3gen.release_kv_cache()

    def prepare_attn(
        self,
        input_batch: Any,
        cudagraph_mode: CUDAGraphMode,
        block_tables: Any,
        slot_mappings: Any,
        attn_groups: Any,
        kv_cache_config: Any,
        for_capture: bool = False,
        **others: Any,
    ) -> dict[str, Any]:
        """vLLM's metadata; of a step that m3gen takes, without the decode rows of the sparse layers."""
        metadata: dict[str, Any] = super().prepare_attn(
            input_batch,
            cudagraph_mode,
            block_tables,
            slot_mappings,
            attn_groups,
            kv_cache_config,
            for_capture,
            **others,
        )
        if self.m3gen is None or self.layers[0].name not in metadata:  # other layers', such as a draft model's
            return metadata
        main, index = metadata[self.layers[0].name], metadata[self.layers[0].index_name]
        is_graph = for_capture or cudagraph_mode == CUDAGraphMode.FULL
        plan = self.m3gen.plan(
            main.num_decodes,  # padded to the graph's size already, where there is a graph
            0 if main.decode is None else main.decode.decode_query_len,
            main.num_prefill_tokens,
            main.max_seq_len,
            graph=GraphMode.FULL if is_graph else GraphMode.NONE,
        )
        if plan.specialised:
            tables = {"block_table": main.decode.block_table, "index_block_table": index.decode.block_table}
            self.m3gen.begin(plan, StepInputs(seq_lens=main.decode.seq_lens, **tables))
            prefill_only(metadata, self.layers, plan)
        return metadata

    def postprocess_state(self, *arguments: Any, **keywords: Any) -> None:
        super().postprocess_state(*arguments, **keywords)
        if self.m3gen is not None:
            self.m3gen.postprocess_state()

    def add_request(self, req_index: int, new_req_data: Any) -> None:
        super().add_request(req_index, new_req_data)
        if self.m3gen is not None:
            self.m3gen.add_request(new_req_data.req_id)

    def remove_request(self, req_id: str) -> None:
        """vLLM calls this for new and for preempted requests too."""
        super().remove_request(req_id)
        if self.m3gen is not None:
            self.m3gen.remove_request(req_id)


def _runtime_state(config: Any, layers: list[SparseLayer], device: torch.device) -> ModelState:
    options = Options.of(config.additional_config)
    settings, refused = read(config, layers, device, options)
    if settings is None:
        raise Refused(refused)
    try:
        kernels = load(settings.arch, tables=options.tables, build=_builder() if options.build else None)
        state = ModelState(settings, kernels)
    except Refused as error:
        raise Refused([*refused, *error.refusals]) from None
    if refused:
        state.close()
        raise Refused(refused)
    return state


def _builder() -> Build:
    from m3gen.codegen import build  # needs jinja2, which kernels out of tables do not

    return build


def _check_groups(kv_cache_config: Any, layers: list[SparseLayer]) -> None:
    """A step has one block table for the main caches and one for the index caches."""
    for kind, names in (("main", {one.name for one in layers}), ("index", {one.index_name for one in layers})):
        groups = [group for group in kv_cache_config.kv_cache_groups if names & set(group.layer_names)]
        if len(groups) != 1:
            raise UserError(f"the {kind} caches of the sparse layers are in {len(groups)} groups, expected one")


def _let_go(state: ModelState, layers: list[SparseLayer]) -> None:
    for layer in layers:
        layer.withdraw()
    counters = state.counters
    state.close()
    fallbacks = {reason.name.lower(): count for reason, count in counters.fallbacks.items()}
    _log.info("m3gen took %d of %d steps, vLLM's own path %s", counters.specialised, counters.steps, fallbacks)
