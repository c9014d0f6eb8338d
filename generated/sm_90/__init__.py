"""Generated kernels for sm_90: `MODULES[op][key]` names the module of one (variant, config).

`SOURCES` is the SHA-256 of its text without the lines that say where it comes from: what a table's row was
checked as."""

MODULES = {
    "dense_decode": {
        "34efdce8": "dense_decode_34efdce8",
        "43a7d59a": "dense_decode_43a7d59a",
        "972881ad": "dense_decode_972881ad",
        "b4cadaa7": "dense_decode_b4cadaa7",
        "ceda2a79": "dense_decode_ceda2a79",
        "d6c572ec": "dense_decode_d6c572ec",
        "f1b238e8": "dense_decode_f1b238e8",
    },
    "index_score": {
        "05af0a65": "index_score_05af0a65",
        "13f97787": "index_score_13f97787",
        "3f6dc905": "index_score_3f6dc905",
        "55b9cac1": "index_score_55b9cac1",
        "85d43b6e": "index_score_85d43b6e",
        "b3db3e43": "index_score_b3db3e43",
    },
    "index_select": {
        "13b7adaa": "index_select_13b7adaa",
        "3aa8c7bd": "index_select_3aa8c7bd",
        "3b6cfccf": "index_select_3b6cfccf",
        "3e7bf2b7": "index_select_3e7bf2b7",
        "743f8ed2": "index_select_743f8ed2",
        "82e76faa": "index_select_82e76faa",
        "bf304526": "index_select_bf304526",
        "d785fb83": "index_select_d785fb83",
    },
    "index_topk": {
        "07b0e3ab": "index_topk_07b0e3ab",
        "2592dcad": "index_topk_2592dcad",
        "bad3321f": "index_topk_bad3321f",
    },
    "kv_convert": {
        "79d85556": "kv_convert_79d85556",
        "9cd9fffa": "kv_convert_9cd9fffa",
        "bb095538": "kv_convert_bb095538",
        "e4200f5e": "kv_convert_e4200f5e",
        "ed0b627e": "kv_convert_ed0b627e",
    },
    "kv_copy": {
        "6e7587b4": "kv_copy_6e7587b4",
        "92f3f27c": "kv_copy_92f3f27c",
    },
    "kv_gather": {
        "0909a5ee": "kv_gather_0909a5ee",
        "2ca98e5f": "kv_gather_2ca98e5f",
        "886d40b4": "kv_gather_886d40b4",
        "95d3e551": "kv_gather_95d3e551",
        "e1edcff1": "kv_gather_e1edcff1",
    },
    "kv_insert": {
        "12778910": "kv_insert_12778910",
        "ef9ad738": "kv_insert_ef9ad738",
    },
    "kv_zero": {
        "7b1dcbf3": "kv_zero_7b1dcbf3",
        "e646c2a9": "kv_zero_e646c2a9",
    },
    "qk_norm_rope_insert": {
        "463938be": "qk_norm_rope_insert_463938be",
        "76557882": "qk_norm_rope_insert_76557882",
        "b4d2d2a1": "qk_norm_rope_insert_b4d2d2a1",
        "c8d70f65": "qk_norm_rope_insert_c8d70f65",
        "cbd19d3d": "qk_norm_rope_insert_cbd19d3d",
        "dd7bf61a": "qk_norm_rope_insert_dd7bf61a",
    },
    "sparse_decode": {
        "5b237e07": "sparse_decode_5b237e07",
        "6c39ae34": "sparse_decode_6c39ae34",
        "7abab251": "sparse_decode_7abab251",
        "9898a2c9": "sparse_decode_9898a2c9",
        "99d9acec": "sparse_decode_99d9acec",
        "9d408876": "sparse_decode_9d408876",
        "c2d44c5e": "sparse_decode_c2d44c5e",
        "db1ab731": "sparse_decode_db1ab731",
    },
}

SOURCES = {
    "dense_decode": {
        "34efdce8": "ba50fbc4660be4b8bce1d4263c07411b47af402e7f2622d905868dbd3c3ecd95",
        "43a7d59a": "f9b51d16412a58e02ae10b57d95f0184843adfd63a0654c95ad0bf9a0bb308c7",
        "972881ad": "916cd1b6dee1b1a163f56cce0d689504a3db20e6c3aeb03440a874172eab0eb2",
        "b4cadaa7": "52c1fb13989b9c113f1452b4d6690f028d55919dd06e0374c0e186ab0368c8e6",
        "ceda2a79": "fe1b57c5a033ae0d799037a0b683e54dc1e80b156326de85994b2db6a2fe74da",
        "d6c572ec": "ddc96631d6fc600a2111718aca689b2d77be2b26616049f35ed8cf75f2853dcd",
        "f1b238e8": "ea9a5b2f2943fd2b1891a7c8bcf3b48c1e48c1277a25c70717de9334b157df67",
    },
    "index_score": {
        "05af0a65": "071e040e1248d5b15b6c042a1a5afbc9659a87a5c7b6b239652db2f74a4ca49c",
        "13f97787": "00250f91fa15ee866f086ba45322f283778d848b08702ac761d17e4eb7c7f2d4",
        "3f6dc905": "cb0c7952e975eaeb1b35ca094c444affc3b9e0ea6f8f8b2e3c81c21b237a3396",
        "55b9cac1": "9b7df07be328dd83900bbffc427e83c814b29aa65da4521fe6974256a8898da6",
        "85d43b6e": "fc4ba4aa8f664a8aa6a02aa23545e7bd9a36567aa30a3b504595186d8af759f9",
        "b3db3e43": "393e084725e29cd065ace2719ee62aed0749dc8fc4d46ae96afbeaba0dbaa0e7",
    },
    "index_select": {
        "13b7adaa": "1b82cb75b5efbf163d28bc17d7b9c46fa73701091bbdbb22989c7ca5e78e071e",
        "3aa8c7bd": "f488165eb2538e1df4e6bc1d62277c6d97126a0e577a58366c8a810c2d732a15",
        "3b6cfccf": "9d83bb69c03912e4cb4979152f2937810ffed479152a5306f3dd783755f88b0d",
        "3e7bf2b7": "29acfa68bcf173c38623481194ecb8b25cf10f5522eefed8119146f24fcfdd06",
        "743f8ed2": "46ba07e42cb74b0112e5b5f9b6b48c695b7cc8171602af4d382cadbd6009675e",
        "82e76faa": "db13bef85337ac649675acf0ac97086a660d882fec09f5f1ae8b54138fc14f03",
        "bf304526": "0ebdb3ab6031e20f61e04dcb6eded1d4e449cd18e9e69059acd96af6a1e10b65",
        "d785fb83": "d354a7e44ebc52c489c1ca492c85ccb9d946348c577464872913d55e36b9ac57",
    },
    "index_topk": {
        "07b0e3ab": "4e2e039a54e3e6acd7cf825b21ee72a40366bf08eec17a5b0a3ca37114208276",
        "2592dcad": "04f73d7f9b1c8a4144c1bb81405fdbc318670c156661d69f79fa79e8d3c5fcfc",
        "bad3321f": "964b913ed5c260753b1bb40073b2098350de116d9bd39d1e7016d28113b30e2e",
    },
    "kv_convert": {
        "79d85556": "cfadf5029da9c6309fe6be9980d7bb3c7755630729e7db7c306a4c25614a5513",
        "9cd9fffa": "3810cd1df100dadb75e0fde46fef42317236904abe0d80418e9c50117fbc19cc",
        "bb095538": "8394ba506622e571e7ddc2eb85ec835bf84b8c05b538a400a2f2309f1d365c08",
        "e4200f5e": "2ab14a266f90db9383a9b137cbfcb20121e61e2e22546a3e3e7b5a84c825d1ef",
        "ed0b627e": "04bd35f62cf9ed9082724b126fd8b02afca52772b7d931d787202db014f9a2f6",
    },
    "kv_copy": {
        "6e7587b4": "ff83f284438a2d220a4eef09bfb77bc8734bea405571e6f9bb84004605e01a55",
        "92f3f27c": "ff6ecce98f81d2db1ef7f1da6dbb29c8bb1de1702f94149effc86336324003cb",
    },
    "kv_gather": {
        "0909a5ee": "4a4cc9a91398139df9bbb705e3453047df8bbad863b85e7d3eb68afacb8af6c7",
        "2ca98e5f": "64ba2bb4db2b0a40e42ffae6f29a9af9fc2a9c3284312bc86e10da7a1eff603b",
        "886d40b4": "bb61ae3006f3f02aad4484fc66f02655038edafec7db824c95c77f26c27f9181",
        "95d3e551": "59b59cf5548e5f29a70dabf83f9d7afd06d4e260dcd68a73a4984e76c5ec229a",
        "e1edcff1": "dd4cf292d59e97cd88e85520448409612d47f0582bdedcad4145852441cf11de",
    },
    "kv_insert": {
        "12778910": "de61d30fb6d154bf7fa599fe0b00c234ad6b7c0b2afd375f010e225c9fde1ab0",
        "ef9ad738": "794767cfbd649ea80c4d0e0745ba88a9a4195451cb2e1bdbf25534d0b7d4b389",
    },
    "kv_zero": {
        "7b1dcbf3": "c506b0a61dcc44feb4562619073fb98c92b73bbb691ca594d48d31972683f66a",
        "e646c2a9": "dd508f78ddffe66ee6089a37dde613003902e708a09ba2c2b2d0f7569f1674dc",
    },
    "qk_norm_rope_insert": {
        "463938be": "f34e0bda33694238dcdf06e4628f348e962452a1f2740d97d37a27ec69d3f7a6",
        "76557882": "e6f011eba52036c7cf8ad0831ed5d218e26c404678acf430578b6c3624f11c6c",
        "b4d2d2a1": "150d41b9a36dbeecc47979010017c6d71e8dc5987ceb6dad2882305c1bfdced1",
        "c8d70f65": "dc814b82db95fecdcead907fb93bfa4b2b377ac867d1cd1006d4f7022c706c1b",
        "cbd19d3d": "8fa23d0d0458efa247325fa899d3a6df59997b1b991256a8fd9eeb45bf3da32f",
        "dd7bf61a": "e0afe2ed64b1fe86c5bc60c68f10578998803226cada245a6048de006aefe14d",
    },
    "sparse_decode": {
        "5b237e07": "b3296423fb8207c3572c9e3722e541ede2384019a614903d2cf35b57160bce4e",
        "6c39ae34": "d4fb1763a6dadccc346d3c39f1e903189daf9c4f91a1cc5173c8b951faca75d1",
        "7abab251": "2f7573767a8978db0a8d00d8990c24ec9d8f5c8472e6704d9890ac4e8092305c",
        "9898a2c9": "f3a5f172ce8fd69199a6475d08d230d1b63c607caf57f6300d066b124d821f25",
        "99d9acec": "4991450ffce45b734b98a9ec1e9751de6f01ab5728146487fe442756cfd8c2ab",
        "9d408876": "2e6f3732aa3498fe9a92465076e7bce320395f20552f8bb1fdec195a2d10629f",
        "c2d44c5e": "dbb439dcf6d489475155fbcf6b772a0f2ac4decbfea5457f1b143e6a795d8245",
        "db1ab731": "ac623594c0a234645c3848159ccc6bafaa890ecfdbaafa30352039046d99efd5",
    },
}
