"""Variational autoencoder of digits. The code is the mean of its distribution here, since the comparison is without chance."""
import keras
from keras import layers, ops

from twin_support import images

LEARNING_RATE = 30.0  # the gradients of single weights are small

class Divergence(layers.Layer):
    """Adds the Kullback-Leibler divergence of the code's distribution from the standard normal one, and returns the mean."""

    def call(self, mean, log_variance):
        divergence = ops.sum((ops.exp(log_variance) + mean**2 - 1 - log_variance) / 2, 1)
        self.add_loss(ops.mean(divergence) / 784)
        return mean


def data(random, samples):
    digits = images(random, samples, 28, 28, 1).astype("float32") / 255
    return digits, digits


def network():
    image = layers.Input((28, 28, 1))
    same = {"activation": "relu", "padding": "same"}
    x = layers.Conv2D(64, 3, 2, name="conv2", **same)(layers.Conv2D(32, 3, 2, name="conv1", **same)(image))
    x = layers.Dense(16, activation="relu", name="features")(layers.Flatten()(x))
    x = Divergence()(layers.Dense(2, name="mean")(x), layers.Dense(2, name="log_variance")(x))
    x = layers.Reshape((7, 7, 64))(layers.Dense(3136, activation="relu", name="decode")(x))
    x = layers.Conv2DTranspose(32, 3, 2, name="up2", **same)(layers.Conv2DTranspose(64, 3, 2, name="up1", **same)(x))
    x = layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same", name="pixels")(x)
    return keras.Model(image, x), "binary_crossentropy"
