"""Structured data with a wide and deep network: one normalisation of the sparse columns, dense layers of the others."""
import keras
from keras import layers


def data(random, samples):
    return ({"wide": random.integers(0, 2, (samples, 44)).astype("float32"),
             "deep": random.normal(size=(samples, 24)).astype("float32")}, random.integers(0, 7, samples))


def network():
    wide, deep = layers.Input((44,), name="wide"), layers.Input((24,), name="deep")
    x = deep
    for i in (1, 2):
        x = layers.BatchNormalization(name=f"norm{i}")(layers.Dense(32, name=f"deep{i}")(x))
        x = layers.Dropout(0.1)(layers.ReLU()(x))
    x = layers.Concatenate()([layers.BatchNormalization(name="wide_norm")(wide), x])
    model = keras.Model({"wide": wide, "deep": deep}, layers.Dense(7, activation="softmax", name="predictions")(x))
    return model, "sparse_categorical_crossentropy"
