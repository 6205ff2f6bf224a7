"""Times patterns of ops that cuDNN may fuse into one kernel, and compares these times with our kernels."""
import contextlib
import json

from .commands import Failed

IMAGES = 256


def rows_of(text):
    """Returns the JSON objects with the times of a pattern. Each object is a line of the text."""
    rows = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict) and "pattern" in value:
                rows.append(value)
    return rows


def summary(rows):
    """Returns a text for each pattern: how many shapes are faster fused, how much time they save, and why engines refuse other shapes."""
    texts = []
    for pattern in dict.fromkeys(row["pattern"] for row in rows):
        here = [row for row in rows if row["pattern"] == pattern]
        gains = [row["ours_ms"] - row["pattern_ms"] for row in here if row["pattern_ms"] is not None]
        texts.append(f"{pattern}: {sum(gain > 0 for gain in gains)} of {len(here)} faster fused, "
                     f"{sum(gain for gain in gains if gain > 0):.2f} ms of {sum(row['ours_ms'] for row in here):.2f}")
        texts += [f"{pattern}, {row['shape']}: {row['why']}" for row in here if row["pattern_ms"] is None]
    return "; ".join(texts)


def fused_against_unfused(dtype):
    """Uses the results from before the end of the row's time, because engines that are compiled at run time may take long."""
    def run(commands):
        unfinished = ""
        try:
            out = commands.call(commands.programs / "test-cuda", "time-patterns", IMAGES, dtype).out
        except Failed as failure:
            if not failure.timed_out or not rows_of(failure.log):
                raise
            out, unfinished = failure.log, "; no time was left for more"
        rows = rows_of(out)
        if not rows:
            raise Failed("no pattern was timed", out)
        if others := {row.get("dtype") for row in rows} - {dtype}:
            raise Failed(f"patterns were timed in {others.pop() or 'an unknown type'} instead of {dtype}", out)
        return summary(rows) + unfinished, {"patterns": rows}
    return run
