#!/usr/bin/env python3
"""Compares a run's event files, read by TensorBoard's own reader, with its metrics.jsonl: tensorboard_test.py TRAINCTL.

Exits with code 77 (skipped) if the Python package tensorboard is not installed."""
import csv
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("the Python package tensorboard is not installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINCTL = sys.argv[1]


def run(folder, *arguments):
    command = [TRAINCTL, "run", ROOT / "configs/quickstart.yaml", "--ranks", "1", "--run-dir", "run", "--quiet", *arguments]
    subprocess.run(list(map(str, command)), cwd=folder, check=True)


def load(folder, part):
    reader = EventAccumulator(str(folder / "run/tensorboard" / part), size_guidance={"histograms": 0, "tensors": 0})
    reader.Reload()
    return reader


def check_curve(reader, tag, expected):
    found = {event.step: event.value for event in reader.Scalars(tag)}
    assert found.keys() == expected.keys(), (tag, sorted(found), sorted(expected))
    for step, value in expected.items():
        assert math.isclose(found[step], value, rel_tol=1e-6), (tag, step, found[step], value)


def tensors_of(checkpoint):
    """The tensors of a checkpoint's weights.safetensors."""
    bytes_ = (checkpoint / "weights.safetensors").read_bytes()
    length = int.from_bytes(bytes_[:8], "little")
    for name, entry in json.loads(bytes_[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, np.frombuffer(bytes_[8 + length + begin : 8 + length + end], np.float32).astype(np.float64)


def check_histograms(reader, events, checkpoint):
    """Compares counts, sums and extremes with the checkpoint's weights and the gradient norms of metrics.jsonl."""
    epochs = [event["step"] for event in events if event["event"] == "epoch"]
    tensors = dict(tensors_of(checkpoint))
    assert len(tensors) == 8
    tags = {f"{kind}/{name}" for name in tensors for kind in ("weights", "gradients")}
    assert set(reader.Tags()["histograms"]) == tags, reader.Tags()["histograms"]
    for name, values in tensors.items():
        found = reader.Histograms(f"weights/{name}")
        assert [event.step for event in found] == epochs, name
        last = found[-1].histogram_value
        assert (last.num, last.min, last.max) == (values.size, values.min(), values.max()), name
        assert math.isclose(last.sum, values.sum(), rel_tol=1e-9, abs_tol=1e-9), name
        assert math.isclose(last.sum_squares, (values**2).sum(), rel_tol=1e-9), name
        counts, _ = np.histogram(values, [-np.inf, *last.bucket_limit])
        assert list(counts) == list(last.bucket), (name, counts, last)
    norms = {event["step"]: event["gradient_norm"] for event in events if event["event"] == "step"}
    for i, step in enumerate(epochs):
        squares = sum(reader.Histograms(f"gradients/{name}")[i].histogram_value.sum_squares for name in tensors)
        if step in norms:
            assert math.isclose(math.sqrt(squares), norms[step], rel_tol=1e-5), (step, squares, norms[step])


def check_plugin(folder, tags):
    """Checks the data of TensorBoard's histogram plugin: left edges, right edges and counts."""
    seen = set()
    for file in folder.iterdir():
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name != "histograms":
                    continue
                buckets = tensor_util.make_ndarray(value.tensor)
                assert buckets.shape[1] == 3 and (buckets[:, 0] <= buckets[:, 1]).all(), (value.tag, buckets)
                seen.add(value.tag)
    assert seen == set(tags), seen


def check_samples(reader, folder, epochs):
    """Compares the last table of samples with the data's labels and the answers of `predict`."""
    digits = np.load(ROOT / "configs/data/digits.npz")
    np.save(folder / "held-out.npy", digits["x_test"])
    command = [TRAINCTL, "predict", folder / "run/checkpoints/last", folder / "held-out.npy", "--format", "csv"]
    answers = subprocess.run(list(map(str, command)), cwd=folder, check=True, capture_output=True, text=True).stdout
    answers = list(csv.DictReader(io.StringIO(answers)))
    tables = reader.Tensors("samples")
    assert [event.step for event in tables] == [event["step"] for event in epochs]
    rows = [line.strip("|").split("|") for line in tables[-1].tensor_proto.string_val[0].decode().splitlines()[2:]]
    rows = [[cell.strip() for cell in row] for row in rows]
    assert len({row[0] for row in rows}) == 8, rows
    assert len({row[1] for row in rows}) > 2, rows
    for number, label, prediction, probability in rows:
        answer = answers[int(number)]
        assert int(label) == digits["y_test"][int(number)], (number, label)
        assert prediction == answer["prediction"], (number, prediction, answer)
        assert abs(float(probability) - float(answer[prediction])) < 1e-3, (number, probability, answer)
        pictures = reader.Tensors(f"samples/{number} {label}")
        assert len(pictures) == len(epochs), number
        width, height, png = pictures[-1].tensor_proto.string_val
        assert (width, height, png[:8]) == (b"14", b"14", b"\x89PNG\r\n\x1a\n"), number


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run(folder, "--set", "train.epochs=3", "--set", "log.histograms=1 epoch")
    first = folder / "run/tensorboard/train"
    run(folder, "--set", "train.epochs=5", "--set", "log.histograms=1 epoch", "--set", "log.every=1 steps")
    events = [json.loads(line) for line in open(folder / "run/metrics.jsonl")]
    steps = [event for event in events if event["event"] == "step"]
    epochs = [event for event in events if event["event"] == "epoch"]
    training, validation = load(folder, "train"), load(folder, "validation")
    for key in ("loss", "learning_rate", "gradient_norm", "samples_per_second", "data_wait_share"):
        check_curve(training, key, {event["step"]: event[key] for event in steps})
    check_curve(training, "communication_share",
                {event["step"]: event["time_shares"]["communication"] for event in steps})
    for key in ("loss", "accuracy"):
        check_curve(training, f"epoch_{key}", {event["step"]: event["train"][key] for event in epochs})
        check_curve(validation, f"epoch_{key}", {event["step"]: event["validation"][key] for event in epochs})
    text = training.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert "name: quickstart" in text, text
    # The layers of configs/quickstart.yaml, one after the other.
    layers = ["input", "conv2d", "conv2d_1", "max_pooling2d", "flatten", "dense", "dense_1"]
    nodes = {node.name: node for node in training.Graph().node}
    assert sorted(nodes) == sorted(layers), sorted(nodes)
    for before, layer in zip(layers, layers[1:]):
        assert list(nodes[layer].input) == [before], (layer, nodes[layer].input)
    shape = nodes["conv2d_1"].attr["_output_shapes"].list.shape[0]
    assert [dimension.size for dimension in shape.dim] == [-1, 8, 8, 32], shape
    assert nodes["conv2d_1"].attr["parameters"].i == 3 * 3 * 16 * 32 + 32
    check_histograms(training, events, folder / "run/checkpoints/last")
    check_plugin(first, training.Tags()["histograms"])
    check_samples(validation, folder, epochs)
    assert len(list(first.iterdir())) == 2, "a resumed run writes a file of its own"
print("TensorBoard's reader finds every value of metrics.jsonl")
