"""Check that variants of calls and packed constants keep their layout within a version of .ptm
files."""

import pytest
from support import ptm_format

pytestmark = pytest.mark.check

VERSION, LOCKED = ptm_format.locked()
HOW = ("the shortcut of a call or what a kernel prepares has changed, so that ptms of this version "
       "no longer run: change PT_PTM_MAGIC (kernels/core/format/ptm.h), and write the lock again "
       "as support/ptm_format.py says")


def test_the_lock_is_of_this_version():
    assert VERSION == ptm_format.VERSION, HOW


@pytest.mark.parametrize("name", LOCKED)
def test_variants_and_packed_layouts_change_with_the_version_only(name):
    assert ptm_format.lines_of(name) == LOCKED[name], HOW


def test_the_lock_has_shortcuts_and_forms_of_each_core():
    rows = [line.split()[2:] for lines in LOCKED.values() for line in lines]
    assert len(rows) > 200
    assert sum(not set(calls) <= {"0", "-"} for calls, *_ in rows) > 50
    for core in range(len(ptm_format.CORES)):
        assert any(digests[core] != "-" for _, *digests in rows)
