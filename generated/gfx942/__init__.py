"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "1328382d": "sparse_decode_1328382d",
        "65ac7b14": "sparse_decode_65ac7b14",
        "998701b8": "sparse_decode_998701b8",
        "a56985f0": "sparse_decode_a56985f0",
        "da3c12ef": "sparse_decode_da3c12ef",
        "ea3eae6c": "sparse_decode_ea3eae6c",
        "ed9e561b": "sparse_decode_ed9e561b",
    },
}

SOURCES = {
    "sparse_decode": {
        "1328382d": "f283ffa6675610ea39cb2b741eabbfde7b31b2fd421e509274d36b8f447a06b0",
        "65ac7b14": "911a655b53d0b6a42a67476c0aacebee9af82c9a0ffaa91942b5bd35959b55f5",
        "998701b8": "9261edf53409a6ae28149221e36c272b27571596ca8abfded0b65c5ad80c09f5",
        "a56985f0": "745aa0b61cdc5b4f4b93c50cec214fabcf01b675d6f768e8052327db9274cb8d",
        "da3c12ef": "981add0572a1b8808751bd696fae4c952056875ba91c68baf41272c049750d65",
        "ea3eae6c": "5d8608e198bb4a408e4fcc200f068bd9d41bafd5530e0b2c1e5734a513ec6611",
        "ed9e561b": "f4ac8150b239cbb8f804c4fdcc288640b48c57ccc9dea2869d34b1d895f81a51",
    },
}
