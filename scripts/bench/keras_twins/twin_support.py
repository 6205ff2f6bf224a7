"""What several examples need: random images, and layers that Keras' examples define themselves."""
import keras
import numpy as np


def images(random, samples, height, width, channels=3):
    """Returns images of coarse random patterns with some noise. Those of pure noise would give hardly any gradient."""
    coarse = random.uniform(0, 224, (samples, -(-height // 8), -(-width // 8), channels))
    fine = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2)[:, :height, :width]
    return (fine + random.uniform(0, 31, fine.shape)).astype("uint8")


class Positions(keras.layers.Layer):
    """Adds a learned vector to each position of a sequence (positions, channels)."""

    def build(self, shape):
        self.embeddings = self.add_weight(name="embeddings", shape=shape[1:], initializer="glorot_uniform")

    def call(self, x):
        return x + self.embeddings
