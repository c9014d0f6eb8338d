"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

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

SOURCES = {
    "sparse_decode": {
        "5a2b6862": "b37568d178d80d6326cddd2caa55bc328c3adcf259fcf2ec36286602464a740a",
        "5cc1b249": "7d086882a79c7c9fff39118c704afee010e336222d7b00837aae325340289262",
        "a340d34b": "87e596a86b6afbfa90015e72bde65dcec33944e2c4eb57b932da61838ca47a45",
        "ad102854": "af2e9d4f2ddceacf305e3e40c06edc897240e212175d2b79f3085ad2a4a588a6",
        "e871640b": "a7041a2dd6e4cb958fe43bb4c1ef9ac2f2d0c9cffd9794b2425adc35cf175bad",
        "f95002fd": "6d6fa5e6634decf78033c7f507683fed8bb2d34d724109bc562010b29ee97345",
    },
}
