"""Generated kernels for sm_90: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "01156edc": "sparse_decode_01156edc",
        "27fdf3e5": "sparse_decode_27fdf3e5",
        "8bb5e7a0": "sparse_decode_8bb5e7a0",
        "92d7233e": "sparse_decode_92d7233e",
        "a8721ed5": "sparse_decode_a8721ed5",
    },
}

SOURCES = {
    "sparse_decode": {
        "01156edc": "1dcf8202e7c7da20f931d5e44a92902cd976c8c6f7d1eca63bb11db23b1afe5e",
        "27fdf3e5": "e8b5d4f284d884518ad59d60d1ddbb2428c1e5aff9ac6f22c45f7acfe4643034",
        "8bb5e7a0": "47b1c320ccf53d26d1aed3e8dcf54177a5bc5d9b3449a9f36d7412e2f641db79",
        "92d7233e": "52f753c0ba2661faf50abbe5539f43868c7095df927ae63cd86f70caa67a4228",
        "a8721ed5": "7eaa740a3dbd4113fb93aba2fed778c0b73b0bccf9fb30434afe1a0cf81e69a2",
    },
}
