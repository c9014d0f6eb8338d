"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "1328382d": "sparse_decode_1328382d",
        "65ac7b14": "sparse_decode_65ac7b14",
        "998701b8": "sparse_decode_998701b8",
        "a56985f0": "sparse_decode_a56985f0",
        "da3c12ef": "sparse_decode_da3c12ef",
        "ea3eae6c": "sparse_decode_ea3eae6c",
        "ed9e561b": "sparse_decode_ed9e561b",
    },
}
