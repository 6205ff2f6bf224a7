"""Text classification with FNet: the real part of a Fourier transform over positions and features, instead of attention."""
import keras
from keras import layers, ops

from twin_support import Positions


def data(random, samples):
    return random.integers(0, 8000, (samples, 40)), random.integers(0, 2, samples)


def network():
    words = layers.Input((40,))
    x = Positions(name="positions")(layers.Embedding(8000, 32, name="words")(words))
    x = layers.Add()([x, layers.Lambda(lambda x: ops.fft2((x, ops.zeros_like(x)))[0])(x)])
    x = layers.LayerNormalization(name="norm1")(x)
    y = layers.Dense(32, name="mlp_narrow")(layers.Dense(64, activation="relu", name="mlp_wide")(x))
    x = layers.LayerNormalization(name="norm2")(layers.Add()([x, y]))
    return keras.Model(words, layers.Dense(1, activation="sigmoid", name="predictions")(layers.GlobalAveragePooling1D()(x))), "binary_crossentropy"
