"""Convolutional autoencoder that removes noise from digits: the targets are the clean images."""
import keras
from keras import layers

from twin_support import images


def data(random, samples):
    clean = images(random, samples, 28, 28, 1) / 255
    return (clean + random.normal(0, 0.4, clean.shape)).clip(0, 1).astype("float32"), clean.astype("float32")


def network():
    model = keras.Sequential([
        layers.Input((28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu", padding="same", name="conv1"), layers.MaxPooling2D(padding="same"),
        layers.Conv2D(32, 3, activation="relu", padding="same", name="conv2"), layers.MaxPooling2D(padding="same"),
        layers.Conv2DTranspose(32, 3, 2, activation="relu", padding="same", name="up1"),
        layers.Conv2DTranspose(32, 3, 2, activation="relu", padding="same", name="up2"),
        layers.Conv2D(1, 3, activation="sigmoid", padding="same", name="pixels")])
    return model, "binary_crossentropy"
