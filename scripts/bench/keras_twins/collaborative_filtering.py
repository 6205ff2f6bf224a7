"""Recommendations by collaborative filtering: the product of a user's and a film's vectors, with a bias for each."""
import keras
from keras import layers


def data(random, samples):
    return ({"user": random.integers(0, 610, (samples, 1)), "film": random.integers(0, 9724, (samples, 1))},
            random.random((samples, 1), dtype="float32"))


def network():
    inputs = {name: layers.Input((1,), name=name) for name in ("user", "film")}

    def read(name, size, count, **options):
        kind = "vector" if size > 1 else "bias"
        return layers.Flatten()(layers.Embedding(count, size, name=f"{name}_{kind}", **options)(inputs[name]))

    vector = {"embeddings_initializer": "he_normal", "embeddings_regularizer": keras.regularizers.L2(1e-6)}
    match = layers.Dot(1)([read("user", 50, 610, **vector), read("film", 50, 9724, **vector)])
    x = layers.Add()([match, read("user", 1, 610), read("film", 1, 9724)])
    return keras.Model(inputs, layers.Activation("sigmoid")(x)), "binary_crossentropy"
