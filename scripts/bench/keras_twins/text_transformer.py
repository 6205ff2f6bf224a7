"""Text classification with a transformer block."""
import keras
from keras import layers

from twin_support import Positions


def data(random, samples):
    return random.integers(0, 20000, (samples, 50)), random.integers(0, 2, samples)


def network():
    words = layers.Input((50,))
    x = Positions(name="positions")(layers.Embedding(20000, 32, name="words")(words))
    x = layers.Add()([x, layers.MultiHeadAttention(2, 32, name="mixing_attention")(x, x)])
    x = layers.LayerNormalization(epsilon=1e-6, name="norm1")(x)
    y = layers.Dense(32, name="mlp_narrow")(layers.Dense(32, activation="relu", name="mlp_wide")(x))
    x = layers.LayerNormalization(epsilon=1e-6, name="norm2")(layers.Add()([x, y]))
    x = layers.Dense(20, activation="relu", name="hidden")(layers.GlobalAveragePooling1D()(x))
    return keras.Model(words, layers.Dense(2, activation="softmax", name="predictions")(x)), "sparse_categorical_crossentropy"
