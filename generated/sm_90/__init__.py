"""Generated kernels for sm_90: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "01156edc": "sparse_decode_01156edc",
        "27fdf3e5": "sparse_decode_27fdf3e5",
        "8bb5e7a0": "sparse_decode_8bb5e7a0",
        "92d7233e": "sparse_decode_92d7233e",
        "a8721ed5": "sparse_decode_a8721ed5",
    },
}
