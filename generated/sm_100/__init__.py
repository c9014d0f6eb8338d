"""Generated kernels for sm_100: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "01156edc": "sparse_decode_01156edc",
        "07826f13": "sparse_decode_07826f13",
        "5ff8baf9": "sparse_decode_5ff8baf9",
        "92d7233e": "sparse_decode_92d7233e",
        "f7bacadb": "sparse_decode_f7bacadb",
    },
}

SOURCES = {
    "sparse_decode": {
        "01156edc": "1dcf8202e7c7da20f931d5e44a92902cd976c8c6f7d1eca63bb11db23b1afe5e",
        "07826f13": "f897307dd10a1b12ae537ecfe3809d9a8818507f41a04a4a6ab4b9305c201662",
        "5ff8baf9": "70dc890e3634e117880ae7311a03dac70caa846dde38d8eb3d4294b5f385e72f",
        "92d7233e": "52f753c0ba2661faf50abbe5539f43868c7095df927ae63cd86f70caa67a4228",
        "f7bacadb": "17cfc3c8d5f459e92775234cb69d4e1d6f759c93ff171de788838a26933eb44b",
    },
}
