"""Compares the losses and the first gradient norm of ResNet-50 on the same weights and batches: bfloat16 with TF32, TF32 with PyTorch."""
import json
import random
import struct

from .commands import Failed, last_json
from .figures import torch_python
from .places import BENCH

NETWORK, SHAPE, CLASSES, BATCH, STEPS, BATCHES = "resnet50", (224, 224, 3), 1000, 64, 20, 4


def write_npy(file, dtype, shape, values):
    """Writes an array to a file of NumPy's format, version 1.0."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def make_samples(folder, count, shape, classes):
    """Writes random images (x.npy, bytes) and class numbers (y.npy) to a folder."""
    dice = random.Random(1)
    folder.mkdir(parents=True)
    size = shape[0] * shape[1] * shape[2]
    write_npy(folder / "x.npy", "|u1", (count, *shape), b"".join(dice.randbytes(size) for _ in range(count)))
    write_npy(folder / "y.npy", "<i4", (count,), struct.pack(f"<{count}i", *(dice.randrange(classes) for _ in range(count))))


def steps_of(events):
    steps = [event for event in events if event["event"] == "step"]
    return [step["loss"] for step in steps], [step["gradient_norm"] for step in steps]


def apart(ours, theirs):
    """Returns the relative differences of the first loss and of the first gradient norm, and the mean relative difference of all losses."""
    (losses, norms), (other_losses, other_norms) = ours, theirs
    if not len(losses) == len(other_losses) == STEPS:
        raise Failed(f"{len(losses)} and {len(other_losses)} steps were logged")
    relative = [abs(a - b) / abs(b) for a, b in zip(losses, other_losses)]
    return relative[0], abs(norms[0] - other_norms[0]) / other_norms[0], sum(relative) / STEPS


def judged(name, differences, limits):
    text = name + ": " + ", ".join(f"{what} {value:.1e} (limit {limit:g})" for what, value, limit
                                   in zip(("first loss", "first gradient norm", "20 losses"), differences, limits))
    return text, all(value <= limit for value, limit in zip(differences, limits))


def numbers(commands, device="cuda"):
    """Trains one step, then STEPS steps from the resulting weights in each precision and in PyTorch, and compares their losses."""
    samples = commands.work / "samples"
    make_samples(samples, BATCH * BATCHES, SHAPE, CLASSES)
    config = BENCH / f"configs/{NETWORK}.yaml"
    data = f"data={{dataset: npy, path: {samples}, classes: {CLASSES}, shuffle: false, transform: [{{rescale: 1/255}}]}}"
    settings = [data, "train.optimizer={name: sgd, learning_rate: 0.01}", f"train.batch_size_per_rank={BATCH}",
                "train.epochs=100", "train.kernel_timing=false", "log.every=1 steps", "checkpoint.monitor=loss"]
    full = [*settings, "train.precision=float32", "train.tf32=true"]
    first = commands.work / "at-size"
    commands.train(config, device, *full, "train.max_steps=1", directory=first)
    start = first / "checkpoints/last"
    tf32 = steps_of(commands.train(config, device, *full, f"train.max_steps={1 + STEPS}", resume=start))
    half = steps_of(commands.train(config, device, *settings, "train.precision=bfloat16", f"train.max_steps={1 + STEPS}", resume=start))
    found = [judged("bfloat16 to TF32", apart(half, tf32), (2e-2, 1e-1, 5e-2))]
    python = torch_python(commands)
    figures = {"tf32": tf32, "bfloat16": half}
    if python is not None:
        layers = commands.work / "layers.json"
        layers.write_text(commands.trainctl("check", config, "--json", *(word for text in full for word in ("--set", text))).out)
        finished = commands.call(python, BENCH / "peer_losses.py", NETWORK, layers, start.resolve() / "weights.safetensors", samples,
                                 BATCH, STEPS, 1, 0.01)
        theirs = last_json(finished.out)
        figures["pytorch"] = (theirs["losses"], theirs["gradient_norms"])
        found.append(judged("TF32 to PyTorch's", apart(tf32, figures["pytorch"]), (2e-3, 1e-2, 2e-2)))
    text = "; ".join(text for text, _ in found) + ("" if python else "; no python3 here has PyTorch with CUDA")
    if not all(good for _, good in found):
        raise Failed(text, json.dumps(figures))
    return text, figures
