#!/usr/bin/env python3
"""Fuzz a target of tests/hostile/fuzz with libFuzzer, guided by coverage.

The targets library and library32 are C alone, at 64 and at 32 bits; the others are Python and C
together, with atheris. clang builds the C code with its address and undefined-behaviour sanitizers.
clang (Debian packages) and atheris (into build/fuzz) are installed if they are missing. Inputs with new
coverage stay in build/fuzz/TARGET/corpus. The exit status is 1 after a finding: an exception other than
picotorch.Error, a sanitizer's report, or an input that takes too long or too much memory.

Example: tools/fuzz.py --minutes 10
Example: tools/fuzz.py --target file --input build/fuzz/file/findings/crash-1234
Example: tools/fuzz.py --minutes 60 --record      adds the run to tests/hostile/fuzz/campaign.json
Example: tools/fuzz.py --keep                     writes a small corpus to tests/hostile/fuzz/corpus
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from setup_picotorch import Need, SetupError, install, run, say

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
FUZZ = TESTS / "hostile" / "fuzz"
SANITIZED = TESTS / "support" / "sanitized.py"
BUILD = ROOT / "build" / "fuzz"
PACKAGES = BUILD / "packages"
EXTENSION = BUILD / "extension"
C_FUZZERS = ROOT / "build" / "library"
CAMPAIGN = FUZZ / "campaign.json"
TARGETS = sorted(path.stem for path in FUZZ.glob("*.py")
                 if re.search(r"^(from \w+ import .*)?MAX_LENGTH", path.read_text(), re.MULTILINE))

REQUIREMENTS = ROOT / "tools" / "requirements" / "fuzz.txt"
# pointer-overflow would report NULL + 0, of a tensor without elements
INSTRUMENTED = "-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow"
MEGABYTES = 2048  # the memory of a fuzzing process
LARGEST_ALLOCATION = 256  # MB
ENDED = (0, 72, -15)  # libFuzzer's status, or that of a terminated process, without a finding
KEPT = 250_000  # bytes of a target's inputs in tests/hostile/fuzz/corpus
PROGRESS = 10  # seconds
LATE = 120  # seconds for the last input of a process

STATUS = re.compile(r"^#(\d+)\s.*? cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)
EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")
CAUSE = re.compile(r"^(?:SUMMARY: .*|ERROR: libFuzzer: .*|.*runtime error: .*)$", re.MULTILINE)
EXCEPTION = re.compile(r"=== Uncaught Python exception: ===\n(.*)")


@dataclass
class Target:
    """A target of tests/hostile/fuzz. bits: of a pointer, for a target in C; None for Python."""

    name: str
    seconds: int
    max_length: int
    bits: int | None
    corpus: str
    mutates: bool


def describe(name, *seeds):
    """Return the target with this name, and write its seeds into a folder, if given."""
    described = subprocess.run([sys.executable, FUZZ / "describe.py", name, *seeds], check=True,
                               stdout=subprocess.PIPE, text=True)
    return Target(name, **json.loads(described.stdout))


# -- set-up -------------------------------------------------------------------------


def compiler():
    """Return the path of clang, of any version, or None."""
    found = [shutil.which(name) for name in ("clang", "clang-14", "clang-16", "clang-19")]
    return next(filter(None, found), None)


def has_sanitizers():
    """Return True if clang links instrumented code, for which it needs a recommended package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler(), *INSTRUMENTED.split(), "-shared", "-fPIC", "-x", "c", "-", "-o",
                   Path(folder) / "empty.so"]
        return subprocess.run(command, input="int empty;", text=True,
                              capture_output=True).returncode == 0


NEEDS = [Need("clang", "clang", lambda: compiler() is not None),
         Need("clang's sanitizers", "libclang-rt-dev", lambda: compiler() and has_sanitizers())]


# Further packages of library32; libFuzzer is C++
NEEDS_32 = [Need("C library for 32 bits", "gcc-multilib", lambda: links_32()),
            Need("C++ library for 32 bits", "g++-multilib", lambda: links_32("-lstdc++"))]


def links_32(*flags):
    """Return True if clang links a program of 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler(), "-m32", "-x", "c", "-", "-o", Path(folder) / "empty", *flags]
        return compiler() is not None and subprocess.run(
            command, input="int main(void) { return 0; }", text=True,
            capture_output=True).returncode == 0


def set_up(target):
    """Install clang and the other tools of the target."""
    needs = NEEDS + (NEEDS_32 if target.bits == 32 else [])
    missing = [need for need in needs if not need.is_there()]
    if missing:
        install(missing)
    if target.bits:
        run("fuzz", ["make", "-s", f"-j{os.cpu_count()}", "-C", FUZZ, f"BITS={target.bits}",
                     f"CLANG={compiler()}", "fuzzer"], f"fuzz-{target.name}")
    else:
        set_up_atheris()


def set_up_atheris():
    """Install atheris and the extension."""
    installed = PACKAGES / "installed.txt"
    if not installed.exists() or installed.read_text() != REQUIREMENTS.read_text():
        shutil.rmtree(PACKAGES, ignore_errors=True)
        try:
            run("fuzz", [sys.executable, "-m", "pip", "install", "--only-binary=:all:", "--target",
                         PACKAGES, "--require-hashes", "-r", REQUIREMENTS], "pip-install-atheris")
        except SetupError as error:
            raise SetupError(f"{error}\natheris has wheels for CPython 3.11 to 3.13 on x86-64 Linux; "
                             "remove .venv and put such a python3 first in PATH") from None
        installed.write_text(REQUIREMENTS.read_text())
    say("fuzz", "extension with clang's sanitizers", end=" ... ")
    started = time.monotonic()
    subprocess.run([sys.executable, SANITIZED, EXTENSION, compiler(), INSTRUMENTED], check=True)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


def environment(target):
    """Return the environment. libFuzzer finds a mutator only if it is loaded before the start."""
    if target.bits:
        return os.environ | {"ASAN_OPTIONS": "quarantine_size_mb=16",
                             "UBSAN_OPTIONS": "print_stacktrace=1"}
    libraries = [PACKAGES / "asan_with_fuzzer.so"]
    if target.mutates:
        libraries += (PACKAGES / "atheris").glob("custom_mutator*.so")
    return os.environ | {
        "LD_PRELOAD": " ".join(map(str, libraries)),
        "PYTHONPATH": os.pathsep.join(map(str, (EXTENSION, PACKAGES, FUZZ))),
        "PYTHONHASHSEED": "0",
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=64",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def command(target, folder, *options):
    limits = [f"-timeout={target.seconds}", f"-max_len={target.max_length}",
              f"-rss_limit_mb={MEGABYTES}", f"-malloc_limit_mb={LARGEST_ALLOCATION}"]
    program = ([C_FUZZERS / str(target.bits) / "fuzzer"] if target.bits
               else [sys.executable, FUZZ / "engine.py", target.name])
    return [*program, *limits, f"-artifact_prefix={folder / 'findings'}/", *options]


def fill(target, corpus):
    """Copy the seeds and the inputs of tests/hostile/fuzz/corpus into the corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    describe(target.name, corpus)
    for data in kept(target):
        if len(data) <= target.max_length:
            (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)


# -- corpus -------------------------------------------------------------------------


def archive(target):
    return FUZZ / "corpus" / f"{target.corpus}.tgz"


def kept(target):
    """Return the inputs of tests/hostile/fuzz/corpus."""
    if not archive(target).exists():
        return []
    with tarfile.open(archive(target)) as packed:
        return [packed.extractfile(member).read() for member in packed]


def keep(target, folder):
    """Write the smallest inputs with the coverage of the whole corpus, at most KEPT bytes of them."""
    smaller = folder / "merged"
    shutil.rmtree(smaller, ignore_errors=True)
    smaller.mkdir()
    subprocess.run(command(target, folder, "-set_cover_merge=1", "-use_counters=0", smaller,
                           folder / "corpus"), env=environment(target), check=True)
    inputs = sorted((path.read_bytes() for path in smaller.iterdir()), key=len)
    archive(target).parent.mkdir(exist_ok=True)
    count, size = 0, 0
    with (archive(target).open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed,
          tarfile.open(fileobj=packed, mode="w") as out):
        for data in inputs:
            size += len(data)
            if size > KEPT:
                break
            entry = tarfile.TarInfo(f"{count:04}")
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))
            count += 1
    print(f"{count} of {len(inputs)} inputs, {archive(target).stat().st_size:,}B: "
          f"{archive(target).relative_to(ROOT)}")


# -- running ------------------------------------------------------------------------


@dataclass
class Status:
    """The state of one process, read from its log."""

    executions: int = 0
    coverage: int = 0
    corpus: int = 0


def status(log):
    """Read libFuzzer's status from the last line of a log."""
    text = log.read_text(errors="replace")
    lines = STATUS.findall(text)
    found = Status(*(int(lines[-1][i]) for i in (0, 1, 3))) if lines else Status()
    executed = EXECUTED.findall(text)
    found.executions = max([found.executions, *map(int, executed)])
    return found


def reason(log):
    """Return the line in which libFuzzer or a sanitizer describes a finding."""
    text = log.read_text(errors="replace")
    found = EXCEPTION.findall(text) + CAUSE.findall(text)
    return found[0].strip() if found else "see the log"


def total(logs):
    """Return the sum of the statuses of some logs."""
    found = [status(log) for log in logs]
    return Status(sum(each.executions for each in found), max(each.coverage for each in found),
                  max(each.corpus for each in found))


def progress(logs, started, seconds):
    found = total(logs)
    left = max(0, seconds - (time.monotonic() - started))
    return (f"{found.executions:,} executions, coverage {found.coverage:,}, corpus {found.corpus:,}, "
            f"{left / 60:.0f} min left")


def fuzz(target, folder, seconds, jobs):
    """Fuzz until the first finding or ctrl-C. Return (Status, seconds, logs, findings)."""
    logs = [folder / f"log-{number}" for number in range(jobs)]
    before = {path.name for path in (folder / "findings").iterdir()}
    started = time.monotonic()
    processes = []
    for log in logs:
        with log.open("w") as file:
            processes.append(subprocess.Popen(
                command(target, folder, f"-max_total_time={seconds}", "-print_final_stats=1",
                        folder / "corpus"),
                stdout=file, stderr=subprocess.STDOUT, env=environment(target), cwd=ROOT))
    try:
        wait(processes, logs, started, seconds)
    except KeyboardInterrupt:
        print("\ninterrupted")
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    findings = [path for path in sorted((folder / "findings").iterdir())
                if path.name not in before and not path.name.startswith("slow-unit")]
    failed = [log for log, process in zip(logs, processes, strict=True)
              if process.returncode not in ENDED and not findings]
    return total(logs), time.monotonic() - started, logs, findings + failed


def wait(processes, logs, started, seconds):
    """Show progress until all processes have ended, or one with a finding."""
    terminal, shown = sys.stdout.isatty(), started
    while (any(process.poll() is None for process in processes)
           and not any(process.poll() for process in processes)
           and time.monotonic() < started + seconds + LATE):
        time.sleep(1)
        if terminal or time.monotonic() - shown >= PROGRESS:
            shown = time.monotonic()
            text = progress(logs, started, seconds)
            print(f"\r{text:<100}" if terminal else text, end="" if terminal else "\n", flush=True)
    print(end="\n" if terminal else "")


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True,
                          text=True)
    return done.stdout.strip() or "unknown"


def record(target, revision, found, seconds, findings):
    """Add a run to campaign.json, by target and commit. seconds: the sum of all its processes."""
    campaign = json.loads(CAMPAIGN.read_text()) if CAMPAIGN.exists() else {}
    entry = campaign.setdefault(target.name, {}).setdefault(
        revision, {"seconds": 0, "executions": 0, "findings": 0})
    entry["seconds"] += round(seconds)
    entry["executions"] += found.executions
    entry["findings"] += len(findings)
    CAMPAIGN.write_text(json.dumps(campaign, indent=1) + "\n")
    print(f"recorded: {CAMPAIGN.relative_to(ROOT)}")


def reproduce(target, folder, path):
    """Run one input as the fuzzer does."""
    return subprocess.run(command(target, folder, path), env=environment(target)).returncode


# -- main ---------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=TARGETS, default="file", help="default: file")
    parser.add_argument("--minutes", type=float, default=5, help="default: 5")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default: 1")
    parser.add_argument("--record", action="store_true", help="add to tests/hostile/fuzz/campaign.json")
    parser.add_argument("--input", type=Path, help="run this input only")
    parser.add_argument("--keep", action="store_true", help="write tests/hostile/fuzz/corpus")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    target = describe(arguments.target)
    try:
        set_up(target)
    except SetupError as error:
        sys.exit(f"fuzz: {error}")
    folder = BUILD / arguments.target
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    if arguments.input:
        sys.exit(reproduce(target, folder, arguments.input))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    revision = commit()
    fill(target, folder / "corpus")
    if arguments.keep:
        keep(target, folder)
        return
    found, seconds, logs, findings = fuzz(target, folder, round(60 * arguments.minutes),
                                          arguments.jobs)
    if arguments.record:
        record(target, revision, found, seconds * arguments.jobs, findings)
    print(f"{arguments.target}: {found.executions:,} executions in {seconds / 60:.1f} min, coverage "
          f"{found.coverage:,}, corpus {found.corpus:,}, {len(findings)} findings")
    for path in findings:
        print(f"finding: {path.relative_to(ROOT)}\n  {'; '.join(map(reason, logs))}\n  run it again: "
              f".venv/bin/python tools/fuzz.py --target {arguments.target} "
              f"--input {path.relative_to(ROOT)}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
