"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "1a2c9dee": "sparse_decode_1a2c9dee",
        "244cb612": "sparse_decode_244cb612",
        "4858df7e": "sparse_decode_4858df7e",
        "76597a9f": "sparse_decode_76597a9f",
        "7db2bd24": "sparse_decode_7db2bd24",
        "fa8e7eb1": "sparse_decode_fa8e7eb1",
    },
}
