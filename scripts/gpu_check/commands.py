"""Runs the commands of a row within the row's time, and writes their output to a log."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
from typing import NamedTuple


class Failed(Exception):
    """Reports that a row failed: the reason, the output that shows the failure, and whether the row's time had ended."""

    def __init__(self, why, log="", timed_out=False):
        super().__init__(why)
        self.log, self.timed_out = log, timed_out


class Skipped(Exception):
    """Reports that a row cannot run on this machine, with the reason."""


class Finished(NamedTuple):
    out: str
    err: str
    code: int


def end(process):
    """Ends a process and its group, first by SIGTERM: mpirun then ends its ranks, which have their own groups."""
    for word, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, word)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def last_json(text):
    """Returns the JSON object in the last line that has one, or None if no line has a JSON object."""
    for line in reversed(text.splitlines()):
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                return value
    return None


# Messages that trainctl prints when it falls back to a slower method. The row of such a command fails. A kernel that is left
# out counts only if CUDA gives the reason, because the kernel may then be trainctl's own. Otherwise cuDNN has offered a kernel
# that it cannot run.
FALLBACKS = ("without a CUDA graph", "is left out: cuda", "is not timed:")


class Commands:
    """Several threads may call commands of a row at the same time."""

    def __init__(self, programs, work, log):
        """`programs`: the folder of trainctl; `work`: an empty folder; `log`: a file open for writing."""
        self.programs, self.work, self.log = pathlib.Path(programs), pathlib.Path(work), log
        self.until = 0.0  # the end of the row's time on the monotonic clock
        self.count = 0
        self.lock = threading.Lock()  # of count, running and log
        self.running = set()  # processes
        self.earlier = None  # the results of earlier runs (earlier.py)
        self.fallbacks = []  # lines of the row's output that contain one of FALLBACKS

    def begin_row(self, until):
        self.until, self.fallbacks = until, []

    def left(self):
        return self.until - time.monotonic()

    def end_row(self):
        """Ends the row's time and all commands that other threads run."""
        self.until = 0.0
        with self.lock:
            running = list(self.running)
        for process in running:
            end(process)

    def call(self, *words, may_fail=False, limit=float("inf"), environment=None):
        """Runs a command. Ends the command and its child processes after the row's time or `limit` seconds."""
        seconds = min(limit, self.left())
        if seconds <= 0:
            raise Failed("no time was left")
        with self.lock:
            self.count += 1
            number = self.count
        line = "$ " + " ".join(map(str, words))
        files = [self.work / f"{number}.{name}" for name in ("out", "err")]  # no pipes: orphaned processes would keep them open
        start = time.monotonic()
        in_time = True
        with open(files[0], "wb") as out, open(files[1], "wb") as err:
            process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.work,
                                       start_new_session=True, env={**os.environ, **(environment or {})})
            with self.lock:
                self.running.add(process)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                in_time = False
            finally:
                if process.returncode is None:
                    end(process)
                texts = [file.read_text("utf-8", "replace") for file in files]
                with self.lock:
                    self.running.discard(process)
                    self.log.write(f"{line}\n{''.join(texts)}[exit code {process.returncode}, {time.monotonic() - start:.1f} s]\n\n")
                    self.log.flush()
        if not in_time:
            raise Failed(f"took longer than {seconds:.0f} s", f"{line}\n{''.join(texts)}", True)
        if process.returncode != 0 and not may_fail:
            raise Failed(f"exit code {process.returncode}", f"{line}\n{''.join(texts)}")
        return Finished(*texts, process.returncode)

    def document(self, *words, **more):
        """Runs trainctl, and returns the last JSON object on its standard output."""
        finished = self.trainctl(*words, **more)
        value = last_json(finished.out)
        if value is None:
            raise Failed(f"printed no JSON, exit code {finished.code}", finished.out + finished.err)
        return value

    def trainctl(self, *words, **more):
        """Runs trainctl with -v, and records its messages about fallbacks."""
        finished = self.call(self.programs / "trainctl", *words, "-v", **more)
        self.fallbacks += [line for line in finished.err.splitlines() if any(text in line for text in FALLBACKS)]
        return finished

    def train(self, config, device, *settings, ranks=1, directory=None, resume=None, environment=None):
        """Trains; returns the events of its metrics.jsonl."""
        directory = directory or self.work / f"run-{self.count}"
        words = [word for setting in settings for word in ("--set", setting)] + (["--resume", resume] if resume else [])
        self.trainctl("run", config, "--device", device, "--ranks", ranks, "--run-dir", directory, "--progress", "none", *words,
                      environment=environment)
        return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
