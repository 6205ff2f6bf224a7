#!/usr/bin/env python3
"""Makes test/golden/keras_masked_batch_norm.safetensors: networks with batch normalization after padding masks, before and after steps of SGD in
Keras 3. Needs keras with any backend, and safetensors.

    python3 test/golden/keras_masked_batch_norm.py

The format is that of keras_spectral_norm.py.
"""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers as L
from safetensors.numpy import save_file

rng = np.random.default_rng(48)
values = {}
STEPS = 3


def tokens(*shape):
    return np.where(rng.random(shape) < 0.4, 0, rng.integers(1, 6, shape)).astype(np.int32)


def embedded(*shape):
    i = keras.Input(shape, dtype="int32")
    return i, L.Embedding(6, 5, mask_zero=True, name="e")(i)


def normalized(name, x, **options):
    return L.BatchNormalization(momentum=0.9, name=name, **options)(x)


def name_of(weight):
    """The name of a weight in trainctl, without the cell of a recurrent layer."""
    path = weight.path.split("/")
    return f"{path[0]}/{path[-1]}"


def record(name, inputs, output, x, positions=False):
    model = keras.Model(inputs, output)
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for weight in model.weights:
        drawn = rng.normal(0, 0.6, weight.shape)
        weight.assign(np.abs(drawn) + 0.5 if "variance" in weight.path else drawn)
    targets = rng.integers(0, 3, x.shape[:2] if positions else 8).astype(np.int32)
    values[f"{name}/in0"], values[f"{name}/targets"] = x, targets
    for weight in model.weights:
        values[f"{name}/before/{name_of(weight)}"] = np.array(weight)
    losses = []
    for _ in range(STEPS):
        losses.append(model.train_on_batch(x, targets))
        model.reset_metrics()
    losses.append(model.test_on_batch(x, targets))
    for weight in model.weights:
        values[f"{name}/after/{name_of(weight)}"] = np.array(weight)
    values[f"{name}/losses"] = np.array(losses, np.float32)
    print(name, losses)


if __name__ == "__main__":
    i, x = embedded(6)
    x = L.Activation("relu")(normalized("n1", x))
    x = normalized("n2", L.Dense(6, activation="tanh", name="a")(x), center=False, epsilon=0.1)
    record("tokens", i, L.Dense(3, name="d")(L.SimpleRNN(4, name="r")(x)), tokens(8, 6))
    i, x = embedded(6)  # the masked positions have gradients
    record("flattened", i, L.Dense(3, name="d")(L.Flatten()(normalized("n", x))), tokens(8, 6))
    i, x = embedded(3, 4)
    x = L.GlobalAveragePooling2D()(L.Activation("tanh")(normalized("n", x, scale=False)))
    record("positions", i, L.Dense(3, name="d")(x), tokens(8, 3, 4))
    i, x = embedded(6)
    x = L.Flatten()(L.Activation("tanh")(normalized("n", x)))
    record("hidden", i, L.Dense(3, name="d")(x), np.zeros((8, 6), np.int32))
    i = keras.Input((6, 5))
    a = L.Dense(8, name="a")(L.Masking()(i))
    x = L.Activation("relu")(L.Add()([normalized("n", L.Dense(8, name="b")(a)), a]))
    steps = np.where(rng.random((8, 6, 1)) < 0.4, 0, rng.normal(1, 2, (8, 6, 5))).astype(np.float32)
    record("values", i, L.Dense(3, name="d")(x), steps, positions=True)
    save_file(values, pathlib.Path(__file__).parent / "keras_masked_batch_norm.safetensors")
    print(len(values), "values", sum(v.nbytes for v in values.values()), "bytes")
