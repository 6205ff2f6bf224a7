"""Measures trainctl and PyTorch on the same GPU, and lists the targets for the figures."""
import json
import shutil
import sys
from typing import Callable, NamedTuple, Optional

from .commands import Failed, Skipped, last_json
from .places import BENCH

# Precision, batch, seconds of measuring.
NETWORKS = {"resnet50": ("bfloat16", 256, 8), "resnet20": ("bfloat16", 128, 4), "mlp": ("float32", 64, 4)}


def ours(network, *settings):
    precision, batch, seconds = NETWORKS[network]
    # Data is cached in memory, so that the loader is not measured.
    settings = ["cluster.device=cuda", f"train.precision={precision}", f"train.batch_size_per_rank={batch}", "data.cache=memory",
                *settings]

    def run(commands):
        words = [word for setting in settings for word in ("--set", setting)]
        figures = commands.document("bench", "step", BENCH / f"configs/{network}.yaml", "--ranks", 1,
                                    "--seconds", seconds, "--json", *words)
        text = f"{figures['samples_per_second']:.0f} samples/s, {figures['memory_bytes'] / 1e6:.0f} MB"
        return f"{text}, GPU idle {idle(figures):.1%}, the host waited {figures['waited_seconds'] * 1e6:.0f} us a step", figures
    return run


def op_table(file):
    """Writes a file with every op of the benchmark's ResNet-50, its time, and its share of the GPU's peak rates."""
    def run(commands):
        table = commands.document("bench", "ops", BENCH / "configs/resnet50.yaml", "--ranks", 1, "--seconds", 8, "--json", "--set",
                                  "cluster.device=cuda", "--set", "data.cache=memory")
        file.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
        ops = sorted(table["ops"], key=lambda op: -op["seconds"])
        slowest = ", ".join(f"{op['layer']} {op['op']} {op['seconds'] * 1e3:.2f} ms" for op in ops[:3])
        return f"{len(ops)} ops in {file.name}, step {table['step_seconds'] * 1e3:.1f} ms; slowest: {slowest}", None
    return run


def idle(figures):
    return figures["gpu_idle_seconds"] / figures["mean_seconds"]


def torch_python(commands):
    """Returns the first interpreter on this machine whose PyTorch has CUDA, or None. Only the first call searches."""
    if not hasattr(commands, "torch_python"):
        commands.torch_python = None
        for python in dict.fromkeys(filter(None, [sys.executable, shutil.which("python3")])):
            finished = commands.call(python, "-c", "import torch; print(torch.cuda.is_available())", may_fail=True)
            if finished.code == 0 and finished.out.split()[-1:] == ["True"]:
                commands.torch_python = python
                break
    return commands.torch_python


def pytorch(network, mode):
    precision, batch, seconds = NETWORKS[network]

    def run(commands):
        python = torch_python(commands)
        if python is None:
            raise Skipped("no python3 here has PyTorch with CUDA")
        finished = commands.call(python, BENCH / "peer_cuda.py", network, precision, batch, mode, seconds)
        figures = last_json(finished.out)
        if figures is None:
            raise Failed("printed no JSON", finished.out + finished.err)
        return (f"{figures['samples_per_second']:.0f} samples/s, {figures['reserved_bytes'] / 1e6:.0f} MB reserved, PyTorch "
                f"{figures['version']} with cuDNN {figures['cudnn']}"), figures
    return run


class Target(NamedTuple):
    name: str
    value: Callable  # computes the value from the rows' figures
    text: Callable
    limit: Optional[float]  # None: no limit
    at_least: bool = True  # False: the value must be at most the limit

    def of(self, figures):
        """The value, or None if a figure that it needs was not measured."""
        try:
            return self.value(figures)
        except (KeyError, TypeError, ZeroDivisionError):
            return None

    def holds(self, value):
        return value >= self.limit if self.at_least else value <= self.limit

    def limit_text(self):
        return "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.text(self.limit)}"


def speed(one, other):
    return lambda figures: figures[one]["samples_per_second"] / figures[other]["samples_per_second"]


TARGETS = [
    Target("resnet50, speed of PyTorch's eager", speed("resnet50", "resnet50 eager"), "{:.2f} x".format, 1.2),
    Target("resnet50, speed of torch.compile's", speed("resnet50", "resnet50 compiled"), "{:.2f} x".format, 1.0),
    Target("resnet20, speed of PyTorch's eager", speed("resnet20", "resnet20 eager"), "{:.2f} x".format, 4.0),
    Target("mlp, speed of PyTorch's eager", speed("mlp", "mlp eager"), "{:.2f} x".format, 8.0),
    Target("resnet50, GPU idle in a step", lambda figures: idle(figures["resnet50"]), "{:.1%}".format, 0.02, False),
    Target("resnet50, memory of what PyTorch reserves",
           lambda figures: figures["resnet50"]["memory_bytes"] / figures["resnet50 eager"]["reserved_bytes"], "{:.2f} x".format,
           0.8, False),
    Target("resnet50, what train.deterministic costs",
           lambda figures: figures["resnet50"]["samples_per_second"] / figures["resnet50 deterministic"]["samples_per_second"] - 1,
           "{:.1%}".format, None),
]
