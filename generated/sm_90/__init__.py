"""Generated kernels for sm_90: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "sparse_decode": {
        "62c8ab92": "sparse_decode_62c8ab92",
        "6c39ae34": "sparse_decode_6c39ae34",
        "6eb3187f": "sparse_decode_6eb3187f",
        "9db225f5": "sparse_decode_9db225f5",
        "b9f3a1e7": "sparse_decode_b9f3a1e7",
        "bbbe97d4": "sparse_decode_bbbe97d4",
        "c76fd387": "sparse_decode_c76fd387",
    },
}

SOURCES = {
    "sparse_decode": {
        "62c8ab92": "b79aa67949ce343c56a14664548fb1598d936237eb28145fe54dc144ab2d8987",
        "6c39ae34": "d4fb1763a6dadccc346d3c39f1e903189daf9c4f91a1cc5173c8b951faca75d1",
        "6eb3187f": "4afa47d685fd694046916ca36fc54a6fbe7350744992b1730865f411195111c4",
        "9db225f5": "c9a667ed231f74d006708a9b3694c6665be9ab0c904ebb0c3f4962b94460927d",
        "b9f3a1e7": "00469feb718ba7272d72461c657b93ca9a9230faa7111318223801777d730cd0",
        "bbbe97d4": "6074accdbedd98361bdc18ee5a1b6d8581f8d7dca358cf47385315a4b24da272",
        "c76fd387": "42352d04c009581e96ee89dad80e5416ce4a57cc8f2375ef97017ead9f81c508",
    },
}
