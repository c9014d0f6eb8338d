"""MiniMax-M3 in vLLM, its sparse decode run by m3gen: a plugin of the group `vllm.general_plugins`.

Off unless `M3GEN_VLLM=1` is in the environment of every vLLM process; plugins run before an engine's configuration
exists, so nothing else can switch it on. An engine then takes, in `additional_config` (`--additional-config`),

    {"m3gen": {"enabled": true, "arch": "gfx942", "tables": "/path", "build": true, "debug": false}}

    enabled   false: this engine runs stock vLLM
    arch      whose kernels run; by default the GPU's own. Without a GPU it must be given, and Triton's interpreter
              runs them (for tests)
    tables    a folder of tables that goes before the user's and the release's
    build     render a kernel that no table has, in the field's default configuration; false: refuse instead
    debug     hold every launch against its contract and watch outputs; a fault sends later steps to stock vLLM

What runs: in sparse layers, the decode rows of a step go through m3gen's block selection and attention, on vLLM's
own caches and metadata. Prefill rows, dense layers, and steps that m3gen cannot take are vLLM's, each with a reason
that is counted. What m3gen cannot take at all is refused when the engine starts, with every reason.
"""

from m3gen.integrations.vllm.plugin import register

__all__ = ["register"]
