"""Docstrings are whole, and keep their order."""

import inspect
import re
from typing import Any

import pytest
from torch import nn

import sonorant.functional
import sonorant.losses
import sonorant.metrics
import sonorant.nn

SECTIONS = ("Args", "Returns", "Raises", "References", "Example")
PACKAGES = (sonorant.functional, sonorant.losses, sonorant.nn, sonorant.metrics)
PUBLIC = [(f"{package.__name__}.{name}", getattr(package, name)) for package in PACKAGES for name in package.__all__]
FUNCTIONS = [pair for pair in PUBLIC if inspect.isfunction(pair[1])]
MODULES = [pair for pair in PUBLIC if inspect.isclass(pair[1]) and issubclass(pair[1], nn.Module)]


def sections(thing: Any) -> list[str]:
    """The headings of a docstring as they come, the equation among them."""
    found = re.findall(rf"^(?:\.\. (math)::|({'|'.join(SECTIONS)}):)", inspect.getdoc(thing) or "", re.MULTILINE)
    return [math_block or heading for math_block, heading in found]


@pytest.mark.parametrize(("name", "thing"), [*FUNCTIONS, *MODULES], ids=lambda value: value if value is str else None)
def test_docstrings_keep_their_order(name: str, thing: Any) -> None:
    order = ("math", *SECTIONS)
    found = sections(thing)
    assert found == sorted(set(found), key=order.index), name
    assert "Example" in found, name


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=lambda value: value if value is str else None)
def test_functions_say_what_they_take_and_return_and_where_it_comes_from(name: str, function: Any) -> None:
    found = sections(function)
    for section in ("Args", "Returns"):
        assert section in found, f"{name}: {section}"
    if name.startswith("sonorant.functional"):
        assert "math" in found, f"{name}: the equation"
        assert "References" in found, f"{name}: References"
    documented = re.findall(r"^    (\w+): ", inspect.getdoc(function) or "", re.MULTILINE)
    assert [p for p in inspect.signature(function).parameters if p not in documented] == [], name


@pytest.mark.parametrize(("name", "module"), MODULES, ids=lambda value: value if value is str else None)
def test_modules_document_what_they_are_made_with(name: str, module: Any) -> None:
    documented = re.findall(r"^    (\w+): ", inspect.getdoc(module) or "", re.MULTILINE)
    assert [p for p in inspect.signature(module).parameters if p not in (*documented, "args", "kwargs")] == [], name
    if "raise ValueError" in inspect.getsource(module.__init__) or "check_" in inspect.getsource(module.__init__):
        assert "Raises" in sections(module), f"{name}: Raises"
