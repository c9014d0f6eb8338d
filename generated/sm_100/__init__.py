"""Generated kernels for sm_100: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "4ec32e0f": "sparse_decode_4ec32e0f",
        "53b3c21e": "sparse_decode_53b3c21e",
        "64560bfc": "sparse_decode_64560bfc",
        "73306426": "sparse_decode_73306426",
        "7abab251": "sparse_decode_7abab251",
        "9898a2c9": "sparse_decode_9898a2c9",
        "c2d44c5e": "sparse_decode_c2d44c5e",
        "dcc5dd8d": "sparse_decode_dcc5dd8d",
    },
}

SOURCES = {
    "sparse_decode": {
        "4ec32e0f": "aa30b8c38df6eb92e300b7af7c877c8328b983f111f9b1dbf24c97238ad14ddb",
        "53b3c21e": "1ac44701265276f04aa4053659c9b65ef6888b0a5afe13e25ed1131da2a26f61",
        "64560bfc": "4c06371fc76e2102ff7b3895e74e9bf5701bcd97532aac94dea5530f1f304cb1",
        "73306426": "5a8d1a4bece1cba85bcd2d125258d16290ae48790ac0be9a989417942254af6b",
        "7abab251": "2f7573767a8978db0a8d00d8990c24ec9d8f5c8472e6704d9890ac4e8092305c",
        "9898a2c9": "f3a5f172ce8fd69199a6475d08d230d1b63c607caf57f6300d066b124d821f25",
        "c2d44c5e": "dbb439dcf6d489475155fbcf6b772a0f2ac4decbfea5457f1b143e6a795d8245",
        "dcc5dd8d": "a31e3057fd36313b82b41aa13df64e96e823ed2a2efb8828881732471b8f4a7c",
    },
}
