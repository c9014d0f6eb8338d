"""Skipped, with the refusal as the reason, where transformers is missing or not one that m3gen takes."""

import pytest

from m3gen.errors import UserError

try:
    import m3gen.integrations.transformers  # noqa: F401
except UserError as error:
    pytest.skip(str(error), allow_module_level=True)
