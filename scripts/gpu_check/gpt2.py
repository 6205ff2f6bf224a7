"""Measures GPT-2 and its compiled peer. Until trainctl has attention, measures the parts: cuDNN's attention, products, loss, embedding."""
import json
import random
import struct

from . import figures
from .at_size import write_npy
from .commands import Failed, Skipped, last_json
from .places import BENCH
from .rows import Row

CONFIG = BENCH / "configs/gpt2.yaml"
BATCH, LENGTH, WIDTH, HEADS, TOKENS = 8, 1024, 768, 12, 50257  # GPT-2 small
SEQUENCES = 4 * BATCH
ATTENTION_SECONDS = 4

# A chain of six products of different shapes. The first has the shape of the queries, keys and values together, the second joins it
# with the rest, and then the output of the attention, the two products of a block with gelu between them, and the logits.
LAYERS = [
    {"embedding": {"input_dim": TOKENS, "output_dim": WIDTH}},
    {"dense": {"units": 3 * WIDTH}},
    {"dense": {"units": WIDTH}},
    {"dense": {"units": WIDTH}},
    {"dense": {"units": 4 * WIDTH, "activation": "gelu"}},
    {"dense": {"units": WIDTH}},
    {"dense": {"units": TOKENS, "activation": "softmax"}},
]


def write_tokens(folder):
    """Writes random tokens, and a random next token for each (x.npy and y.npy)."""
    dice = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    count = SEQUENCES * LENGTH
    for name in ("x", "y"):
        values = struct.pack(f"<{count}i", *(dice.randrange(TOKENS) for _ in range(count)))
        write_npy(folder / f"{name}.npy", "<i4", (SEQUENCES, LENGTH), values)


def parts_config(folder):
    """Writes the config of the chain of products with its data, and returns its path. JSON is YAML, too."""
    write_tokens(folder)
    config = {
        "name": "gpt2-parts",
        "data": {"dataset": "npy", "x": str(folder / "x.npy"), "y": str(folder / "y.npy")},
        "model": {"layers": LAYERS},
        "train": {"batch_size_per_rank": BATCH, "epochs": 1, "loss": "sparse_categorical_crossentropy", "precision": "bfloat16",
                  "optimizer": {"name": "adamw", "learning_rate": 1e-4}},
    }
    file = folder / "gpt2-parts.yaml"
    file.write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    return file


def parts(ops_file):
    """Times each op of the chain. `ops_file`: the file for the table of ops."""
    def run(commands):
        config = parts_config(commands.work / "gpt2-parts")
        found = commands.document("bench", "ops", config, "--ranks", 1, "--seconds", 8, "--json", "--set", "cluster.device=cuda", "--set",
                                  "data.cache=memory")
        ops_file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        texts = [f"{op['layer']} {op['op']} {op['seconds'] * 1e3:.2f} ms" for op in sorted(found["ops"], key=lambda op: -op["seconds"])[:8]]
        return f"{len(found['ops'])} ops in {ops_file.name}, step {found['step_seconds'] * 1e3:.1f} ms; slowest: {', '.join(texts)}", None
    return run


def attention(commands):
    """Times the causal attention of GPT-2 in PyTorch, by cuDNN's graph and by PyTorch's own kernel."""
    python = figures.torch_python(commands)
    if python is None:
        raise Skipped("no python3 here has PyTorch with CUDA")
    finished = commands.call(python, BENCH / "peer_attention.py", BATCH, HEADS, LENGTH, WIDTH // HEADS, ATTENTION_SECONDS)
    found = last_json(finished.out)
    if found is None:
        raise Failed("printed no JSON", finished.out + finished.err)
    texts = [f"{name}: {times['forward_ms']:.3f} ms forward, {times['backward_ms']:.3f} ms backward" if "why" not in times
             else f"{name}: {times['why']}" for name, times in found["kernels"].items()]
    return f"{'; '.join(texts)}; PyTorch {found['version']} with cuDNN {found['cudnn']}", found


def rows(ops_file, sources):
    """The rows of GPT-2, which take 225 seconds together. `sources`: the sources of a measured step."""
    if CONFIG.exists():
        figures.NETWORKS.setdefault("gpt2", ("bfloat16", BATCH, 8))
        return [Row("gpt2", 100, figures.ours("gpt2"), False, (*sources, "scripts/bench/configs/gpt2.yaml")),
                Row("gpt2 compiled", 125, figures.pytorch("gpt2", "compiled"), False, ("scripts/bench/peer_cuda.py",))]
    own = "scripts/gpu_check/gpt2.py"
    return [Row("gpt2 attention", 60, attention, False, (own, "scripts/bench/peer_attention.py")),
            Row("gpt2 parts", 165, parts(ops_file), False, (*sources, own))]
