"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "04b76125": "sparse_decode_04b76125",
        "1c65e5c6": "sparse_decode_1c65e5c6",
        "476e1c23": "sparse_decode_476e1c23",
        "4e3ec553": "sparse_decode_4e3ec553",
        "78116db4": "sparse_decode_78116db4",
        "a9d8e378": "sparse_decode_a9d8e378",
        "b0b3e7d6": "sparse_decode_b0b3e7d6",
    },
}
