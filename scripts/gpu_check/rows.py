"""Defines the rows of the table, and runs them one after the other within one deadline."""
import contextlib
import signal
import time
from typing import Callable, NamedTuple

from .commands import Failed, Skipped


class Row(NamedTuple):
    name: str
    limit: float  # seconds
    run: Callable  # is called with the Commands; returns a text, or a text and figures
    decides: bool = True  # False: the row is a figure, and the exit code does not depend on it
    sources: tuple = ()  # the files that the result depends on, as patterns of paths in the repository (sources.py)


class Stopped(BaseException):
    """A signal has asked to stop."""


@contextlib.contextmanager
def stopping():
    """Makes the first SIGINT or SIGTERM raise Stopped. Later signals are ignored."""

    def stop(number, _):
        for word in (signal.SIGINT, signal.SIGTERM):
            signal.signal(word, signal.SIG_IGN)
        raise Stopped(signal.Signals(number).name)

    before = {word: signal.signal(word, stop) for word in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for word, handler in before.items():
            signal.signal(word, handler)


def run_row(row, commands, report):
    earlier = commands.earlier
    start = time.monotonic()
    verdict, text, log, figures = "FAILED" if row.decides else "no figure", "", "", None
    try:
        text = row.run(commands)
        if isinstance(text, tuple):
            text, figures = text
        verdict = "good" if row.decides else "figure"
        if commands.fallbacks:
            verdict, log = "FAILED", "\n".join(commands.fallbacks)
            text = f"{len(commands.fallbacks)} fallbacks; {text}"
        elif earlier:
            earlier.add(row, text, figures)
    except Skipped as reason:
        verdict, text = "skipped", str(reason)
    except Stopped as stop:
        text = f"stopped by {stop}"
        raise
    except Exception as problem:
        text = str(problem) if isinstance(problem, Failed) else f"{type(problem).__name__}: {problem}"
        log = getattr(problem, "log", "")
    finally:
        if earlier and verdict == "FAILED":
            earlier.remove(row)
        report.add(row, verdict, time.monotonic() - start, text, log, figures)
        if earlier:
            earlier.write()


def without_unchanged(rows, earlier, report):
    """Reports the rows whose sources have not changed since an earlier run on the same model of GPU, and returns the other rows."""
    left = []
    for row in rows:
        if found := earlier.unchanged(row):
            report.add(row, "unchanged", 0, earlier.why_skipped(found), figures=found.get("figures"))
        else:
            left.append(row)
    return left


def run_rows(rows, commands, report, deadline, as_time_permits=(), after_each=lambda: None):
    """Runs every row within its own limit and the common deadline, and reports the rows for which no time was left. Then runs
    each row of `as_time_permits` if its whole limit fits before the deadline, and names the others."""
    why = "no time was left"
    rows = list(rows)
    with stopping():
        try:
            while rows and deadline - time.monotonic() > 1:
                row = rows.pop(0)
                commands.begin_row(min(time.monotonic() + row.limit, deadline))
                run_row(row, commands, report)
                after_each()
            without_time = []
            for row in as_time_permits:
                if time.monotonic() + row.limit > deadline:
                    without_time.append(row.name)
                    continue
                commands.begin_row(time.monotonic() + row.limit)
                run_row(row, commands, report)
                after_each()
            if without_time:
                print("no time was left for these further rows: " + ", ".join(without_time))
        except Stopped as stop:
            why = f"stopped by {stop}"
    for row in rows:
        report.add(row, "not run", 0, why)
