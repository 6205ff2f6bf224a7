#!/usr/bin/env python3
"""Makes test/golden/keras_conv_lstm.safetensors: networks with convolutional LSTMs, as Keras 3 computes them, in the format of
keras_masks.py. Needs keras with a backend of TensorFlow, and safetensors.

    python3 test/golden/keras_conv_lstm.py
"""
import pathlib

import keras
import numpy as np
from keras import layers as L
from safetensors.numpy import save_file

import keras_masks
from keras_masks import record

keras_masks.rng = np.random.default_rng(47)


def network(name, shape, *layers):
    x = i = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    inputs = keras_masks.rng.standard_normal((4, *shape)).astype(np.float32)
    record(name, i, L.Dense(3, name="d")(x), inputs, positions=False)


if __name__ == "__main__":
    network("rows", (5, 7, 2), L.ConvLSTM1D(3, 3, padding="same", strides=2, return_sequences=True, go_backwards=True, name="a"),
            L.ConvLSTM1D(2, 2, dilation_rate=2, activation="elu", name="b"), L.GlobalMaxPooling1D())
    network("images", (4, 5, 6, 2), L.ConvLSTM2D(3, (3, 2), padding="same", return_sequences=True, name="a"),
            L.ConvLSTM2D(2, 2, strides=2, use_bias=False, activation="gelu", recurrent_activation="hard_sigmoid", name="b"),
            L.GlobalAveragePooling2D())
    network("volumes", (3, 3, 4, 3, 2), L.ConvLSTM3D(2, 2, name="a"), L.GlobalAveragePooling3D())
    x = keras.Input((3, 4, 5, 2))
    y, h, c = L.ConvLSTM2D(2, 2, padding="same", return_sequences=True, return_state=True, name="a")(x)
    y = L.ConvLSTM2D(2, (2, 3), padding="same", go_backwards=True, name="b")(y, initial_state=[h, c])
    y = L.Concatenate()([L.GlobalAveragePooling2D()(y), L.GlobalMaxPooling2D()(c)])
    record("states", x, L.Dense(3, name="d")(y), keras_masks.rng.standard_normal((4, 3, 4, 5, 2)).astype(np.float32),
           positions=False)
    shown = np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]])[..., None]
    films = (keras_masks.rng.standard_normal((4, 4, 40)) * shown).astype(np.float32)
    x = keras.Input((4, 40))
    y = L.TimeDistributed(L.Reshape((4, 5, 2)))(L.Masking()(x))
    y = L.ConvLSTM2D(3, 2, padding="same", return_sequences=True, name="a")(y)
    y = L.ConvLSTM2D(2, (3, 2), go_backwards=True, name="b")(y)
    record("masked", x, L.Dense(3, name="d")(L.GlobalAveragePooling2D()(y)), films, positions=False)
    x = keras.Input((4, 40))
    y = L.TimeDistributed(L.Reshape((10, 4)))(L.Masking()(x))
    y, h, c = L.ConvLSTM1D(2, 2, padding="same", return_sequences=True, return_state=True, name="a")(y)
    # With initial states, Keras 3 does not pass on the mask by itself.
    y = L.ConvLSTM1D(2, 3, padding="same", return_sequences=True, name="b")(y, initial_state=[h, c], mask=y._keras_mask)
    record("masked_states", x, L.Dense(3, name="d")(L.Flatten()(y)), films, positions=False)
    network("one_step", (1, 4, 5, 2), L.ConvLSTM2D(3, 2, name="a"), L.GlobalAveragePooling2D())
    save_file(keras_masks.values, pathlib.Path(__file__).parent / "keras_conv_lstm.safetensors")
    print(len(keras_masks.values), "values")
