"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "5a2b6862": "sparse_decode_5a2b6862",
        "5cc1b249": "sparse_decode_5cc1b249",
        "a340d34b": "sparse_decode_a340d34b",
        "ad102854": "sparse_decode_ad102854",
        "e871640b": "sparse_decode_e871640b",
        "f95002fd": "sparse_decode_f95002fd",
    },
}
