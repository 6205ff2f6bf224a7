#!/usr/bin/env python3
"""Makes test/golden/keras_attention.safetensors: products, additive attention and the blocks of transformers, as Keras 3
and keras-hub compute them. Needs keras-hub, keras with the backend of TensorFlow, and safetensors.

    python3 test/golden/keras_attention.py

The file has the same names as keras_masks.safetensors (see keras_masks.py).
"""
import pathlib

import numpy as np
from keras_masks import L, STEPS, TOKENS, embedded, keras, record, values
from keras_hub.layers import TransformerDecoder, TransformerEncoder
from safetensors.numpy import save_file

CAUSAL = TOKENS[2:3].repeat(4, 0) * np.array([1, 1, 1, 1, 0, 0], np.int32)  # the first query sees a key


def products():
    for name, axes, normalize in (("dot", (2, 2), False), ("dot_first", 1, False), ("dot_normalized", (2, -1), True),
                                  ("dot_first_normalized", (1, 1), True)):
        i = keras.Input((6, 5))
        a, b = L.Dense(4, name="a")(i), L.Dense(4, activation="tanh", name="b")(i)
        x, positions = L.Dot(axes, normalize=normalize)([a, b]), "first" not in name
        x = x if positions else L.Flatten()(x)
        record(name, i, L.Dense(3, name="d")(x), STEPS + 0.25, positions=positions)
    i = keras.Input((6, 5))
    a, b = L.Reshape((6, 2, 3))(L.Dense(6, name="a")(i)), L.Dense(2, name="b")(i)
    x = L.Reshape((6, 18))(L.Dot((2, 2))([a, b]))  # (6, 3) and (6)
    record("dot_four", i, L.Dense(3, name="d")(x), STEPS)
    i = keras.Input((6, 5))
    a = L.Dense(4, name="a")(L.GlobalAveragePooling1D()(i))
    x = L.Dot((2, 1))([L.Dense(4, name="b")(i), a])  # a vector for each position, times one vector
    record("dot_vectors", i, L.Dense(3, name="d")(L.Reshape((6, 1))(x)), STEPS)


def additive():
    i, x = embedded()
    y = L.Dense(5, name="y")(x)
    record("additive", i, L.Dense(3, name="d")(L.AdditiveAttention(name="a")([y, x])), TOKENS)
    i = keras.Input((6, 5))
    a = L.Masking()(i)
    x = L.AdditiveAttention(use_scale=False, name="a")(
        [L.Dense(4, name="q")(i), L.Dense(3, name="v")(a), L.Dense(4, name="k")(a)], use_causal_mask=True)
    steps = STEPS.copy()
    steps[:, 0] = 1
    record("additive_causal", i, L.Dense(3, name="d")(x), steps)
    i, x = embedded()
    y = L.Dense(5, name="y")(x)
    x = L.Attention(score_mode="concat", use_scale=True, name="a")([y, x])
    record("concat", i, L.Dense(3, name="d")(x), TOKENS)
    i = keras.Input((6, 5))
    x = L.Attention(score_mode="concat", name="a")([i, L.Dense(4, name="v")(i), L.Dense(5, name="k")(i)])
    record("concat_plain", i, L.Dense(3, name="d")(x), STEPS)


def blocks():
    i, x = embedded(6)
    x = TransformerEncoder(8, 2, name="b")(x)
    record("encoder", i, L.Dense(3, name="d")(x), TOKENS)
    i, x = embedded(6)
    x = TransformerEncoder(8, 3, activation="gelu", layer_norm_epsilon=1e-3, normalize_first=True, name="b")(x)
    record("encoder_first", i, L.Dense(3, name="d")(x), TOKENS)
    i, x = embedded(6)
    x = TransformerDecoder(8, 2, normalize_first=True, name="b")(x)
    record("decoder", i, L.Dense(3, name="d")(x), CAUSAL)
    i, x = embedded(6)
    y = L.Dense(4, name="y")(x)
    x = TransformerDecoder(8, 2, activation="silu", name="b")(x, y)
    record("decoder_cross", i, L.Dense(3, name="d")(x), CAUSAL)


if __name__ == "__main__":
    products()
    additive()
    blocks()
    save_file(values, pathlib.Path(__file__).parent / "keras_attention.safetensors")
    print(len(values), "values", sum(v.nbytes for v in values.values()), "bytes")
    for name in sorted({n.split("/")[0] for n in values}):
        print(name, values[f"{name}/loss"], values[f"{name}/accuracy"])
