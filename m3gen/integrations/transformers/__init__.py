"""MiniMax-M3 of transformers, decoded by m3gen's kernels: `attn_implementation="m3gen"` and `PagedCache`.

Importing this package registers the attention implementation. Raises `UserError` where transformers is missing
or of a version that this package has not been run against.
"""

from m3gen.integrations.transformers.support import TESTED, check_version

check_version()  # before anything of transformers is imported

from m3gen.integrations.transformers.attention import NAME, register  # noqa: E402
from m3gen.integrations.transformers.cache import PagedCache  # noqa: E402
from m3gen.integrations.transformers.indexer import restore  # noqa: E402

register()

__all__ = ["NAME", "TESTED", "PagedCache", "check_version", "register", "restore"]
