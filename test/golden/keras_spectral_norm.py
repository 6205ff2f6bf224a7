#!/usr/bin/env python3
"""Makes test/golden/keras_spectral_norm.safetensors: networks with spectral normalization, before and after steps of SGD in Keras 3. Needs
keras with a backend of TensorFlow, and safetensors. (In Keras with JAX, the kernels keep their values.)

    python3 test/golden/keras_spectral_norm.py

For each case: CASE/in0 and CASE/targets; for each weight its value before the steps, CASE/before/NAME, and after them, CASE/after/NAME; the
losses of the steps, and that of an evaluation after them: CASE/losses.
"""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from safetensors.numpy import save_file

rng = np.random.default_rng(47)
values = {}
STEPS = 5


def normalized(layer, name, power_iterations=1):
    return L.SpectralNormalization(layer, power_iterations, name=name)


def record(name, x, *layers):
    # Tokens are floats, too: the wrapper converts its output to the dtype of its input.
    model = keras.Sequential([L.Input(x.shape[1:]), *layers], name="network")
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.6, weight.shape))
    targets = rng.integers(0, 3, 8).astype(np.int32)
    values[f"{name}/in0"], values[f"{name}/targets"] = x, targets
    x = x.astype(np.float32)
    for weight in model.weights:
        values[f"{name}/before/{weight.path.removeprefix('network/')}"] = weight.numpy()
    losses = []
    for _ in range(STEPS):
        losses.append(model.train_on_batch(x, targets))
        model.reset_metrics()
    losses.append(model.test_on_batch(x, targets))
    for weight in model.weights:
        values[f"{name}/after/{weight.path.removeprefix('network/')}"] = weight.numpy()
    values[f"{name}/losses"] = np.array(losses, np.float32)


if __name__ == "__main__":
    record("dense", rng.standard_normal((8, 5)).astype(np.float32),
           normalized(L.Dense(4, activation="tanh", name="layer"), "a"),
           normalized(L.Dense(3, name="layer"), "b", 3))
    record("convolutions", rng.standard_normal((8, 6, 5, 2)).astype(np.float32),
           normalized(L.Conv2D(3, (3, 2), activation="tanh", use_bias=False, name="layer"), "a"),
           normalized(L.Conv2DTranspose(4, 2, strides=2, name="layer"), "b", 2), L.GlobalAveragePooling2D(), L.Dense(3, name="c"))
    record("embedding", rng.integers(0, 6, (8, 4)).astype(np.int32), normalized(L.Embedding(6, 5, name="layer"), "a"), L.Flatten(),
           L.Dense(3, name="b"))
    save_file(values, pathlib.Path(__file__).parent / "keras_spectral_norm.safetensors")
    print(len(values), "values")
