"""Test the reader of a linker's map."""

from picotorch.boards.boards import load_board
from picotorch.measure.firmware_map import linked_objects, sections
from picotorch.run import emulator
from support import budgets

MAP = """
LOAD /home/a/build/firmware/board-run/kernels/core/load.o
LOAD /home/a/build/firmware/board-run/memory_copy.o
LOAD /home/a/selection/kernels/core/registry.o
LOAD /usr/lib/libgcc.a
LOAD linker stubs
"""


def test_only_objects_that_were_linked_count_wherever_the_folder_is_now(tmp_path):
    folder = tmp_path / "board-run"
    (folder / "kernels" / "core").mkdir(parents=True)
    (folder / "kernels" / "core" / "of_an_older_build.o").touch()
    (folder / "firmware.map").write_text(MAP)
    assert linked_objects(folder / "firmware.map", folder) == ["kernels/core/load.o", "memory_copy.o"]


def test_frozen_python_is_small():
    firmware = emulator.firmware_path(load_board("mps2-an386")).with_suffix(".map")
    frozen = sum(size for _, size, path in sections(firmware) if path.endswith("frozen_content.o"))
    budgets.check("firmware.frozen_python", frozen)
