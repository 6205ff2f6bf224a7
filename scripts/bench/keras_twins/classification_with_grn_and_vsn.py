"""Structured data classification with gated residual networks, one for each column. Another one computes the weights of the columns."""
import keras
from keras import layers, ops


def data(random, samples):
    return ({"age": random.normal(size=(samples, 1)).astype("float32"), "hours": random.normal(size=(samples, 1)).astype("float32"),
             "work": random.integers(0, 9, (samples, 1))}, random.integers(0, 2, samples))


def grn(x, name):
    y = layers.Dense(16, name=f"{name}_linear")(layers.Dense(16, activation="elu", name=f"{name}_elu")(x))
    y = layers.Dropout(0.15)(y)
    gate = layers.Dense(16, activation="sigmoid", name=f"{name}_gate")(y)
    y = layers.Multiply()([layers.Dense(16, name=f"{name}_up")(y), gate])
    if x.shape[-1] != 16:
        x = layers.Dense(16, name=f"{name}_project")(x)
    return layers.LayerNormalization(name=name)(layers.Add()([x, y]))


def network():
    inputs = {name: layers.Input((1,), name=name) for name in ("age", "hours", "work")}
    codes = [layers.Dense(16, name="age_code")(inputs["age"]), layers.Dense(16, name="hours_code")(inputs["hours"]),
             layers.Flatten()(layers.Embedding(9, 16, name="work_table")(inputs["work"]))]
    weights = layers.Dense(3, activation="softmax", name="weights")(grn(layers.Concatenate()(codes), "weights_grn"))
    columns = ops.stack([grn(code, f"{name}_grn") for name, code in zip(inputs, codes)], 1)
    x = ops.sum(columns * ops.expand_dims(weights, -1), 1)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="predictions")(x)), "binary_crossentropy"
