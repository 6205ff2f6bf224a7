#!/usr/bin/env python3
"""Compares exported networks under onnxruntime with `trainctl predict`: onnx_test.py TRAINCTL [NAME...].

Tests every preset and every layer on batches of 1 and 3 samples; with names, these networks only. Exits with code 77
(skipped) if one of the Python packages numpy, onnx and onnxruntime is not installed."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"not installed: {error.name}")
    sys.exit(77)

import networks

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINCTL = str(pathlib.Path(sys.argv[1]).resolve())
ONLY = sys.argv[2:]
SAMPLES = 3
largest = {}


def trainctl(folder, *arguments, code=0):
    done = subprocess.run([TRAINCTL, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr[-2000:])
    return done.stdout if code == 0 else done.stderr


def layer_widths(folder, model, shape, tokens=False):
    """Returns the sizes of the layers' outputs, by name."""
    np.save(folder / "x.npy", np.zeros((8, *shape), np.int64 if tokens else np.float32))
    np.save(folder / "y.npy", np.zeros((8, 1), np.float32))
    config = {"data": {"dataset": "npy", "x": "x.npy", "y": "y.npy"},
              "model": {"layers": model + [{"dense": {"name": "end", "units": 1}}]},
              "train": {"batch_size": 8, "max_steps": 1, "loss": "mean_squared_error", "optimizer": "sgd"}}
    (folder / "widths.yaml").write_text(json.dumps(config))
    found = json.loads(trainctl(folder, "check", "widths.yaml", "--json", "--ranks", "1"))
    return {layer["name"]: int(np.prod([int(n) for n in layer["output"]])) for layer in found["layers"]}


def train(folder, model, x, y, loss="mean_squared_error", steps=3, data={}, **train):
    """Trains the run `net` for some steps."""
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    config = {"name": "net", "data": {"dataset": "npy", "x": "x.npy", "y": "y.npy", **data}, "model": model,
              "train": {"batch_size": len(x), "max_steps": steps, "loss": loss,
                        "optimizer": {"name": "adam", "learning_rate": 0.01}, **train},
              "log": {"tensorboard": False}}
    (folder / "net.yaml").write_text(json.dumps(config))
    trainctl(folder, "run", "net.yaml", "--ranks", "1", "--quiet", "--run-dir", "net")


def session(folder, *options):
    """Exports the run `net` and opens it in onnxruntime."""
    trainctl(folder, "export", "net", "--format", "onnx", "-o", "net.onnx", *options)
    path = str(folder / "net.onnx")
    onnx.checker.check_model(path, full_check=True)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def predicted(folder, x):
    np.save(folder / "p.npy", x)
    trainctl(folder, "predict", "net", "p.npy", "-o", "out.npy")
    return np.load(folder / "out.npy")


def difference(network, x, expected, tolerance=1e-4):
    """Returns the largest difference on one sample and on all, relative for values above 1."""
    name, worst = network.get_inputs()[0].name, 0
    for batch in (x[:1], x):
        found = network.run(None, {name: batch})[0].reshape(len(batch), -1)
        wanted = expected[:len(batch)].reshape(len(batch), -1)
        if wanted.shape[1] == 2 * found.shape[1] == 2:  # predict writes both of two classes
            wanted = wanted[:, 1:]
        assert found.shape == wanted.shape, (found.shape, wanted.shape)
        far = np.abs(found - wanted) / np.maximum(1, np.abs(wanted))
        assert np.isfinite(found).all() and far.max() <= tolerance, (far.max(), np.unravel_index(far.argmax(), far.shape))
        worst = max(worst, far.max())
    return worst


def compare(folder, name, x, *options, inputs=None):
    expected = predicted(folder, x)
    assert expected.std(axis=0).max() > 1e-4, f"{name}: all samples have the same output"
    network = session(folder, *options, *(["--force"] if name in largest else []))
    largest[name] = difference(network, x if inputs is None else inputs, expected)
    return network


def check_branches(folder, name, model, shape, tokens=0):
    widths = layer_widths(folder, model, shape, tokens > 0)
    x = random.integers(0, tokens, (8, *shape)) if tokens else random.normal(0, 2, (8, *shape)).astype(np.float32)
    if tokens:
        x[:2, [0, 3]] = 0  # padding before and between other tokens
    train(folder, {"layers": model}, x, random.normal(size=(8, widths["all"])).astype(np.float32))
    compare(folder, name, x[:SAMPLES], inputs=x[:SAMPLES].astype(np.int32) if tokens else None)


LANGUAGE_MODELS = {
    "bert": {"vocabulary": 11, "positions": 9, "layers": 2, "heads": 2, "head_size": 4, "width": 8, "mlp": 32, "dropout": 0},
    "gpt2": {"vocabulary": 11, "positions": 9, "layers": 2, "heads": 2, "head_size": 4, "width": 8, "mlp": 32, "dropout": 0},
    "llama": {"vocabulary": 11, "layers": 2, "heads": 4, "key_heads": 2, "head_size": 4, "width": 8, "mlp": 24}}

OTHER_SIZES = {"vit_b16": {"layers": 2}, "vit_s16": {"layers": 3}, "mlp_mixer": {"layers": 2, "patches": 16},
               "convnext_tiny": {"layer_scale": 0.3}}  # 1e-6 would hide the blocks


def check_language_model(folder, preset):
    """Compares a small network of the preset on tokens, with a target for each position or, for BERT, for each sample."""
    x, y = random.integers(0, 11, (2, 8, 9))
    if preset == "bert":
        x[:, 0], y = 1 + np.arange(8), random.integers(0, 2, 8)  # token 0 is padding
    train(folder, {"preset": preset, "with": LANGUAGE_MODELS[preset]}, x, y, "sparse_categorical_crossentropy")
    compare(folder, preset, x[:SAMPLES], inputs=x[:SAMPLES].astype(np.int32))


def check_preset(folder, path):
    """Compares a preset on small images. Its running statistics are the last batch's, so that no activation grows without
    bounds, and the sums of bottlenecks begin close to their inputs: in untrained deep networks rounding errors grow from
    block to block, until two programs differ by 1e-4 from each other and from float64."""
    if path.stem in LANGUAGE_MODELS:
        return check_language_model(folder, path.stem)
    text = path.read_text().replace("{name: bn3,", "{name: bn3, gamma_initializer: {name: constant, value: 0.2},")
    side = {"lenet5": 28, "mlp": 28, "resnet20": 32, "unet": 16, "vgg16": 32, "vgg19": 32}.get(path.stem, 64)
    shape = (side, side, int(re.search(r"^shape: .*(\d)\]", text, re.M)[1]))
    parameters = {"classes": 5, **({"momentum": 0} if "momentum:" in text else {}), **OTHER_SIZES.get(path.stem, {})}
    x = random.normal(size=(8, *shape)).astype(np.float32)
    loss, y = "sparse_categorical_crossentropy", random.integers(0, 5, 8)
    if path.stem == "unet":  # a class for each pixel
        y = random.integers(0, 5, (8, side, side))
    (folder / "preset.yaml").write_text(text)
    train(folder, {"preset": str(folder / "preset.yaml"), "with": parameters}, x, y, loss,
          optimizer={"name": "sgd", "learning_rate": 1e-4})
    compare(folder, path.stem, x[:SAMPLES])


def check_losses(folder):
    """Checks that the export applies the activation that training fuses into the loss."""
    x = random.normal(size=(8, 6)).astype(np.float32)
    for name, units, loss, y in (("logits", 4, "sparse_categorical_crossentropy", random.integers(0, 4, 8)),
                                 ("logit", 1, "binary_crossentropy", random.integers(0, 2, (8, 1)))):
        train(folder / name, {"layers": [{"dense": units}]}, x, y, loss)
        compare(folder / name, name, x[:SAMPLES])


def check_preprocessing(folder):
    """Checks that a file with --preprocess reads bytes, and crops and scales them as the config says."""
    x = random.integers(0, 256, (8, 9, 10, 3)).astype(np.uint8)
    layers = [{"conv2d": {"filters": 4, "kernel_size": 3}}, "flatten", {"dense": 3}]
    data = {"transform": [{"center_crop": [8, 9]}, {"rescale": 1 / 255}, {"normalize": "measured"}],
            "augment": [{"random_flip": "horizontal"}, {"random_crop": {"size": [7, 6], "padding": 2}}]}
    train(folder, {"layers": layers}, x, random.normal(size=(8, 3)).astype(np.float32), data=data)
    network = compare(folder, "preprocess", x[:SAMPLES], "--preprocess")
    assert network.get_inputs()[0].type == "tensor(uint8)" and network.get_inputs()[0].shape == ["batch", 9, 10, 3]
    plain = session(folder, "--force")
    assert plain.get_inputs()[0].type == "tensor(float)" and plain.get_inputs()[0].shape == ["batch", 7, 6, 3]
    assert "this file exists" in trainctl(folder, "export", "net", "--format", "onnx", "-o", "net.onnx", code=2)


def check_resizing(folder):
    """Checks that Resize has the filter of `predict`, on images of random pixels that become smaller and larger."""
    layers = [{"conv2d": {"filters": 4, "kernel_size": 3}}, "flatten", {"dense": 3}]
    cases = {"smaller": ((29, 23), [{"resize": [7, 8]}]), "larger": ((5, 6), [{"resize": [17, 13]}]),
             "both": ((6, 40), [{"resize": [15, 9]}]), "shorter": ((30, 21), [{"resize": 12}, {"center_crop": [11, 12]}]),
             "cropped": ((20, 30), [{"center_crop": [19, 24]}, {"resize": [9, 9]}, {"center_crop": 8}])}
    for name, (size, transform) in cases.items():
        for dtype in (np.uint8, np.float32):
            inner = folder / f"{name}-{np.dtype(dtype)}"
            inner.mkdir()
            x = random.integers(0, 256, (8, *size, 3)).astype(dtype)
            data = {"transform": [*transform, {"rescale": 1 / 255}, {"normalize": "measured"}]}
            train(inner, {"layers": layers}, x, random.normal(size=(8, 3)).astype(np.float32), data=data)
            network = compare(inner, f"resize {inner.name}", x[:SAMPLES], "--preprocess")
            image, open_sizes = network.get_inputs()[0], name in ("smaller", "larger", "both")
            assert image.shape == ["batch", *(("height", "width") if open_sizes else size), 3], image.shape
            assert image.type == ("tensor(uint8)" if dtype == np.uint8 else "tensor(float)")
            if open_sizes:  # images of another size are read as well
                other = random.integers(0, 256, (SAMPLES, size[1] + 2, size[0], 3)).astype(dtype)
                difference(network, other, predicted(inner, other))


def check_bfloat16(folder):
    """Checks that weights are rounded to the nearest bfloat16, and that the network computes in float32."""
    x = random.normal(size=(8, 12)).astype(np.float32)
    train(folder, {"layers": [{"dense": {"units": 64, "activation": "relu"}}, {"dense": 3}]}, x,
          random.normal(size=(8, 3)).astype(np.float32))
    network = session(folder, "--dtype", "bfloat16")
    largest["bfloat16"] = difference(network, x[:SAMPLES], predicted(folder, x[:SAMPLES]), 3e-2)
    kept = {tensor.name: tensor for tensor in onnx.load(folder / "net.onnx").graph.initializer}
    for dtype in ("float32", "bfloat16"):
        trainctl(folder, "export", "net", "--format", "safetensors", "--dtype", dtype, "-o", dtype)
    exact, rounded = (safetensors(folder / dtype) for dtype in ("float32", "bfloat16"))
    assert exact.keys() == rounded.keys() == {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}, exact
    for name, values in exact.items():
        bits = np.frombuffer(kept[name].raw_data, np.uint16)
        assert np.array_equal(rounded[name].ravel(), bits), name
        back = (bits.astype(np.uint32) << 16).view(np.float32)
        assert (np.abs(back - values.ravel()) <= np.abs(values.ravel()) * 2.0**-8).all(), name
    weights = safetensors(next((folder / "net/checkpoints/last").glob("weights*.safetensors")))
    assert all(np.array_equal(weights[name], exact[name]) for name in exact)
    assert "this format cannot hold them" in trainctl(folder, "export", "net", "--format", "safetensors", "--preprocess", code=2)


def safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    types = {"F32": np.float32, "BF16": np.uint16}
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def check_outputs(folder):
    """Checks several inputs and outputs, without the data: eval's mean errors are those of onnxruntime's outputs."""
    arrays = {"image": random.normal(size=(8, 6, 6, 2)), "table": random.normal(size=(8, 3)),
              "kind": random.normal(size=(8, 4)), "size": random.normal(size=(8, 1))}
    for name, values in arrays.items():
        arrays[name] = values.astype(np.float32)
        np.save(folder / f"{name}.npy", arrays[name])
    layers = [{"conv2d": {"from": "image", "filters": 4, "kernel_size": 3, "activation": "relu"}}, {"flatten": {"name": "pixels"}},
              {"dense": {"name": "numbers", "from": "table", "units": 5}}, {"concatenate": {"from": ["pixels", "numbers"]}},
              {"dense": {"name": "trunk", "units": 6, "activation": "tanh"}}, {"dense": {"name": "kind", "units": 4}},
              {"dense": {"name": "size", "from": "trunk", "units": 1}}]
    config = {"name": "net", "data": {"dataset": "npy", "x": {"image": "image.npy", "table": "table.npy"},
                                      "y": {"kind": "kind.npy", "size": "size.npy"}},
              "model": {"inputs": ["image", "table"], "layers": layers, "outputs": ["kind", "size"]},
              "train": {"batch_size": 8, "max_steps": 3, "loss": {"kind": "mean_squared_error", "size": "mean_squared_error"},
                        "metrics": {"kind": ["mean_absolute_error"], "size": ["mean_absolute_error"]}, "optimizer": "adam"}}
    (folder / "net.yaml").write_text(json.dumps(config))
    trainctl(folder, "run", "net.yaml", "--ranks", "1", "--quiet", "--run-dir", "net")
    reported = json.loads(trainctl(folder, "eval", "net.yaml", "--run", "net", "--data", "training", "--json",
                                   "--ranks", "1"))
    for name in arrays:
        (folder / f"{name}.npy").unlink()
    network = session(folder)
    assert [value.name for value in network.get_outputs()] == ["kind", "size"]
    found = network.run(None, {name: arrays[name] for name in ("image", "table")})
    errors = {name: np.abs(values - arrays[name]).mean() for name, values in zip(("kind", "size"), found)}
    largest["outputs"] = max(abs(errors[name] - reported[f"{name}_mean_absolute_error"]) for name in errors)
    assert largest["outputs"] < 1e-5, (errors, reported)


def check_coverage(folder):
    """Checks that every layer and every activation of the reference is in one of the networks."""
    reference = trainctl(folder, "schema", "--markdown")
    tested = json.dumps([networks.IMAGES, networks.VOLUMES, networks.SEQUENCES, networks.VECTORS])
    for kind in ("layer", "activation"):
        missing = [name for name in re.findall(rf"^### {kind} (\w+)$", reference, re.M) if f'"{name}"' not in tested]
        assert not missing, f"no network has the {kind} {missing}"


CHECKS = {
    "coverage": check_coverage,
    "images": lambda folder: check_branches(folder, "images", networks.IMAGES, (9, 11, 4)),
    "volumes": lambda folder: check_branches(folder, "volumes", networks.VOLUMES, (4, 6, 7, 4)),
    "sequences": lambda folder: check_branches(folder, "sequences", networks.SEQUENCES, (7,), tokens=11),
    "vectors": lambda folder: check_branches(folder, "vectors", networks.VECTORS, (6,)),
    "losses": check_losses,
    "preprocess": check_preprocessing,
    "resizing": check_resizing,
    "bfloat16": check_bfloat16,
    "outputs": check_outputs,
    **{path.stem: lambda folder, path=path: check_preset(folder, path) for path in sorted(ROOT.glob("configs/models/*.yaml"))},
}

failed = []
for name, check in CHECKS.items():
    if ONLY and name not in ONLY:
        continue
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        for inner in ("logits", "logit"):
            (folder / inner).mkdir()
        try:
            check(folder)
        except Exception as error:  # the other checks run, too
            failed.append(name)
            print(f"{name}: {error!r}", flush=True)
for name, worst in largest.items():
    print(f"{name:<18} {worst:.1e}")
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
