"""Text generation with a miniature GPT: the network predicts the next word at every position."""
import keras
from keras import layers

from twin_support import Positions


def data(random, samples):
    words = random.integers(0, 5000, (samples, 33))
    return words[:, :-1], words[:, 1:]


def network():
    words = layers.Input((32,))
    x = Positions(name="positions")(layers.Embedding(5000, 64, name="words")(words))
    x = layers.Add()([x, layers.MultiHeadAttention(2, 64, name="mixing_attention")(x, x, use_causal_mask=True)])
    x = layers.LayerNormalization(epsilon=1e-6, name="norm1")(x)
    y = layers.Dense(64, name="mlp_narrow")(layers.Dense(64, activation="relu", name="mlp_wide")(x))
    x = layers.LayerNormalization(epsilon=1e-6, name="norm2")(layers.Add()([x, y]))
    model = keras.Model(words, layers.Dense(5000, name="predictions")(x))
    return model, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
