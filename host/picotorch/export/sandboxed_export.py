"""Export a file of torch in a process of its own, which cannot change the user's files.

Reading such a file and running its module runs operators that the file names, and some of these write
files. So they run confined, see sandbox. The request goes to the process's stdin as an .npz file; it
prints messages, each a line of JSON: {"tell": text} for a step, and in the end {"error": code,
"message": text} or {"program": base64, "float_program": base64 or null, "report": ...}. No message is
trusted: it is text, numbers, and the bytes of programs.
"""

import base64
import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
import tempfile
import typing
from collections.abc import Callable
from typing import IO, Any, Literal

import numpy as np

from picotorch import Error
from picotorch.errors import INTERNAL, NOT_SUPPORTED, fail
from picotorch.memory import LIMIT

from ..host import child, show
from ..host.npz import storable
from . import modules, pipeline, sandbox, torchscript
from .pipeline import Built, ExportOptions
from .progress import Steps
from .result import Checked

_LONGEST = 4 * LIMIT  # bytes of a message


def export_file(data: bytes, kind: str, name: str, examples: list[Any] | None, options: ExportOptions,
                tell: Callable[[str], None] | None = None, unconfined: bool = False) -> Built:
    """Export the module of a file as pipeline.build does, in a process that is confined.

    The process can write to a temporary folder only. examples: the example inputs, arrays, None for
    those of the file. Prints what else the process can do on this computer, if anything.

    Raises NotSupported if this computer cannot confine the process, unless `unconfined` allows it.
    """
    if not unconfined:
        _check_confinement(name)
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        message = {"name": name, "kind": kind, "core": options.core, "int8_io": options.int8_io,
                   "fuse_rnn": options.fuse_rnn, "keep_float": options.keep_float,
                   "mixed": options.mixed, "observer": options.observer, "given": examples is not None}
        words = [sys.executable, "-P", "-m", __name__, json.dumps(message)]
        answer = _ask(words if unconfined else sandbox.command(folder, words), folder,
                      _request(data, examples or [], options), tell or (lambda text: None))
    try:
        return _read_answer(answer, name)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise fail(INTERNAL, "the process that exports it ended without a result", name) from None


def _check_confinement(name: str) -> None:
    """Print what a confined process can do. Raises NotSupported if none can be confined."""
    has_filter = bool(sandbox.denied())
    if sandbox.version():
        why = _fault()
    else:
        why = ("there is no Landlock (Linux 5.13), and a seccomp filter alone does not" if has_filter
               else "there is neither Landlock (Linux 5.13) nor a seccomp filter")
    if why is not None:
        raise fail(NOT_SUPPORTED, "nothing on this computer keeps the code in it from changing your "
                   f"files: {why}", name,
                   remedy="export it elsewhere, or with --unconfined if you trust who made it")
    gaps = sandbox.gaps()
    if gaps:
        by = ("Landlock and a seccomp filter confine it" if has_filter else
              "Landlock alone confines it: it changes files in its own folder only, but there is no "
              "seccomp filter")
        show.line(f"{name}: {by}. Its code can still {'; '.join(gaps)}; export only files that you "
                  "trust", err=True)


def _fault() -> str | None:
    """Start a process that does nothing, confined: return why that fails, or None."""
    with tempfile.TemporaryDirectory(prefix="picotorch-") as folder:
        done = subprocess.run(sandbox.command(folder, [sys.executable, "-I", "-S", "-c", ""]),
                              stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode == 0:
        return None
    text = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    return f"a confined process does not start ({''.join(text[-1:]) or f'status {done.returncode}'})"


def _request(data: bytes, examples: list[Any], options: ExportOptions) -> bytes:
    arrays: dict[str, Any] = {f"given/{i}": storable(array) for i, array in enumerate(examples)}
    for field in ("quantize", "evaluate"):
        arrays |= {f"{field}/{i}/{name}": array for i, row in enumerate(getattr(options, field) or [])
                   for name, array in row.items()}
    request = io.BytesIO()
    np.savez(request, model=np.frombuffer(data, np.uint8), **arrays)
    return request.getvalue()


def _ask(words: list[str], folder: str, request: bytes, tell: Callable[[str], None]) -> Any:
    """Return the last message of the process, None without one. Ends the process in any case."""
    folders = dict.fromkeys(("TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"), folder)
    with child.started(words, child.kill_group, cwd=folder, env=os.environ | folders,
                       start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(request)
        return _last_message(process.stdout, tell)


def _last_message(lines: IO[bytes], tell: Callable[[str], None]) -> Any:
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


def _printable(text: object) -> str:
    """Return a step's text, which may end its line."""
    return show.printable(str(text).rstrip("\n")) + ("\n" if str(text).endswith("\n") else "")


def _read_answer(answer: Any, name: str) -> Built:
    """Return the built program. Raises the reported Error; TypeError and the like for other answers."""
    if "error" in answer:
        raise fail(int(answer["error"]), str(answer["message"]))
    program, float_program = (answer[key] and base64.b64decode(answer[key])
                              for key in ("program", "float_program"))
    report = dataclasses.replace(_read(Checked, answer["report"]), model=name, bytes=len(program))
    return Built(program, report, float_program)


def _read(kind: Any, value: Any) -> Any:
    """Return a value of JSON as this type, a dataclass for instance.

    Raises AttributeError, KeyError, TypeError or ValueError for other values.
    """
    parts = typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind)
        return kind(**{field.name: _read(types[field.name], value[field.name])
                       for field in dataclasses.fields(kind)})
    if type(None) in parts:
        return None if value is None else _read(parts[0], value)
    if typing.get_origin(kind) is Literal:
        return parts[parts.index(value)]
    if typing.get_origin(kind) in (list, tuple):
        items = [_read(parts[0], item) for item in list(value)]
        return items if typing.get_origin(kind) is list else tuple(items)
    return kind(value)


# ---- in the process


def main() -> None:
    """Answer the request on stdin. Output of torch and the module is discarded."""
    out = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)

    def say(**message: Any) -> None:
        print(json.dumps(message), file=out, flush=True)

    message = json.loads(sys.argv[1])
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as arrays:
        request = dict(arrays)
    try:
        built = _export(request, message, Steps(lambda text: say(tell=text)))
        program, float_program = (part and base64.b64encode(part).decode()
                                  for part in (built.program, built.float_program))
        say(program=program, float_program=float_program, report=dataclasses.asdict(built.report))
    except Error as error:
        say(error=error.code, message=error.message)
    except Exception as error:
        say(error=INTERNAL, message=f"{type(error).__name__}: {error}; this is a bug in picotorch: "
            "please report it")


def _export(request: dict[str, np.ndarray], message: dict[str, Any], steps: Steps) -> Built:
    def part(prefix: str) -> dict[str, np.ndarray] | None:
        return {key.removeprefix(prefix): array for key, array in request.items()
                if key.startswith(prefix)} or None

    def rows(prefix: str) -> list[Any] | None:
        found: dict[int, dict[str, np.ndarray]] = {}
        for key, array in (part(prefix) or {}).items():
            number, _, name = key.partition("/")
            found.setdefault(int(number), {})[name] = array
        return [found[i] for i in sorted(found)] or None

    data, name = request["model"].tobytes(), message["name"]
    examples = [np.array(None) if array.dtype.kind == "V" else array
                for array in (part("given/") or {}).values()]
    torch = pipeline.imported(steps).torch
    if message["kind"] == torchscript.PT2:
        source = modules.source_of_pt2(torch, data, name, examples if message["given"] else None, steps)
    else:
        source = torchscript.source(torch, data, name, examples, steps)
    options = ExportOptions(rows("quantize/"), message["core"], rows("evaluate/"), message["int8_io"],
                            message["fuse_rnn"], tuple(message["keep_float"]), message["mixed"],
                            message["observer"])
    return pipeline.build(source, options, steps)


if __name__ == "__main__":
    main()
