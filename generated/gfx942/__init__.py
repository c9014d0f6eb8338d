"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "5d89863e": "sparse_decode_5d89863e",
        "6a0217c1": "sparse_decode_6a0217c1",
        "96fce0ce": "sparse_decode_96fce0ce",
        "97f66c46": "sparse_decode_97f66c46",
        "d8452f46": "sparse_decode_d8452f46",
        "ee3ffba5": "sparse_decode_ee3ffba5",
    },
}
