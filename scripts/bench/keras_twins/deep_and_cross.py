"""Structured data with a deep and cross network: each cross layer multiplies a dense layer's values by the inputs."""
import keras
from keras import layers


def data(random, samples):
    return random.normal(size=(samples, 24)).astype("float32"), random.integers(0, 7, samples)


def network():
    table = cross = deep = layers.Input((24,))
    for i in (1, 2):
        cross = layers.Add()([layers.Multiply()([table, layers.Dense(24, name=f"cross{i}")(cross)]), cross])
        deep = layers.BatchNormalization(name=f"norm{i}")(layers.Dense(32, name=f"deep{i}")(deep))
        deep = layers.Dropout(0.1)(layers.ReLU()(deep))
    x = layers.Concatenate()([cross, deep])
    return keras.Model(table, layers.Dense(7, activation="softmax", name="predictions")(x)), "sparse_categorical_crossentropy"
