#!/usr/bin/env python3
"""A run's event files in TensorBoard's own reader, beside its metrics.jsonl: tensorboard_test.py TRAINCTL.

Exit code 77 (skipped) where the Python package tensorboard is not installed."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("the Python package tensorboard is not installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINCTL = sys.argv[1]


def run(folder, *arguments):
    command = [TRAINCTL, "run", ROOT / "configs/quickstart.yaml", "--ranks", "1", "--run-dir", "run", "--quiet", *arguments]
    subprocess.run(list(map(str, command)), cwd=folder, check=True)


def load(folder, part):
    reader = EventAccumulator(str(folder / "run/tensorboard" / part))
    reader.Reload()
    return reader


def check_curve(reader, tag, expected):
    found = {event.step: event.value for event in reader.Scalars(tag)}
    assert found.keys() == expected.keys(), (tag, sorted(found), sorted(expected))
    for step, value in expected.items():
        assert math.isclose(found[step], value, rel_tol=1e-6), (tag, step, found[step], value)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run(folder, "--set", "train.epochs=3")
    first = folder / "run/tensorboard/train"
    run(folder, "--set", "train.epochs=5")
    events = [json.loads(line) for line in open(folder / "run/metrics.jsonl")]
    steps = [event for event in events if event["event"] == "step"]
    epochs = [event for event in events if event["event"] == "epoch"]
    training, validation = load(folder, "train"), load(folder, "validation")
    for key in ("loss", "learning_rate", "gradient_norm", "samples_per_second", "data_wait_share",
                "communication_share"):
        check_curve(training, key, {event["step"]: event[key] for event in steps})
    for key in ("loss", "accuracy"):
        check_curve(training, f"epoch_{key}", {event["step"]: event["train"][key] for event in epochs})
        check_curve(validation, f"epoch_{key}", {event["step"]: event["validation"][key] for event in epochs})
    text = training.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert "name: quickstart" in text, text
    # The layers of configs/quickstart.yaml, one behind the other.
    layers = ["input", "conv2d", "conv2d_1", "max_pooling2d", "flatten", "dense", "dense_1"]
    nodes = {node.name: node for node in training.Graph().node}
    assert sorted(nodes) == sorted(layers), sorted(nodes)
    for before, layer in zip(layers, layers[1:]):
        assert list(nodes[layer].input) == [before], (layer, nodes[layer].input)
    shape = nodes["conv2d_1"].attr["_output_shapes"].list.shape[0]
    assert [dimension.size for dimension in shape.dim] == [-1, 8, 8, 32], shape
    assert nodes["conv2d_1"].attr["parameters"].i == 3 * 3 * 16 * 32 + 32
    assert len(list(first.iterdir())) == 2, "a resumed run writes a file of its own"
print("TensorBoard's reader finds every value of metrics.jsonl")
