"""Super-resolution with sub-pixel convolutions: the last convolution computes the 3x3 pixels of the large image for each pixel."""
import keras
from keras import layers, ops

from twin_support import images


def data(random, samples):
    large = images(random, samples, 48, 60, 1).astype("float32") / 255
    return large.reshape(samples, 16, 3, 20, 3, 1).mean((2, 4)), large


class DepthToSpace(layers.Layer):
    """Makes a block of 3x3 pixels from each pixel's 9 channels."""

    def call(self, x):
        rows = [ops.concatenate([ops.expand_dims(x[..., 3 * i + j], -1) for j in range(3)], -1) for i in range(3)]
        return ops.reshape(ops.stack([ops.reshape(row, (-1, 16, 60)) for row in rows], 2), (-1, 48, 60, 1))


def network():
    model = keras.Sequential([layers.Input((16, 20, 1))])
    for name, filters, size in (("conv1", 64, 5), ("conv2", 64, 3), ("conv3", 32, 3), ("pixels", 9, 3)):
        model.add(layers.Conv2D(filters, size, padding="same", activation="relu", kernel_initializer="orthogonal", name=name))
    model.add(DepthToSpace())
    return model, "mean_squared_error"
