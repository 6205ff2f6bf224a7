"""Measures GPT-2 small and its compiled peer in PyTorch: a training step, the table of its ops, and causal attention alone."""
import array
import json
import random
import sys

from . import figures
from .commands import Failed, Skipped, last_json
from .figures import Target
from .places import BENCH
from .rows import Row

NETWORK = "gpt2"  # the config, whose network has these sizes
BATCH, LENGTH, HEADS, SIZE, TOKENS = 8, 1024, 12, 64, 50257
SEQUENCES = 4 * BATCH
SECONDS = 8
ATTENTION_SECONDS = 4
CONFIG = BENCH / f"configs/{NETWORK}.yaml"
PEER = ("scripts/bench/peer_gpt2.py", "scripts/bench/gpt2_network.py", "scripts/bench/peer_attention.py", "scripts/gpu_check/gpt2.py")


def write_tokens(file, count=SEQUENCES * LENGTH + 1):
    """Writes random tokens as the file of numbers that the config names, and returns its path."""
    dice = random.Random(1)
    tokens = array.array("I", (dice.randrange(TOKENS) for _ in range(count)))
    if sys.byteorder == "big":
        tokens.byteswap()
    file.write_bytes(tokens.tobytes())
    return file


def settings(commands):
    return ["cluster.device=cuda", f"train.batch_size={BATCH}", "data.cache=memory",
            f"data.path={write_tokens(commands.work / 'tokens.bin')}"]


def words_of(some):
    return [word for setting in some for word in ("--set", setting)]


def step(commands):
    """Measures a training step of trainctl."""
    found = commands.document("bench", "step", CONFIG, "--ranks", 1, "--seconds", SECONDS, "--json", *words_of(settings(commands)))
    return (f"{found['samples_per_second'] * LENGTH:.0f} tokens/s, {found['memory_bytes'] / 1e6:.0f} MB, GPU idle {figures.idle(found):.1%}",
            found)


def ops(file):
    """Times each op of a step. `file`: the file for the table of ops."""
    def run(commands):
        found = commands.document("bench", "ops", CONFIG, "--ranks", 1, "--seconds", SECONDS, "--json", *words_of(settings(commands)))
        file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        slowest = sorted(found["ops"], key=lambda op: -op["seconds"])[:8]
        texts = [f"{op['layer']} {op['op']} {op['seconds'] * 1e3:.2f} ms" for op in slowest]
        return f"{len(found['ops'])} ops in {file.name}, step {found['step_seconds'] * 1e3:.1f} ms; slowest: {', '.join(texts)}", None
    return run


def in_pytorch(commands, script, *words):
    """Returns the figures that a script of PyTorch prints."""
    python = figures.torch_python(commands)
    if python is None:
        raise Skipped("no python3 here has PyTorch with CUDA")
    finished = commands.call(python, BENCH / script, *words)
    found = last_json(finished.out)
    if found is None:
        raise Failed("printed no JSON", finished.out + finished.err)
    return found


def compiled(commands):
    """Measures a training step of the compiled network in PyTorch."""
    found = in_pytorch(commands, "peer_gpt2.py", BATCH, LENGTH, "compiled", SECONDS)
    return (f"{found['samples_per_second'] * LENGTH:.0f} tokens/s, {found['reserved_bytes'] / 1e6:.0f} MB reserved, PyTorch "
            f"{found['version']} with cuDNN {found['cudnn']}"), found


def attention(commands):
    """Times the causal attention of GPT-2 in PyTorch, by cuDNN's graph and by PyTorch's own kernel."""
    found = in_pytorch(commands, "peer_attention.py", BATCH, HEADS, LENGTH, SIZE, ATTENTION_SECONDS)
    texts = [f"{name}: {times['forward_ms']:.3f} ms forward, {times['backward_ms']:.3f} ms backward" if "why" not in times
             else f"{name}: {times['why']}" for name, times in found["kernels"].items()]
    return f"{'; '.join(texts)}; PyTorch {found['version']} with cuDNN {found['cudnn']}", found


def rows(sources):
    """The rows of a run without --second, which take 225 seconds together. `sources`: the sources of a measured step."""
    own = (*sources, f"scripts/bench/configs/{NETWORK}.yaml", "configs/models/gpt2.yaml", "scripts/gpu_check/gpt2.py")
    return [Row("gpt2", 100, step, False, own), Row("gpt2 compiled", 125, compiled, False, PEER)]


def further(ops_file, sources):
    """The rows that run if there is time. `ops_file`: the file for the table of ops."""
    return [Row("gpt2 ops", 60, ops(ops_file), False, rows(sources)[0].sources), Row("gpt2 attention", 60, attention, False, PEER)]


TARGETS = [
    Target("gpt2, speed of torch.compile's", figures.speed("gpt2", "gpt2 compiled"), "{:.2f} x".format, None),
    Target("gpt2, memory of what torch.compile reserves",
           lambda found: found["gpt2"]["memory_bytes"] / found["gpt2 compiled"]["reserved_bytes"], "{:.2f} x".format, None, False),
]
