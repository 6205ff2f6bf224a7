#!/usr/bin/env python3
"""Makes test/golden/keras_masks.safetensors: networks with padding masks, and layers that wrap layers, as Keras 3 computes them. Needs keras with a
backend of TensorFlow, and safetensors.

    python3 test/golden/keras_masks.py

For each case: CASE/in0, CASE/targets, CASE/weights (of samples or positions, if there are any), CASE/out, the loss and
the weighted accuracy of the batch, and for each weight its value CASE/value/NAME and its gradient CASE/gradient/NAME,
with the names and shapes that trainctl has.
"""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from safetensors.numpy import save_file

rng = np.random.default_rng(46)
values = {}
TOKENS = np.array([[3, 1, 4, 0, 0, 0], [2, 0, 5, 1, 0, 2], [1, 2, 3, 4, 5, 1], [0, 0, 0, 2, 0, 0]], np.int32)
STEPS = np.where(rng.random((4, 6, 1)) < 0.4, 0, rng.standard_normal((4, 6, 5))).astype(np.float32)
STEPS[1, 2] = STEPS[2, 4] = 1


def embedded(width=5, name="e"):
    tokens = keras.Input((6,), dtype="int32")
    return tokens, L.Embedding(6, width, mask_zero=True, name=name)(tokens)


def parts_of(weight, layer):
    """The names and values of a weight of Keras in trainctl."""
    path, value = weight.path.split("/"), weight.numpy()
    leaf = path[-1]
    if isinstance(layer, L.Bidirectional):
        direction = "forward_layer" if "forward" in weight.path else "backward_layer"
        base, cell = f"{layer.name}/{direction}", getattr(layer, direction)
    elif isinstance(layer, L.TimeDistributed):
        base, cell = f"{layer.name}/layer", layer.layer
    else:
        base, cell = layer.name, layer
    if isinstance(cell, L.GRU) and leaf == "bias":
        return {f"{base}/bias": value[0], f"{base}/recurrent_bias": value[1]}
    attends = isinstance(cell, (L.MultiHeadAttention, L.GroupQueryAttention))
    if attends or type(cell).__name__.startswith("Transformer"):
        if leaf == "bias":
            value = value.reshape(-1)
        if value.ndim == 3:
            value = value.reshape((-1, value.shape[-1]) if path[-2] == "attention_output" else (value.shape[0], -1))
        return {"/".join([base, *path[1:]]): value}
    if value.shape == ():
        value = value.reshape(1, 1)
    return {f"{base}/{leaf}": value}


def record(name, inputs, output, x, classes=3, weights=None, ignore_class=None, positions=True):
    model = keras.Model(inputs, output)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=ignore_class),
                  weighted_metrics=["sparse_categorical_accuracy"])
    for weight in model.trainable_weights:
        weight.assign(rng.normal(0, 0.6, weight.shape))
    targets = rng.integers(0, classes, (4, 6) if positions else (4,)).astype(np.int32)
    with tf.GradientTape() as tape:
        y = model(x, training=True)
        loss = model.compute_loss(x, targets, y, None if weights is None else tf.constant(weights))
    gradients = dict(zip((w.path for w in model.trainable_weights), tape.gradient(loss, [
        w.value for w in model.trainable_weights])))
    values[f"{name}/in0"], values[f"{name}/targets"], values[f"{name}/out"] = x, targets, y.numpy()
    if weights is not None:
        values[f"{name}/weights"] = weights
    results = model.evaluate(x, targets, sample_weight=weights, batch_size=4, verbose=0, return_dict=True)
    accuracy = results["sparse_categorical_accuracy"]
    if ignore_class is not None:  # Keras' metrics count ignored classes, unlike its losses
        mask = getattr(y, "_keras_mask", None)
        counted = (targets != ignore_class) & (True if mask is None else mask.numpy())
        accuracy = (y.numpy().argmax(-1) == targets)[counted].mean()
    values[f"{name}/loss"] = np.array([loss.numpy()], np.float32)
    values[f"{name}/accuracy"] = np.array([accuracy], np.float32)
    for layer in model.layers:
        for weight in layer.trainable_weights:
            gradient = gradients[weight.path]
            gradient = tf.convert_to_tensor(gradient).numpy()
            names = parts_of(weight, layer)
            for part, value in names.items():
                values[f"{name}/value/{part}"] = np.ascontiguousarray(value)
            before = weight.numpy()
            weight.assign(gradient)
            for part, value in parts_of(weight, layer).items():
                values[f"{name}/gradient/{part}"] = np.ascontiguousarray(value)
            weight.assign(before)


def masks():
    i, x = embedded()
    record("gru", i, L.Dense(3, name="d")(L.GRU(4, return_sequences=True, name="r")(x)), TOKENS)
    i, x = embedded()
    x = L.LSTM(4, return_sequences=True, go_backwards=True, name="l")(x)
    record("recurrent", i, L.Dense(3, name="d")(L.SimpleRNN(4, name="r")(x)), TOKENS, positions=False)
    i, x = embedded()
    x = L.LSTM(4, return_sequences=True, zero_output_for_mask=True, name="l")(L.Dropout(0.0)(x))
    record("zero_output", i, L.Dense(3, name="d")(x), TOKENS,
           weights=np.repeat(np.array([[1], [0.5], [2], [0]], np.float32), 6, 1))
    i, x = embedded(6)
    y = L.Rescaling(1.0)(x)  # Keras 3.15's MultiHeadAttention removes the mask of its input
    x = L.LayerNormalization(name="n")(L.Add()([x, L.MultiHeadAttention(2, 3, name="a")(y, y)]))
    record("attention", i, L.Dense(3, name="d")(x), TOKENS,
           weights=rng.integers(0, 3, (4, 6)).astype(np.float32))
    i, x = embedded(6)
    x = L.Add()([x, L.GroupQueryAttention(3, 2, 1, use_gate=False, name="a")(x, x, use_causal_mask=True)])
    record("causal", i, L.Dense(3, name="d")(x), TOKENS[2:3].repeat(4, 0) * np.array([1, 1, 1, 1, 0, 0], np.int32))
    i, x = embedded()
    x = L.GlobalAveragePooling1D()(L.Dense(4, activation="tanh", name="t")(x))
    record("mean", i, L.Dense(3, name="d")(x), TOKENS, positions=False)
    i = keras.Input((6, 5))
    a, b = L.Masking(name="zero")(i), L.Masking(1.0, name="one")(i)
    x = L.Add()([L.Dense(4, name="a")(a), L.Dense(4, name="b")(b)])
    record("merged", i, L.Dense(3, name="d")(L.Activation("tanh")(x)), STEPS)
    i = keras.Input((6, 5))
    a, b = L.Masking(name="zero")(i), L.Masking(1.0, name="one")(i)
    x = L.MultiHeadAttention(2, 3, name="a")(i, L.Dense(4, name="v")(a), L.Dense(4, name="k")(b))
    record("cross", i, L.Dense(3, name="d")(x), STEPS)
    i, x = embedded()
    record("flattened", i, L.Dense(3, name="d")(L.Flatten()(x)), TOKENS, positions=False)
    i, x = embedded()
    record("ignored", i, L.Dense(3, name="d")(x), TOKENS, ignore_class=1)
    i = keras.Input((6, 5))
    record("ignored_alone", i, L.Dense(3, name="d")(i), STEPS, ignore_class=2)


def wrappers():
    i, x = embedded()
    x = L.Bidirectional(L.LSTM(3, return_sequences=True), name="b")(x)
    record("bidirectional", i, L.Dense(3, name="d")(x), TOKENS)
    i, x = embedded()
    x = L.Bidirectional(L.GRU(4), merge_mode="ave", name="b")(x)
    record("bidirectional_last", i, L.Dense(3, name="d")(x), TOKENS, positions=False)
    i = keras.Input((6, 5))
    x = L.Bidirectional(L.SimpleRNN(4, return_sequences=True, go_backwards=True), merge_mode="mul", name="b",
                        backward_layer=L.GRU(4, return_sequences=True))(i)
    record("bidirectional_two", i, L.Dense(3, name="d")(x), STEPS)
    i = keras.Input((6, 5))
    x = L.TimeDistributed(L.Dense(4, activation="tanh"), name="t")(L.Masking()(i))
    record("time_distributed", i, L.Dense(3, name="d")(x), STEPS)
    i = keras.Input((6, 5))
    x = L.TimeDistributed(L.Conv1D(2, 2), name="t")(L.Reshape((6, 5, 1))(i))
    record("time_distributed_conv", i, L.Dense(3, name="d")(L.Reshape((6, 8))(x)), STEPS)
    i = keras.Input((6, 5))
    x = L.RepeatVector(6)(L.LSTM(4, name="l")(i))
    record("repeat_vector", i, L.Dense(3, name="d")(L.GRU(3, return_sequences=True, name="r")(x)), STEPS)
    i, x = embedded()
    y = L.Dense(5, name="y")(x)
    x = L.Attention(use_scale=True, name="a")([y, x])
    record("dot_attention", i, L.Dense(3, name="d")(x), TOKENS)
    i = keras.Input((6, 5))
    a = L.Masking()(i)
    x = L.Attention(name="a")([L.Dense(4, name="q")(i), L.Dense(3, name="v")(a), L.Dense(4, name="k")(a)],
                              use_causal_mask=True)
    steps = STEPS.copy()
    steps[:, 0] = 1  # the first query sees a key
    record("dot_attention_causal", i, L.Dense(3, name="d")(x), steps)


if __name__ == "__main__":
    masks()
    wrappers()
    save_file(values, pathlib.Path(__file__).parent / "keras_masks.safetensors")
    print(len(values), "values", sum(v.nbytes for v in values.values()), "bytes")
    for name in sorted({n.split("/")[0] for n in values}):
        print(name, values[f"{name}/loss"], values[f"{name}/accuracy"])
