"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "2e790ecd": "sparse_decode_2e790ecd",
        "6e8ceb0e": "sparse_decode_6e8ceb0e",
        "8a5ab1c9": "sparse_decode_8a5ab1c9",
        "991bffbf": "sparse_decode_991bffbf",
        "b600e178": "sparse_decode_b600e178",
        "c7598e36": "sparse_decode_c7598e36",
        "eb8c4971": "sparse_decode_eb8c4971",
    },
}

SOURCES = {
    "sparse_decode": {
        "2e790ecd": "2280a51618ee5cca257b609e9ea0c0a770c5945749a5f1fccae5df23ce933e44",
        "6e8ceb0e": "7a9fd0aa46fa2cf909f86fd88456e4ae16bd708f3e70acf97a8b117dda83f3e9",
        "8a5ab1c9": "ffdf07ee8493a8624f257e375b2de9b6c3f8fcfefc841f8adf46b991831b6c95",
        "991bffbf": "9323a5e4a46cdbadaace7347fe4809e00f6e25ef84e043c2a8d772edfa470b3f",
        "b600e178": "f4a85d4b48a8b3696b7ecb124987f005d551aacf814d9527b2d358b45338f03c",
        "c7598e36": "feaea5ede06af3f12b172b5c4c8eecad6ad0ace97364d3036fe8ba452ba5a522",
        "eb8c4971": "eddfecebc66f1e6b08dac8c45896c32ef688a091d46f8f60816781fd03569222",
    },
}
