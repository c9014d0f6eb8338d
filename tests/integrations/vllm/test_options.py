"""What an engine may say to m3gen, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.integrations.vllm.options import Options


def test_nothing_said_is_the_defaults() -> None:
    assert Options.of({}) == Options.of({"m3gen": {}}) == Options()
    assert Options.of({"someone else's": 1}) == Options()


def test_a_configuration_that_is_no_mapping_says_nothing() -> None:
    assert Options.of(object()) == Options()


def test_all_options() -> None:
    said = {"enabled": False, "arch": "gfx950", "tables": "/tables", "build": False, "debug": True}
    wanted = Options(enabled=False, arch="gfx950", tables=Path("/tables"), build=False, debug=True)
    assert Options.of({"m3gen": said}) == wanted


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (True, 'additional_config["m3gen"] is True: expected an object, such as {"arch": "gfx942"}'),
        ({"arhc": "gfx942"}, 'additional_config["m3gen"]["arhc"] is unknown: did you mean arch?'),
        ({"zzz": 1}, "is unknown: there are enabled, arch, tables, build, debug"),
        ({"build": "yes"}, "is 'yes': expected a bool"),
        ({"arch": 942}, "is 942: expected a str"),
    ],
)
def test_bad_options(said: Any, words: str) -> None:
    with pytest.raises(UserError) as caught:
        Options.of({"m3gen": said})
    assert words in str(caught.value)
