"""Generated kernels for gfx950: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "0b50066e": "sparse_decode_0b50066e",
        "1c3bb8aa": "sparse_decode_1c3bb8aa",
        "56486535": "sparse_decode_56486535",
        "89006d5b": "sparse_decode_89006d5b",
        "a574b159": "sparse_decode_a574b159",
        "b811baab": "sparse_decode_b811baab",
        "eb2c2b21": "sparse_decode_eb2c2b21",
    },
}

SOURCES = {
    "sparse_decode": {
        "0b50066e": "c99b5d5f346fe9f5242d472aa2fb49253bffc9770d2227e8a7a4c30658b975c5",
        "1c3bb8aa": "8096397fbd245115eee783fdd0c62a7ce734975d8cc5497edd68fca7c108029e",
        "56486535": "d63179678d9384028d92318d98289e080917772189dae42d8389aa05506d8a4b",
        "89006d5b": "0b35f661fe6641c4342294c27ff0a442f019786667823721478d819c810cd064",
        "a574b159": "3104d1531c024ea323a1b027b85ce440e8a8ad04db961a0a88e989763e751203",
        "b811baab": "9a5b4b7b5579063031ddd8386a9c52d928057989593ec4ed849a8df4efbfe3b7",
        "eb2c2b21": "ebe27de620cc9a14c75e5bd2a3c7aaa567f8e3560f0dcc54201bba6d4b809a54",
    },
}
