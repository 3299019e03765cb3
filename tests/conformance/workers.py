"""Start worker processes: if ExecuTorch's runtime ends one, another continues with the next job."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait

from conformance.cases import EXECUTORCH, TWIN, Bench, result, run_model, run_operator

SECONDS = 240.0  # timeout of one job


@dataclass
class Job:
    """An operator's samples, or a model of the zoo, or the result of `run` (name, group, bench)."""

    name: str
    group: str
    operator: object = None
    counts: dict | None = None
    run: Callable | None = None
    alone: bool = False
    skip: list = field(default_factory=list)


class _Log:
    """Capture stdout and stderr. A call returns the last line since the call before."""

    def __init__(self):
        self.file = os.memfd_create("log")
        os.dup2(self.file, 1)
        os.dup2(self.file, 2)

    def __call__(self):
        size = os.lseek(self.file, 0, os.SEEK_CUR)
        text = os.pread(self.file, min(size, 4000), max(0, size - 4000)).decode(errors="replace")
        os.ftruncate(self.file, 0)
        os.lseek(self.file, 0, os.SEEK_SET)
        lines = [line for line in text.splitlines() if line.startswith("[") and "cpuinfo" not in line]
        return lines[0] if lines else ""


def _work(connection):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    log = _Log()
    bench = Bench(lambda text: connection.send(("stage", text)), log)
    while True:
        job = connection.recv()
        if job is None:
            return
        try:
            results = ([(job.run or run_model)(job.name, job.group, bench)] if job.operator is None else
                       run_operator(job.operator, job.counts, bench, job.alone, job.skip))
            for entry in results:
                connection.send(("result", entry))
        except Exception as error:
            connection.send(("result", result(job.name, job.group, "not exported",
                                              f"{type(error).__name__}: {error}"[:300])))
        connection.send(("done", None))


class _Worker:
    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.job, self.stage, self.sample, self.started = None, "", "", 0.0

    def start(self, job):
        self.job, self.stage, self.sample, self.started = job, "", "", time.monotonic()
        self.connection.send(job)

    def end(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_jobs(jobs, count, on_result, on_done, seconds=SECONDS):
    """Run the jobs on `count` processes. Call on_result(entry) for each result and on_done() for each
    job."""
    waiting = list(reversed(jobs))
    workers = [_Worker() for _ in range(min(count, len(jobs)))]
    try:
        while True:
            for worker in workers:
                if worker.job is None and waiting:
                    worker.start(waiting.pop())
            busy = [worker for worker in workers if worker.job is not None]
            if not busy:
                return
            wait([worker.connection for worker in busy], timeout=5.0)
            for worker in busy:
                if not _take(worker, on_result, on_done, seconds):
                    again = _died(worker, on_result)
                    waiting += again
                    if not again:
                        on_done()
                    worker.end()
                    workers[workers.index(worker)] = _Worker()
    finally:
        for worker in workers:
            worker.end()


def _take(worker, on_result, on_done, seconds):
    """Receive what a worker sent. Return False if it died or exceeds the time limit."""
    try:
        while worker.connection.poll():
            kind, content = worker.connection.recv()
            if kind == "stage":
                if content in (EXECUTORCH, TWIN, ""):
                    worker.stage = content
                else:
                    worker.sample = content
            elif kind == "result":
                worker.job.skip.append(content["name"])
                on_result(content)
            else:
                worker.job = None
                on_done()
                return True
    except (EOFError, ConnectionResetError):
        return False
    return time.monotonic() - worker.started < seconds


def _died(worker, on_result):
    """Report the job of a dead worker as a failure. Return the rest of the job, in a list."""
    job = worker.job
    how = "ended the process" if worker.stage else "ended the process or took too long"
    if job.operator is not None and not (job.alone and worker.sample):
        job.alone = True
        return [job]
    name = worker.sample if job.operator is not None else job.name
    status = {EXECUTORCH: "aborted", TWIN: "crashed"}.get(worker.stage, "not exported")
    on_result(result(name, job.group, status, f"{worker.stage or 'export'} {how}"))
    job.skip.append(name)
    return [job] if job.operator is not None else []
