"""Image similarity with a Siamese network: two digits pass through the same layers, and the contrastive loss judges their distance."""
import keras
from keras import layers, ops


def data(random, samples):
    pairs = random.random((2, samples, 28, 28, 1), dtype="float32")
    return {"left": pairs[0], "right": pairs[1]}, random.integers(0, 2, (samples, 1)).astype("float32")


def contrastive(different, y):
    return ops.mean((1 - different) * ops.square(y) + different * ops.square(ops.maximum(1 - y, 0)), -1)


def network():
    shared = [layers.Conv2D(4, 5, activation="tanh", name="conv1"), layers.AveragePooling2D(2),
              layers.Conv2D(16, 5, activation="tanh", name="conv2"), layers.AveragePooling2D(2),
              layers.Flatten(), layers.Dense(10, activation="tanh", name="code")]
    inputs = {name: layers.Input((28, 28, 1), name=name) for name in ("left", "right")}
    codes = []
    for x in inputs.values():
        for layer in shared:
            x = layer(x)
        codes.append(x)
    distance = ops.sqrt(ops.maximum(ops.sum(ops.square(codes[0] - codes[1]), 1, keepdims=True), 1e-7))
    x = layers.BatchNormalization(name="distance_norm")(distance)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="predictions")(x)), contrastive
