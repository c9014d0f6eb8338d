"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "1ca9a1d3": "sparse_decode_1ca9a1d3",
        "370d4a64": "sparse_decode_370d4a64",
        "4b4684c0": "sparse_decode_4b4684c0",
        "6ccc302a": "sparse_decode_6ccc302a",
        "96a388d0": "sparse_decode_96a388d0",
        "aa0c249d": "sparse_decode_aa0c249d",
        "da72a109": "sparse_decode_da72a109",
    },
}
