"""Supervised contrastive learning: an encoder whose codes of one class are near each other. A batch has all pairs of its samples."""
import keras
from keras import layers, ops

from twin_support import images


def data(random, samples):
    return images(random, samples, 32, 32, 3).astype("float32") / 255, random.integers(0, 4, (samples, 1))


def supervised_contrastive(labels, codes):
    """The cross-entropy between the similarities of a sample with all samples, and equal shares for those of its class."""
    labels = ops.reshape(labels, (-1, 1))
    codes = ops.normalize(codes, axis=1)
    same = ops.cast(ops.equal(labels, ops.transpose(labels)), codes.dtype)
    shares = same / ops.sum(same, axis=1, keepdims=True)
    return -ops.sum(shares * ops.log_softmax(ops.matmul(codes, ops.transpose(codes)) / 0.05, axis=1), axis=1)


def network():
    image = layers.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, 2, padding="same", use_bias=False, name="conv1")(image)
    x = layers.Activation("relu")(layers.BatchNormalization(name="norm1")(x))
    x = layers.Conv2D(32, 3, 2, padding="same", use_bias=False, name="conv2")(x)
    x = layers.Activation("relu")(layers.BatchNormalization(name="norm2")(x))
    x = layers.GlobalAveragePooling2D(name="encoder")(x)
    x = layers.Dense(32, activation="relu", name="projection")(x)
    return keras.Model(image, x), supervised_contrastive
