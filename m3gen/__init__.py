"""m3gen: decode-attention and KV-cache kernels of MiniMax-M3, generated and tuned per GPU architecture."""

from pathlib import Path as _Path

__version__ = "0.1.0"

# In a checkout, templates/, tuning_db/ and generated/ lie beside the package; installed, inside it.
_root = _Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file() and (_root / "templates").is_dir():
    __path__.append(str(_root))
del _root
