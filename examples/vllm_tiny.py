"""Serve a tiny random MiniMax-M3 with vLLM on this CPU, its sparse decode run by m3gen.

    .ci/vllm VENV                              # once: a venv with vLLM for CPUs
    VENV/bin/python examples/vllm_tiny.py

vLLM itself needs stand-ins for its GPU-only operators here; they come from the test stand in
tests/integrations/vllm/cpu_stand, and the example starts itself again with that on its path. On a GPU nothing of it
is needed: install m3gen beside vLLM, set M3GEN_VLLM=1, and serve MiniMax-M3 as ever. Prints:

    prompt of 300 tokens, then ... ... ... ...; transformers: the same
    prompt of 60 tokens, then ... ... ... ...; transformers: the same
    m3gen took 3 of 4 steps; vLLM's own path: 1 (the step has no decode request)
    launches: index_select 9, sparse_decode 9
    sparse_decode, query length 1, up to 2 rows: ...
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAND = ROOT / "tests/integrations/vllm/cpu_stand"
ENVIRONMENT = {
    "M3GEN_VLLM": "1",  # the switch; the rest is for a CPU, and for an engine in this process
    "TRITON_INTERPRET": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def start_again() -> None:
    """This program in an environment where vLLM finds the stand before anything else; unless it is."""
    if str(STAND) in os.environ.get("PYTHONPATH", "") and ENVIRONMENT.items() <= os.environ.items():
        return
    path = os.pathsep.join(filter(None, (str(STAND), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
    os.execve(sys.executable, [sys.executable, str(Path(__file__).resolve())], environment)


def main() -> int:
    from tests.integrations.vllm import tiny
    from tests.integrations.vllm.serving import engine, generate, runtime_state

    model, prompts, count = tiny.model(), [tiny.prompt(300), tiny.prompt(60)], 4
    with tempfile.TemporaryDirectory() as folder:
        tiny.save(model, Path(folder))
        options = {"max_num_seqs": 2, "additional_config": {"m3gen": {"arch": "gfx942"}}}
        with engine(Path(folder), **options) as llm:
            served = generate(llm, prompts, count)
            state = runtime_state(llm)
            counters, kernels = state.counters, state.explain()
    wrong = 0
    for prompt, tokens in zip(prompts, served, strict=True):
        same = tokens == tiny.greedy(model, prompt, count)
        wrong += not same
        words = " ".join(map(str, tokens))
        print(f"prompt of {len(prompt)} tokens, then {words}; transformers: {'the same' if same else 'not so'}")
    stock = ", ".join(f"{steps} ({reason.words})" for reason, steps in counters.fallbacks.items())
    print(f"m3gen took {counters.specialised} of {counters.steps} steps; vLLM's own path: {stock}")
    print("launches:", ", ".join(f"{op} {times}" for op, times in counters.launches.items() if times))
    print(next(line for line in kernels if line.startswith("sparse_decode")))
    return 1 if wrong else 0


if __name__ == "__main__":
    start_again()
    sys.path.insert(0, str(ROOT))  # the tiny model is that of the tests
    sys.exit(main())
