"""These tests need transformers, in a version that m3gen takes."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'm3gen[transformers]'")
