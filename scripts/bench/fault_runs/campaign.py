#!/usr/bin/env python3
"""Disturbs real runs at seeded moments, and compares their final weights with those of undisturbed runs.

usage: scripts/bench/faults --runs N [--seed S] [--trainctl PROGRAM] [--jobs N] [--only I] [--limit SECONDS]
                            [--torchrun PYTHON]

Each run trains a small network under data, shard, pipeline or reproducible on 1 to 4 ranks. It is killed, suspended, stopped or
resized, its disk is full for a while, its newest checkpoint is damaged, or the link of a host is cut for a while, which needs
root. It is started again until it is complete. Prints a table by fault, and the runs that failed with their seeds; the exit
code is 1 if there are any. --jobs N disturbs N runs at a time, and --only I repeats run I of a seed.
--torchrun PYTHON also measures the time from the kill of a rank to the first step after the restart, beside torchrun's elastic
restart with the PyTorch of this Python.
"""
import argparse
import concurrent.futures
import os
import shutil
import statistics
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from configs import CONFIG, STRATEGIES  # noqa: E402
from disturbed_run import FAULTS, DisturbedRun, why_no_hosts  # noqa: E402
from process import Process, events  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def undisturbed_hashes(trainctl, config, folder, strategy, ranks, limit):
    """The hash of the weights of an undisturbed run."""
    directory = os.path.join(folder, f"{strategy.name}-{ranks}")
    process = Process([trainctl, "run", config, "--run-dir", directory, "--ranks", str(ranks), "--quiet", "--set",
                       f"strategy={strategy.value}", "--set", "cluster.timeout=60 s"], folder, directory + ".log")
    try:
        code = process.command.wait(timeout=limit)
    finally:
        process.end()
    if code != 0:
        with open(directory + ".log", encoding="utf-8", errors="replace") as file:
            sys.exit(f"an undisturbed run ended with exit code {code}:\n{file.read()}")
    return events(directory, "end")[-1]["weights_sha256"]


class References:
    """The hashes of undisturbed runs, each of which runs when it is first needed."""

    def __init__(self, trainctl, config, folder, limit):
        self.arguments, self.limit, self.hashes, self.lock = (trainctl, config, folder), limit, {}, threading.Lock()

    def of(self, strategy, ranks):
        """The hashes that a run may end with: one hash for all numbers of ranks, if the run may be resized."""
        ranks = strategy.ranks[0] if strategy.resizes else ranks
        with self.lock:
            if (strategy, ranks) not in self.hashes:
                self.hashes[strategy, ranks] = undisturbed_hashes(*self.arguments, strategy, ranks, self.limit)
            return {self.hashes[strategy, ranks]}


def median(values, text):
    return text % statistics.median(values) if values else "-"


def table(results):
    rows = [("fault", "runs", "equal", "lost steps: median", "worst", "first new step after")]
    for fault in FAULTS:
        of = [each for each in results if each.fault == fault]
        if not of:
            continue
        lost = [steps for each in of for steps in each.lost]
        seconds = [time for each in of for time in each.recovery]
        rows.append((fault, str(len(of)), str(sum(not each.problem for each in of)), median(lost, "%g"),
                     str(max(lost)) if lost else "-", median(seconds, "%.2f s")))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))))


def campaign(options, folder):
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    references = References(options.trainctl, config, folder, options.limit)
    why = why_no_hosts()
    if why:
        print("skipped the runs whose link is cut: " + why.removeprefix("skipped: "))
    numbers = range(options.runs) if options.only is None else [options.only]
    numbers = [number for number in numbers if not why or FAULTS[number % len(FAULTS)] != "cut link"]

    def disturbed(number):
        place = os.path.join(folder, f"run-{number}")
        os.mkdir(place)
        run = DisturbedRun(options.trainctl, config, place, options.seed, number, options.limit)
        result = run.run(references.of(run.strategy, run.result.ranks))
        if sys.stderr.isatty() or result.problem or options.only is not None:
            print(f"run {number}: {result.fault}, {result.strategy} on {result.ranks} ranks: "
                  f"{result.problem or 'equal'}", file=sys.stderr)
        if not result.problem:
            shutil.rmtree(place)
        return result

    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    results = []
    try:
        results.extend(pool.map(disturbed, numbers))
    except KeyboardInterrupt:
        print("interrupted: ends the runs in progress", file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--limit", type=float, default=180, help="seconds that a run may take")
    parser.add_argument("--trainctl", default=os.path.join(ROOT, "build/release/trainctl"))
    parser.add_argument("--torchrun", metavar="PYTHON")
    options = parser.parse_args()
    options.trainctl = os.path.abspath(options.trainctl)
    return options


def main():
    options = parse()
    folder = tempfile.mkdtemp(prefix="faults-")
    failed = []
    if options.runs > 0 or options.only is not None:
        results = campaign(options, folder)
        table(results)
        failed = [each for each in results if each.problem]
        for each in failed:
            print(f"seed {options.seed}, run {each.number}: {each.fault}, {each.strategy} on {each.ranks} ranks: {each.problem}; "
                  f"see {folder}/run-{each.number}")
    if options.torchrun:
        from recovery import compare  # noqa: E402, PLC0415
        compare(options.trainctl, options.torchrun, folder)
    if not failed:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
