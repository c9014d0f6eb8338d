"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "30b43e14": "sparse_decode_30b43e14",
        "30cce5c7": "sparse_decode_30cce5c7",
        "4f1653dc": "sparse_decode_4f1653dc",
        "5cc1b249": "sparse_decode_5cc1b249",
        "ad102854": "sparse_decode_ad102854",
        "b4c77ac5": "sparse_decode_b4c77ac5",
        "ce9500e7": "sparse_decode_ce9500e7",
    },
}
