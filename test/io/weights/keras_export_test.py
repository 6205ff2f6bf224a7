#!/usr/bin/env python3
"""Compares Keras' networks that read weights of `trainctl export --format keras-weights` with `trainctl predict`:
keras_export_test.py TRAINCTL.

Exits with code 77 (skipped) if the Python packages keras (with a backend) and h5py are not installed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "numpy")
try:
    import h5py  # noqa: F401
    import keras
    import numpy as np
    from keras import layers
    from keras.src.applications.convnext import LayerScale
except ImportError as error:
    print(f"not installed: {error.name}")
    sys.exit(77)

TRAINCTL = str(pathlib.Path(sys.argv[1]).resolve())
random = np.random.default_rng(3)


def trainctl(folder, *arguments):
    done = subprocess.run([TRAINCTL, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr[-2000:])


def compare(name, network, x, model):
    """Trains `network` for some steps, loads its weights into Keras' `model`, and compares their outputs."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", random.normal(size=(len(x), 3)).astype(np.float32))
        config = {"data": {"dataset": "npy", "x": "x.npy", "y": "y.npy"}, "model": {"layers": network},
                  "train": {"batch_size": len(x), "max_steps": 3, "loss": "mean_squared_error",
                            "optimizer": {"name": "adam", "learning_rate": 0.05}}}
        (folder / "net.yaml").write_text(json.dumps(config))
        trainctl(folder, "run", "net.yaml", "--ranks", "1", "--quiet")
        trainctl(folder, "predict", "net.yaml", "x.npy", "-o", "out.npy")
        trainctl(folder, "export", "net.yaml", "--format", "keras-weights")
        before = np.asarray(model(x))
        model.load_weights(str(folder / "net.h5"), by_name=True)
        after, expected = np.asarray(model(x)), np.load(folder / "out.npy")
        assert np.abs(before - expected).max() > 1e-2, "the weights make no difference"
        far = np.abs(after - expected).max()
        assert far < 1e-4, (name, far)
        print(f"{name:<10} {far:.1e}")


def composites():
    """Layers that contain layers."""
    x = keras.Input((7,))
    y = layers.Embedding(9, 8, name="e")(x)
    y = layers.Add()([y, layers.MultiHeadAttention(2, 3, name="block_a")(y, y)])
    y = layers.GroupQueryAttention(3, 4, 2, name="g")(y, y)
    y = layers.Attention(use_scale=True, score_mode="concat", name="p")([y, y])
    y = layers.Bidirectional(layers.GRU(4, return_sequences=True), name="b")(y)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True), name="c")(y)
    y = layers.TimeDistributed(layers.Dense(5), name="t")(y)
    y = layers.SpectralNormalization(layers.Dense(4), name="s")(y)
    return keras.Model(x, layers.Dense(3, name="d")(layers.Flatten()(y)))


compare("images", [
    {"conv2d": {"name": "c", "filters": 6, "kernel_size": 3, "groups": 2, "activation": "relu"}},
    {"batch_normalization": {"name": "bn", "momentum": 0.5}},
    {"depthwise_conv2d": {"name": "dw", "kernel_size": 3, "depth_multiplier": 2}},
    {"prelu": {"name": "slope", "shared_axes": [1, 2]}},
    {"separable_conv2d": {"name": "sep", "filters": 4, "kernel_size": 2}},
    {"group_normalization": {"name": "gn", "groups": 2}}, {"layer_scale": {"name": "ls", "init_values": 0.8}},
    {"conv2d_transpose": {"name": "up", "filters": 3, "kernel_size": 2, "strides": 2}},
    "flatten", {"layer_normalization": {"name": "ln"}}, {"dense": {"name": "d", "units": 3}}],
    random.normal(size=(6, 9, 8, 4)).astype(np.float32),
    keras.Sequential([
        layers.Input((9, 8, 4)), layers.Conv2D(6, 3, groups=2, activation="relu", name="c"),
        layers.BatchNormalization(name="bn"), layers.DepthwiseConv2D(3, depth_multiplier=2, name="dw"),
        layers.PReLU(shared_axes=[1, 2], name="slope"), layers.SeparableConv2D(4, 2, name="sep"),
        layers.GroupNormalization(2, name="gn"), LayerScale(0.8, 4, name="ls"), layers.Conv2DTranspose(3, 2, strides=2, name="up"), layers.Flatten(),
        layers.LayerNormalization(name="ln"), layers.Dense(3, name="d")]))

compare("sequences", [
    {"embedding": {"name": "e", "input_dim": 9, "output_dim": 5}},
    {"repeat": {"name": "twice", "times": 2, "layers": [{"conv1d": {"name": "c", "filters": 5, "kernel_size": 2}}]}},
    {"lstm": {"name": "l", "units": 4, "return_sequences": True}}, {"gru": {"name": "g", "units": 3}}],
    random.integers(0, 9, (6, 7)),
    keras.Sequential([
        layers.Input((7,)), layers.Embedding(9, 5, name="e"), layers.Conv1D(5, 2, name="twice_0_c"),
        layers.Conv1D(5, 2, name="twice_1_c"), layers.LSTM(4, return_sequences=True, name="l"), layers.GRU(3, name="g")]))

compare("composites", [
    {"embedding": {"name": "e", "input_dim": 9, "output_dim": 8}},
    {"residual": {"name": "block", "layers": [
        {"multi_head_attention": {"name": "a", "num_heads": 2, "key_dim": 3}}]}},
    {"group_query_attention": {"name": "g", "num_query_heads": 4, "num_key_value_heads": 2, "head_dim": 3}},
    {"attention": {"name": "p", "from": ["g", "g"], "use_scale": True, "score_mode": "concat"}},
    {"bidirectional": {"name": "b", "layers": [{"gru": {"units": 4, "return_sequences": True}}]}},
    {"bidirectional": {"name": "c", "layers": [{"lstm": {"units": 4, "return_sequences": True}}]}},
    {"time_distributed": {"name": "t", "layers": [{"dense": {"units": 5}}]}},
    {"spectral_normalization": {"name": "s", "layers": [{"dense": {"units": 4}}]}},
    "flatten", {"dense": {"name": "d", "units": 3}}],
    random.integers(0, 9, (6, 7)), composites())
