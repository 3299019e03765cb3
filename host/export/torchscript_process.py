"""The export of TorchScript in a process of its own, which cannot change the user's files.

torch.jit.load and the module's forward run operators that the file names, and some of these write
files. So they run confined; see confined. The request goes to the process's stdin as an .npz file;
what it prints are messages, each a line of JSON: {"tell": text} for a step, and in the end {"error":
code, "message": text} or {"program": base64, "entry": ...}. Nothing of what comes back is taken on
trust: it is text, numbers, and the bytes of a program.
"""

import base64
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
from picotorch import Error
from picotorch.errors import INTERNAL, NOT_SUPPORTED, fail
from picotorch.memory import LIMIT

from .. import show
from ..npz import storable
from . import confined, torchscript

_LONGEST = 2 * LIMIT  # bytes of a message


def export_file(data: bytes, name: str, given: list, tell=None, unconfined: bool = False,
                ) -> tuple[bytes, dict]:
    """As torchscript.export_file, in a process that can write nothing but its own temporary folder.

    Raises NotSupported where this computer has nothing to confine it with, unless it may run so.
    """
    torchscript.check_file(data, name)
    if not unconfined and not confined.version():
        raise fail(NOT_SUPPORTED, "nothing on this computer keeps the code in a TorchScript file from "
                   "changing your files: there is no Landlock (Linux 5.13)", name,
                   remedy="export it elsewhere, or with --unconfined if you trust who made it")
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        words = [sys.executable, "-P", "-m", __name__, name]
        answer = _ask(words if unconfined else confined.command(folder, words), folder,
                      _request(data, given), tell or (lambda text: None))
    try:
        return _read_answer(answer, name)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise fail(INTERNAL, "the process that exports it ended without a result", name) from None


def _request(data, given):
    request = io.BytesIO()
    arrays = {f"in{i}": storable(array) for i, array in enumerate(given)}
    np.savez(request, model=np.frombuffer(data, np.uint8), **arrays)
    return request.getvalue()


def _ask(words, folder, request, tell):
    """The last message of the process, None where it gave none. Ends it in any case."""
    places = dict.fromkeys(("TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"), folder)
    process = subprocess.Popen(words, cwd=folder, env=os.environ | places, start_new_session=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.close()
        return _last_message(process.stdout, tell)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def _last_message(lines, tell):
    while line := lines.readline(_LONGEST):
        try:
            message = json.loads(line)
            text = message.get("tell")
        except (AttributeError, ValueError):
            return None
        if text is None:
            return message
        tell(_printable(text))
    return None


def _printable(text):
    """A step's text, which may end its line."""
    return show.printable(str(text).rstrip("\n")) + ("\n" if str(text).endswith("\n") else "")


def _read_answer(answer, name):
    """(program, entry). Raises the Error that it tells; TypeError and such for what is no answer."""
    if "error" in answer:
        raise fail(int(answer["error"]), str(answer["message"]))
    entry = answer["entry"]
    program = base64.b64decode(answer["program"])
    return program, {
        "model": name, "bytes_before": int(entry["bytes_before"]), "bytes": len(program),
        "planned": [int(size) for size in entry["planned"]],
        "missing_operators": [str(operator) for operator in entry["missing_operators"]],
        "largest_difference": _number(entry["largest_difference"]),
        "largest_magnitude": _number(entry["largest_magnitude"]),
        "checked": str(entry["checked"]),
    }


def _number(value):
    return None if value is None else float(value)


# ---- in the process


def main() -> None:
    """Answers the request on stdin. What torch and the module print goes nowhere."""
    out = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)

    def say(**message):
        print(json.dumps(message), file=out, flush=True)

    with np.load(io.BytesIO(sys.stdin.buffer.read())) as arrays:
        data, *given = (arrays[name] for name in arrays.files)
    given = [np.array(None) if array.dtype.kind == "V" else array for array in given]
    try:
        program, entry = torchscript.export_file(data.tobytes(), sys.argv[1], given,
                                                 lambda text: say(tell=text))
        say(program=base64.b64encode(program).decode(), entry=entry)
    except Error as error:
        say(error=error.code, message=error.message)
    except Exception as error:
        say(error=INTERNAL, message=f"{type(error).__name__}: {error}; this is a fault of picotorch: "
            "please report it")


if __name__ == "__main__":
    main()
