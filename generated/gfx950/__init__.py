"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "1091d78f": "sparse_decode_1091d78f",
        "21df1141": "sparse_decode_21df1141",
        "6212739f": "sparse_decode_6212739f",
        "bcc6f712": "sparse_decode_bcc6f712",
        "c95edc13": "sparse_decode_c95edc13",
        "ce882466": "sparse_decode_ce882466",
        "f6676dee": "sparse_decode_f6676dee",
    },
}
