"""Source found without a tokenizer is the source, to the letter; what is not sure is left to `inspect`."""

from __future__ import annotations

import importlib.util
import inspect
import threading
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from triton.runtime import jit

from m3gen import ops
from m3gen.codegen.render import render
from m3gen.runtime.modules import Modules
from m3gen.runtime.quick_source import quickly, source_lines
from m3gen.spec import MINIMAX_M3
from m3gen.targets import ARCHITECTURES, default_device


def module(text: str, path: Path) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def functions(of: ModuleType) -> list[FunctionType]:
    found = [one.fn if hasattr(one, "fn") else one for one in vars(of).values()]
    return [one for one in found if isinstance(one, FunctionType) and one.__module__ == of.__name__]


@pytest.mark.parametrize("arch", sorted(ARCHITECTURES))
@pytest.mark.parametrize("name", ops.names())
def test_it_is_what_inspect_says_of_every_function_of_an_op(name: str, arch: str, tmp_path: Path):
    op, device = ops.get(name), default_device(arch)
    problem = op.problem(device, MINIMAX_M3.shard(4), ops.Cache(device.architecture.fp8, "scalar"), 1)
    problem = problem or op.problem(device, MINIMAX_M3.shard(4), ops.Cache("bf16"), 1)
    assert problem is not None
    space = op.space(problem, device)
    configs = [
        op.default(problem, device),
        *(space.config(at) for at in range(0, len(space), len(space) // 3 + 1)),
    ]
    for number, config in enumerate(configs):
        made = module(render(op, problem, config, ["", "A header."]).text, tmp_path / f"m{number}.py")
        kernels = [one.fn for one in vars(made).values() if isinstance(one, jit.JITFunction)]
        assert kernels
        for kernel in kernels:
            assert source_lines(kernel) == inspect.getsourcelines(kernel)
        for function in functions(made):
            assert source_lines(function) in (None, inspect.getsourcelines(function))


STRANGE = '''
def one_line(): return 1

def comment_behind(a):
    return a
    # no end in sight

def text_at_the_edge():
    """A text
that begins at the edge.
    """
    return 2

def continued(a,
              b):
    return a \\
  + b

def single():
    return \'\'\'
x
\'\'\'

@staticmethod
def decorated(
    a: int = (
1
), b: int = 2,
):
    return a

def outer():
    def inner():
        return 3
    return inner
made = outer()
same = lambda a: (
a)
def last():
    if True:
        return 4

# not of it
  # nor this
X = 1
def at_the_end():
    return 5'''


def test_what_is_not_sure_is_left_to_inspect(tmp_path: Path):
    made = module(STRANGE, tmp_path / "strange.py")
    found = functions(made)
    assert len(found) >= 9
    for function in found:
        assert source_lines(function) in (None, inspect.getsourcelines(function)), function.__name__
    assert source_lines(made.outer) is not None
    assert source_lines(made.made) is None


def test_triton_looks_up_as_ever_afterwards_and_when_an_import_fails():
    with pytest.raises(ValueError, match="of the import"), quickly():
        raise ValueError("of the import")
    assert jit.inspect is inspect


FAKE = """import triton


@triton.jit
def kernel(a):
    a + 1


def fake():
    pass


def workspace():
    pass
"""


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path):
    before = module("def f():\n    return 1\n", tmp_path / "m.py")
    assert source_lines(before.f) == (["def f():\n", "    return 1\n"], 1)
    after = module("X = 10\n\n\ndef f():\n    return 22\n", tmp_path / "m.py")
    assert source_lines(after.f) == (["def f():\n", "    return 22\n"], 4)


def test_threads_that_import_do_not_leave_it_changed(tmp_path: Path):
    for number in range(8):
        (tmp_path / f"fake_{number:08x}.py").write_text(FAKE)
    index = {f"{number:08x}": f"fake_{number:08x}" for number in range(8)}
    (tmp_path / "__init__.py").write_text(f'MODULES = {{"fake": {index!r}}}\n')
    modules = Modules.in_folder(tmp_path)
    found: list[ModuleType] = []
    threads = [threading.Thread(target=lambda key=key: found.append(modules.find("fake", key))) for key in index]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.kernel.src for one in found] == ["def kernel(a):\n    a + 1\n"] * 8
    assert jit.inspect is inspect
