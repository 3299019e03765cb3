"""Follow docs/tutorial.md from the training on: the trained network is right, in float and in int8."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import shown_code

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


@pytest.mark.thorough
def test_the_trained_network_is_right_in_int8(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    (script,) = (block for block in shown_code.code(PAGE, "python") if block.startswith("# digits.py"))
    (tmp_path / "digits.py").write_text(script)
    (command,) = (line for block in shown_code.code(PAGE, "console") for line in block.splitlines()
                  if line.startswith("$ picotorch export"))

    def run(*arguments):
        return subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    run("digits.py")
    found = json.loads(run("-m", *command.removeprefix("$ ").split(), "--json"))
    assert found["accuracy"]["pytorch"] > 0.9
    assert abs(found["accuracy"]["program"] - found["accuracy"]["pytorch"]) < 0.02
    assert all(layer["dtype"] == "int8" for layer in found["layers"])
    assert (tmp_path / "digits.pte").exists()
