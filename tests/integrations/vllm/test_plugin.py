"""The entry point: off unless switched on, harmless when called again, and particular about versions."""

from __future__ import annotations

import pkgutil
import sys
import tomllib
from types import SimpleNamespace

import pytest

from m3gen.errors import UserError
from m3gen.integrations.vllm import versions
from m3gen.integrations.vllm.plugin import MODELS, register
from tests.store.samples import ROOT


class Registry:
    """Of a vLLM that is not there."""

    def __init__(self) -> None:
        self.models: dict[str, str] = {}

    def register_model(self, architecture: str, model: str) -> None:
        self.models[architecture] = model


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__version__="0.32.0", ModelRegistry=made))  # type: ignore[arg-type]
    monkeypatch.delenv("M3GEN_VLLM", raising=False)
    return made


def test_the_package_names_it_to_vllm() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pkgutil.resolve_name(project["entry-points"]["vllm.general_plugins"]["m3gen"]) is register


def test_off_unless_switched_on(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    monkeypatch.setenv("M3GEN_VLLM", "0")
    register()
    assert registry.models == {}


def test_models_are_named_and_not_imported(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M3GEN_VLLM", "1")
    register()
    register()
    assert registry.models == MODELS
    assert "m3gen.integrations.vllm.model" not in sys.modules or "vllm.config" in sys.modules


def test_a_switch_that_is_neither_on_nor_off(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M3GEN_VLLM", "true")
    with pytest.raises(UserError, match="M3GEN_VLLM='true': expected 1"):
        register()


def test_a_version_outside_the_range_is_refused_only_when_switched_on(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["vllm"], "__version__", "0.34.0")
    register()
    monkeypatch.setenv("M3GEN_VLLM", "1")
    with pytest.raises(UserError, match=r"vLLM is 0\.34\.0, m3gen's integration knows 0\.32\.x, 0\.33\.x"):
        register()
    assert registry.models == {}


@pytest.mark.parametrize("version", ["0.32.0", "0.32.1+cpu", "0.33.0rc1", "0.33.1.dev3+g1234"])
def test_versions_in_the_range(version: str) -> None:
    versions.check(version)


@pytest.mark.parametrize("version", ["0.31.9", "0.3.2", "1.33.0", "0.330.1", "dev", ""])
def test_versions_outside_it(version: str) -> None:
    with pytest.raises(UserError):
        versions.check(version)
