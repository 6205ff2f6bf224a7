"""Transfer learning: a new head on a frozen base, here a small one with batch normalisation."""
import keras
from keras import layers

from twin_support import images


def data(random, samples):
    return images(random, samples, 40, 40), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([
        layers.Input((40, 40, 3)), layers.Rescaling(1 / 127.5, offset=-1),
        layers.Conv2D(32, 3, 2, use_bias=False, name="base1"), layers.BatchNormalization(name="base_norm1"), layers.ReLU(),
        layers.Conv2D(64, 3, 2, use_bias=False, name="base2"), layers.BatchNormalization(name="base_norm2"), layers.ReLU(),
        layers.GlobalAveragePooling2D(), layers.Dropout(0.2), layers.Dense(1, name="head")])
    for layer in model.layers:
        layer.trainable = not layer.name.startswith("base")
    return model, keras.losses.BinaryCrossentropy(from_logits=True)
