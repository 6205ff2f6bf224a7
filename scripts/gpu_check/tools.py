"""Runs NVIDIA's tools on our kernels: compute-sanitizer for memory errors and races, Nsight Compute for the slowest."""
import csv
import io
import os
import shutil

from .commands import Failed, Skipped
from .places import BENCH

OURS = "kns=trainctl"  # selects kernels with trainctl's namespace in their mangled name


def tool(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if found is None:
        raise Skipped(f"there is no {name} here")
    return found


# The tests for each tool. racecheck aborts in kernels of cuBLASLt and cuDNN even with the filter, so it runs only tests of our
# kernels with shared memory.
TESTS = {"memcheck": "~*conv2d*", "racecheck": "*normalisation and*,batch norm*,*pooling*,*softmax and*,*squares*,*auc*,*adafactor*,*lamb*"}


def sanitizer(kind):
    """Runs kernel tests under a tool of compute-sanitizer. The long convolution tests are left out: their kernels are mostly cuDNN's."""
    def run(commands):
        program = tool("compute-sanitizer")
        words = commands.call(program, "--help", may_fail=True).out
        filter_option = "--kernel-name" if "--kernel-name " in words else "--filter"  # the option's older name
        finished = commands.call(program, "--tool", kind, "--error-exitcode", 9, filter_option, OURS, commands.programs / "test-cuda",
                                 TESTS[kind], may_fail=True)
        summary = next((line.strip("= ") for line in reversed((finished.out + finished.err).splitlines()) if "SUMMARY" in line), "")
        if finished.code != 0 or not summary:
            raise Failed(summary or f"exit code {finished.code}", finished.out + finished.err)
        return summary
    return run


# The kernels that ncu profiles: those of ours that are farthest from the memory's bandwidth (docs/gpu.md).
PROFILED = ("convolve_few_channels", "sum_few_channels", "normalise_and_pool", "gradient_by_input")
DURATION, BANDWIDTH = "gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed"


def number(text):
    """Returns the number in a field of ncu, or None."""
    try:
        return float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None


def four_kernels(file):
    """Trains the benchmark's ResNet-50 for one step and profiles the launches of four kernels. Writes ncu's metrics of the slowest launch
    of each kernel to a CSV file, one launch per line."""
    def run(commands):
        settings = [word for text in ("cluster.device=cuda", "data.cache=memory", "train.cuda_graphs=false", "train.max_steps=1")
                    for word in ("--set", text)]
        finished = commands.call(tool("ncu"), "--set", "basic", "--clock-control", "none", "--csv", "--page", "raw",
                                 "--kernel-name", "regex:" + "|".join(PROFILED), "--launch-count", 300, "--target-processes", "all",
                                 commands.programs / "trainctl", "run", BENCH / "configs/resnet50.yaml", "--ranks", 1, "--progress",
                                 "none", "--run-dir", commands.work / f"profiled-{os.getpid()}", *settings, may_fail=True)
        lines = [line for line in finished.out.splitlines() if line.startswith('"')]
        slowest = {}
        for row in csv.DictReader(io.StringIO("\n".join(lines))):
            name = next((name for name in PROFILED if name in row.get("Kernel Name", "")), None)
            seconds = number(row.get(DURATION))
            if name and seconds is not None and seconds > (number(slowest[name][DURATION]) if name in slowest else -1):
                slowest[name] = row
        if not slowest:
            raise Failed(f"no kernel was profiled, exit code {finished.code}", finished.out + finished.err)
        rows = list(slowest.values())
        with open(file, "w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        texts = [f"{name} {number(row[BANDWIDTH]):.0f} % of the bandwidth" if number(row.get(BANDWIDTH)) is not None else name
                 for name, row in slowest.items()]
        absent = [name for name in PROFILED if name not in slowest]
        return f"{', '.join(texts)}; in {file.name}" + (f"; no launch of {', '.join(absent)}" if absent else ""), None
    return run
