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


def slowest_kernels(file, count=10):
    """Trains the benchmark's ResNet-50 and profiles its first launches, which are about one step. Writes ncu's metrics of the slowest
    launches to a CSV file, one launch per line."""
    def run(commands):
        settings = [word for text in ("cluster.device=cuda", "data.cache=memory", "train.cuda_graphs=false", "train.max_steps=2")
                    for word in ("--set", text)]
        finished = commands.call(tool("ncu"), "--set", "basic", "--clock-control", "none", "--csv", "--page", "raw",
                                 "--launch-count", 700, "--target-processes", "all", commands.programs / "trainctl", "run",
                                 BENCH / "configs/resnet50.yaml", "--ranks", 1, "--progress", "none", "--run-dir",
                                 commands.work / f"profiled-{os.getpid()}", *settings, may_fail=True)
        lines = [line for line in finished.out.splitlines() if line.startswith('"')]
        rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
        timed = [row for row in rows if row.get("gpu__time_duration.sum", "").replace(",", "").replace(".", "").isdigit()]
        if not timed:
            raise Failed(f"no kernel was profiled, exit code {finished.code}", finished.out + finished.err)
        timed.sort(key=lambda row: -float(row["gpu__time_duration.sum"].replace(",", "")))
        with open(file, "w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, timed[0].keys())
            writer.writeheader()
            writer.writerows(timed[:count])
        return f"{count} of {len(timed)} launches in {file.name}; slowest: {timed[0].get('Kernel Name', '')[:60]}", None
    return run
