"""Generated kernels for sm_100: `MODULES[op][key]` names the module of one (variant, config)."""

MODULES = {
    "sparse_decode": {
        "01156edc": "sparse_decode_01156edc",
        "07826f13": "sparse_decode_07826f13",
        "5ff8baf9": "sparse_decode_5ff8baf9",
        "92d7233e": "sparse_decode_92d7233e",
        "f7bacadb": "sparse_decode_f7bacadb",
    },
}
