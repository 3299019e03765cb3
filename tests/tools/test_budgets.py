"""Test tests/budgets.toml, and the tests that read limits from it."""

import re
import tomllib

import pytest
from support import budgets

pytestmark = pytest.mark.check


def test_each_budget_has_a_test():
    """Names in f-strings are compared by the text before and behind the braces."""
    sources = "".join(path.read_text() for path in budgets.tests())
    used = re.findall(r'budgets\.check\(f?"([^"]+)"', sources)
    patterns = [re.sub(r"\\\{.*?\\\}", r"\\w+", re.escape(name)) for name in used]
    assert [name for name in budgets.BUDGETS
            if not any(re.fullmatch(pattern, name) for pattern in patterns)] == []


def test_a_budget_is_an_upper_limit(monkeypatch):
    monkeypatch.delenv(budgets.WRITING, raising=False)  # make budgets: or it would write the limits
    name, limit = next(iter(budgets.BUDGETS.items()))
    budgets.check(name, limit)
    with pytest.raises(AssertionError, match=re.escape(name)):
        budgets.check(name, limit + 1)


def test_the_file_gets_measured_figures():
    text = budgets.FILE.read_text()
    measured = {name: 12_345 for name in budgets.BUDGETS}
    written = budgets.written(text, measured)
    found = tomllib.loads(written)
    assert {limit for limits in found.values() for limit in limits.values()} == {12_469}
    assert [line for line in written.splitlines() if " = " not in line] == [
        line for line in text.splitlines() if " = " not in line]
