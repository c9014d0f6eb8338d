"""Generated kernels for gfx942: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "dense_decode": {
        "2a9adc33": "dense_decode_2a9adc33",
        "344d7dbc": "dense_decode_344d7dbc",
        "39bb3ff6": "dense_decode_39bb3ff6",
        "3f3598ef": "dense_decode_3f3598ef",
        "6f66c92b": "dense_decode_6f66c92b",
        "9a1d5c73": "dense_decode_9a1d5c73",
        "a8e96d3f": "dense_decode_a8e96d3f",
        "ab8e63cc": "dense_decode_ab8e63cc",
        "cfbc1598": "dense_decode_cfbc1598",
    },
    "index_score": {
        "66553d27": "index_score_66553d27",
        "70ddb1c8": "index_score_70ddb1c8",
        "cdcf7caf": "index_score_cdcf7caf",
        "ee5c3c44": "index_score_ee5c3c44",
    },
    "index_select": {
        "51006ab4": "index_select_51006ab4",
        "66dfe76d": "index_select_66dfe76d",
        "8b0c5cd8": "index_select_8b0c5cd8",
        "8dbc83fd": "index_select_8dbc83fd",
        "b3bc7487": "index_select_b3bc7487",
        "c974a584": "index_select_c974a584",
    },
    "index_topk": {
        "a6afaf38": "index_topk_a6afaf38",
        "d9b69acb": "index_topk_d9b69acb",
    },
    "kv_convert": {
        "1f6304f6": "kv_convert_1f6304f6",
        "79d85556": "kv_convert_79d85556",
        "8f37e133": "kv_convert_8f37e133",
        "a485da11": "kv_convert_a485da11",
        "c68c8ab5": "kv_convert_c68c8ab5",
    },
    "kv_copy": {
        "2c250a0f": "kv_copy_2c250a0f",
        "40ab1fd0": "kv_copy_40ab1fd0",
        "54fc6335": "kv_copy_54fc6335",
        "7d9c8e50": "kv_copy_7d9c8e50",
        "83b8b7d7": "kv_copy_83b8b7d7",
        "eb74d667": "kv_copy_eb74d667",
    },
    "kv_gather": {
        "19a2717e": "kv_gather_19a2717e",
        "6d447202": "kv_gather_6d447202",
        "9af4fc7c": "kv_gather_9af4fc7c",
        "bdc190e5": "kv_gather_bdc190e5",
        "df0beaa8": "kv_gather_df0beaa8",
        "f86f18e1": "kv_gather_f86f18e1",
    },
    "kv_insert": {
        "67253b48": "kv_insert_67253b48",
        "8e1bbd84": "kv_insert_8e1bbd84",
    },
    "kv_zero": {
        "726ccee6": "kv_zero_726ccee6",
        "9cea2db3": "kv_zero_9cea2db3",
        "ace50d24": "kv_zero_ace50d24",
        "c56c7b97": "kv_zero_c56c7b97",
        "c9d8ccbf": "kv_zero_c9d8ccbf",
    },
    "qk_norm_rope_insert": {
        "0fbb3b6a": "qk_norm_rope_insert_0fbb3b6a",
        "2f3468a6": "qk_norm_rope_insert_2f3468a6",
        "4185c9b2": "qk_norm_rope_insert_4185c9b2",
        "b8a52985": "qk_norm_rope_insert_b8a52985",
    },
    "sparse_decode": {
        "166bbb9a": "sparse_decode_166bbb9a",
        "373e3c5b": "sparse_decode_373e3c5b",
        "8a5ab1c9": "sparse_decode_8a5ab1c9",
        "942c89a2": "sparse_decode_942c89a2",
        "b4ea127f": "sparse_decode_b4ea127f",
        "b7c9a2b8": "sparse_decode_b7c9a2b8",
    },
}

SOURCES = {
    "dense_decode": {
        "2a9adc33": "5a92a90bce87f6bb28b331651765abd123e440ba07b31a0bfaf69288d970eddc",
        "344d7dbc": "bd7f52af2e676edea023144cba31f02abdf39fe26f79fe748e42dbe3f68c5264",
        "39bb3ff6": "7b01039910dd202394689403cab2fdf15279346d56107d0efafffbde25bea55b",
        "3f3598ef": "0ae509074bcf02cc35156bcc4bf589a70b810d54b26210b94aacab527230901f",
        "6f66c92b": "29e513e4c00c0a85db5b428c1348462470d155b29a2741cfdb6aa9ed552cc2f3",
        "9a1d5c73": "ee49d6ec797ad6d78e529a0a406314babab91216dc4d11c7f6a9559e48301646",
        "a8e96d3f": "81620021627f06176b667d64364314feb06f3619aae1931dee3c5ba1e9cfe921",
        "ab8e63cc": "73aca83105aa57aeea62ef4b4350ee1ebcdd48cefa457ff87b9548c41d333011",
        "cfbc1598": "538d6fc801c9fc5b5d63df9850b783afc8335f5bb50bd65ed571f76b8df5a9f5",
    },
    "index_score": {
        "66553d27": "2e3237d8fdf8700d71821d653745b6fa88e4d18a6e5d441c04af3fe8cd28a63e",
        "70ddb1c8": "87da35e9def9be8acd0da2bcd7efb2751280c87f31a5f75534077c4426ce0542",
        "cdcf7caf": "a03e745cddf1d09edc1dfec671848a146896db96d4d83b57231212d7ab775a22",
        "ee5c3c44": "415198d4f0099c2c2cb2e1028f73c6b471fd834980343d5d19b5fe41b4778424",
    },
    "index_select": {
        "51006ab4": "cb62780e06abad143a986e53dcbaf211b39ab09c937b7ef1807f0a520c73c6d0",
        "66dfe76d": "b74dc050cbf27afaf7c2c274d192b81a09abdc8b4bc5ef90c47061a1dee98525",
        "8b0c5cd8": "48dbcfe620d5901a159dec51b895476aee2b860d2d6d1715d8152e4e5ed318cb",
        "8dbc83fd": "1cbf0d00534058aec65c301818eb4da0a6a7fd86c436fb08dff9fae95aaae9a9",
        "b3bc7487": "7de29046b07b2349093059ab3141838d386f253bdbb9e840c90a055d222d6635",
        "c974a584": "1846e8592f1159280aca34b6d29b5a82e251146b1a1dd452947289020c9b010b",
    },
    "index_topk": {
        "a6afaf38": "96120addcf8dbac32122f884d58bb7186c85ef34b5f2a3dc72202ffb8ffe83e7",
        "d9b69acb": "b8cbf71589d6148193accf32a438e53a7d3cc842558d86a77743c1bc5888a8f6",
    },
    "kv_convert": {
        "1f6304f6": "472ec0933ff2444040a4e7c76ce23c217cc9d064c18b4e74f86b405a31c3eb68",
        "79d85556": "08d041b9bb28ed4753a4d35f2e9084eaafc61d24d7a5feff71890584dad29dfb",
        "8f37e133": "29f2b7b4ddd20cb23c4092c76301b8c1f4bdea248b4803fcca5bcb35a19ea8bd",
        "a485da11": "01ddacc4abd4121628ffbfe554a7087ce057aa97acdc9acf5c92c3619004ff3d",
        "c68c8ab5": "f167cc5bf6b9700a355e6b233155d50bd9da682b106c28a54233d025475dc9b3",
    },
    "kv_copy": {
        "2c250a0f": "2ade67ab71f32e677bd002a7ffb836e1568a6c2cda83087f0b7d9d5c5f580874",
        "40ab1fd0": "4043413a907949ad0af0bf9cd30938b227b7db9fff73cb80f118cf3c7a2a1a46",
        "54fc6335": "4c76a74c49e04a0d07d1a8b4f314f1c374bd69a99cc2d94418b96a9f77807087",
        "7d9c8e50": "4590f7e462a84671573addc932c79a9b44830991386837a7edf89fa497d9ae0a",
        "83b8b7d7": "1fcc2920a1938347ec82c50d124ec16a2ebe1eb925e3be09472869c7aaf425dc",
        "eb74d667": "4f29ac227b956a18a03260295b42a87ba78fea2757804c8b1a5cb1693d4624f6",
    },
    "kv_gather": {
        "19a2717e": "6621e59d25c17bfdaa5e15c9e8470545c2058cd278190882976572f15e708408",
        "6d447202": "646714d80f416475dfcb727c69c8bf3078cf5f008a964185881e592058b37ad2",
        "9af4fc7c": "e7fd665605c7835cffeb84b4b347199354d3468f47a1684b36afea00d956cf97",
        "bdc190e5": "ca3655db560428f7289e5d5995ebd1f0cf33542fa41dcdd04a585c6f837becfd",
        "df0beaa8": "0e726a7852920c0ab183a5e54fad88b2205cffa1645c628e773696d28d4fbc63",
        "f86f18e1": "90ce59995be278754f61420f2f3241e8894b71bdaa3d18eb013f309ce06d8114",
    },
    "kv_insert": {
        "67253b48": "41d833140ae1fd8d2f096ce470cde947dc9448e198e459fcc7f7307a4b707eeb",
        "8e1bbd84": "55e1526826bbd096aeeb5517946ed3c54027dd5b45c99c205db15735b65b07d0",
    },
    "kv_zero": {
        "726ccee6": "f471cd3da15ec6388460e203bf74b65a1038942efd4dab615aa8d6985abe4c07",
        "9cea2db3": "a6eabc61b2d2faf31936c7269ef4a8f53041463e5b8da869e978ae855b61efa8",
        "ace50d24": "dfc365895e7f5e79fa7e3217982b9397e3adee6ea941999b9911bdc987ab1ef0",
        "c56c7b97": "4ef851855541ec942768ea531f7745b2b17b0c8d94634affb04a25757c8f5ebe",
        "c9d8ccbf": "df1e7bda89cba3f07c35618a5def81ebef07caf2a743b5148c52b4f3368337c2",
    },
    "qk_norm_rope_insert": {
        "0fbb3b6a": "b2decbd7d381f8799b461b9f40732c5bdd9a83809ad8e37840c1ce7afceafe12",
        "2f3468a6": "16f49e2481d3557b137f40a7c17e8cf388145f396e457555b6e220737ebfb5bd",
        "4185c9b2": "6efba2332d452756d04f045b0f3bc52392114d56e69f0de53e1a0318a72c4b60",
        "b8a52985": "51862a7e33aed6a771a792a1c7c0506c8c055e1ff6640c76f51db94c4219a972",
    },
    "sparse_decode": {
        "166bbb9a": "d4b6b99cb4a695c1cc237ca7fd257923019e609260b28bb79961d4e8632d08b4",
        "373e3c5b": "49cc76bf178657c7586c196c8a1da6b4e713ac72fca1e56651f0469f2453d59c",
        "8a5ab1c9": "ffdf07ee8493a8624f257e375b2de9b6c3f8fcfefc841f8adf46b991831b6c95",
        "942c89a2": "fa61d0d188a608c02661811535053b6a945bf7700dbc4bc619cafbe83cfb46c2",
        "b4ea127f": "13ab1728e7d854e5119862b731ccb9ea07bf9d89d5c625f2074a7a21ab9ab193",
        "b7c9a2b8": "13fb626f0dcca7492bd0c27b5e3e4fae25019acaed9f3f8194b43d86ed5bb921",
    },
}
