"""Imports of tools, which are not searched for garbage."""

import gc
import sys

import pytest

from xmodal.engine.imports import quick_imports


@pytest.fixture
def frozen(monkeypatch):
    """Has an entry for each time that all objects would have been left out of the search."""
    calls = []
    monkeypatch.setattr(gc, 'freeze', lambda: calls.append(gc.isenabled()))
    return calls


def test_a_tool_imports_without_a_search_for_garbage_and_then_searches(monkeypatch, frozen):
    monkeypatch.delitem(sys.modules, 'torch')
    with pytest.raises(KeyboardInterrupt), quick_imports():
        assert not gc.isenabled()
        raise KeyboardInterrupt
    assert gc.isenabled() and len(frozen) == 1


def test_what_the_caller_of_a_tool_has_may_become_garbage(frozen):
    with quick_imports():
        assert gc.isenabled()
    assert not frozen
