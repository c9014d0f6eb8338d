"""A test stand, not product: what vLLM needs in order to serve MiniMax-M3 on a machine without a GPU.

On PYTHONPATH, Python imports this first in every process, those that vLLM starts among them. Nothing is imported
here: each patch waits for its module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def _before(name: str) -> None:
    if name in ("torchvision", "vllm.triton_utils.importing"):
        import stand_patches

        stand_patches.BEFORE[name]()


def _after(module: ModuleType) -> None:
    import stand_patches

    stand_patches.AFTER[module.__name__](module)


_HOOKED: dict[str, Callable[[ModuleType], None] | None] = {
    "torchvision": None,
    "vllm.triton_utils.importing": None,
    "vllm._custom_ops": _after,
    "vllm.models.minimax_m3.nvidia.model": _after,
    "vllm.models.minimax_m3.common.indexer": _after,
    "vllm.models.minimax_m3.common.sparse_attention": _after,
}


class _Patched(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        _before(module.__name__)
        self._loader.exec_module(module)
        if (after := _HOOKED[module.__name__]) is not None:
            after(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _HOOKED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patched(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
