#!/usr/bin/env python3
"""Makes test/golden/keras_volumes.safetensors: networks over volumes and rows, as Keras 3 computes them, in the format of keras_masks.py.
Needs keras, jax and safetensors.

    python3 test/golden/keras_volumes.py
"""
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from keras import layers as L
from safetensors.numpy import save_file

rng = np.random.default_rng(48)
values = {}


def network(name, shape, *layers):
    """Records the loss of 4 samples with 3 classes, and the gradient of every weight."""
    model = keras.Sequential([keras.Input(shape), *layers, L.Dense(3, name="d")])
    for weight in model.trainable_weights:
        weight.assign(rng.normal(0, 0.6, weight.shape))
    x = rng.standard_normal((4, *shape)).astype(np.float32)
    targets = rng.integers(0, 3, 4).astype(np.int32)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def forward(weights):
        y, _ = model.stateless_call(weights, [], x, training=True)
        return loss_of(targets, y), y

    (loss, y), gradients = jax.value_and_grad(forward, has_aux=True)([weight.value for weight in model.trainable_weights])
    found = {"in0": x, "targets": targets, "out": y, "loss": np.array([loss]),
             "accuracy": np.array([(np.asarray(y).argmax(-1) == targets).mean()], np.float32)}
    for weight, gradient in zip(model.trainable_weights, gradients):
        path = weight.path.removeprefix(model.name + "/")
        found[f"value/{path}"], found[f"gradient/{path}"] = weight.value, gradient
    values.update({f"{name}/{key}": np.ascontiguousarray(value) for key, value in found.items()})


if __name__ == "__main__":
    network("padding", (4, 5, 3, 2), L.Conv3D(3, 2, activation="tanh", name="a"), L.ZeroPadding3D(((0, 2), (1, 0), (2, 1))),
            L.Conv3D(3, (2, 3, 2), name="b"), L.Cropping3D(((1, 0), (0, 1), (1, 1))), L.ZeroPadding3D(1), L.Flatten())
    network("upsampling", (3, 4, 3, 2), L.Conv3D(3, 2, name="a"), L.UpSampling3D((2, 3, 1)),
            L.Conv3D(4, (2, 3, 2), strides=(1, 2, 1), name="b"), L.UpSampling3D(2), L.GlobalMaxPooling3D())
    network("max_pooling", (4, 5, 6, 2), L.Conv3D(3, 2, name="a"), L.MaxPooling3D((1, 2, 3), strides=(1, 1, 2), padding="same"),
            L.MaxPooling3D(2), L.Flatten())
    network("average_pooling", (5, 5, 6, 2), L.Conv3D(3, 2, activation="tanh", name="a"), L.AveragePooling3D((2, 1, 2)),
            L.AveragePooling3D(3, strides=2, padding="same"), L.Flatten())
    network("global_pooling", (3, 4, 5, 2), L.Conv3DTranspose(4, (2, 3, 2), strides=2, padding="same", activation="tanh", name="a"),
            L.GlobalAveragePooling3D(), L.Dense(4, activation="tanh", name="b"))
    network("rows", (7, 3), L.Conv1DTranspose(4, 3, strides=2, activation="tanh", name="a"), L.ZeroPadding1D((1, 2)),
            L.Conv1DTranspose(3, 4, padding="same", use_bias=False, name="b"), L.UpSampling1D(2), L.Cropping1D((3, 2)), L.Flatten())
    network("unit_normalization", (5, 4), L.Dense(4, name="a"), L.UnitNormalization(), L.Dense(3, name="b"), L.UnitNormalization(),
            L.Flatten())
    save_file(values, pathlib.Path(__file__).parent / "keras_volumes.safetensors")
    print(len(values), "values")
