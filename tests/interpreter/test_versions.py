from __future__ import annotations

import pytest
import triton

from m3gen.errors import UserError
from m3gen.interpreter import KNOWN_RIGHT
from m3gen.interpreter.versions import check


def test_the_installed_triton_is_known() -> None:
    check(triton.__version__)


def test_a_build_of_a_known_release_is_known() -> None:
    check("3.6.0+rocm7.0.gitabcdef")


@pytest.mark.parametrize("version", ["3.5.1", "3.7.0", "3.10.0", "3.9.0.post1", ""])
def test_an_unknown_version_is_refused_by_name(version: str) -> None:
    with pytest.raises(UserError) as refusal:
        check(version)
    message = str(refusal.value)
    assert version in message
    assert all(known in message for known in KNOWN_RIGHT)
    assert "\n" not in message
