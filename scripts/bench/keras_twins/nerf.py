"""Volumetric rendering with a neural radiance field: colors of points along a ray, weighted by opacity and transmittance."""
import keras
import numpy as np
from keras import layers, ops


def data(random, samples):
    depths = np.sort(random.uniform(2, 6, (samples, 6, 6, 8)), axis=-1).astype("float32")
    directions = random.normal(size=(samples, 6, 6, 1, 3))
    places = (directions / np.linalg.norm(directions, axis=-1, keepdims=True) * depths[..., None]).reshape(samples, -1, 3)
    waves = [wave(2.0 ** i * places) for i in range(4) for wave in (np.sin, np.cos)]
    return ({"points": np.concatenate([places, *waves], axis=-1).astype("float32"), "depths": depths},
            random.random((samples, 6, 6, 3), dtype="float32"))


def render(inputs):
    values, depths = inputs
    values = ops.reshape(values, (-1, 6, 6, 8, 4))
    distances = ops.concatenate([depths[..., 1:] - depths[..., :-1], ops.full_like(depths[..., :1], 1e10)], axis=-1)
    clear = ops.exp(-ops.relu(values[..., 3]) * distances)
    passed = [ops.ones_like(clear[..., 0])]
    for i in range(7):
        passed.append(passed[-1] * (clear[..., i] + 1e-10))
    weights = (1 - clear) * ops.stack(passed, axis=-1)
    return ops.sum(weights[..., None] * ops.sigmoid(values[..., :3]), axis=-2)


def network():
    points, depths = layers.Input((288, 27), name="points"), layers.Input((6, 6, 8), name="depths")
    x = layers.Dense(32, activation="relu", name="dense2")(layers.Dense(32, activation="relu", name="dense1")(points))
    x = layers.Dense(32, activation="relu", name="dense3")(layers.Concatenate()([x, points]))
    x = layers.Lambda(render, output_shape=(6, 6, 3))([layers.Dense(4, name="dense4")(x), depths])
    return keras.Model({"points": points, "depths": depths}, x), "mean_squared_error"
