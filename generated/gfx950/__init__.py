"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "0fc0edd6": "sparse_decode_0fc0edd6",
        "13971bd6": "sparse_decode_13971bd6",
        "6212739f": "sparse_decode_6212739f",
        "656aeba2": "sparse_decode_656aeba2",
        "7b08fa9b": "sparse_decode_7b08fa9b",
        "b0485a9a": "sparse_decode_b0485a9a",
        "bcc6f712": "sparse_decode_bcc6f712",
    },
}
