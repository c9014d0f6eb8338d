"""What tests of several rooms ask for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# What a test shows does not depend on how busy the machine is.
settings.register_profile("m3gen", deadline=None)
settings.load_profile("m3gen")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="m3gen-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def never_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is launched in Triton's interpreter fails the test."""
    from triton.runtime.interpreter import InterpretedFunction

    def interpreted(*arguments: object, **keywords: object) -> None:
        raise AssertionError("a kernel was interpreted")

    monkeypatch.setattr(InterpretedFunction, "run", interpreted)
