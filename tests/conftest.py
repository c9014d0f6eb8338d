"""What tests of several rooms ask for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="m3gen-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
