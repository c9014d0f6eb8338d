"""Generated kernels for sm_100: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "076cd0b4": "sparse_decode_076cd0b4",
        "0926fb16": "sparse_decode_0926fb16",
        "46709a17": "sparse_decode_46709a17",
        "54a2e9a9": "sparse_decode_54a2e9a9",
        "a8721ed5": "sparse_decode_a8721ed5",
        "e33473b8": "sparse_decode_e33473b8",
    },
}
