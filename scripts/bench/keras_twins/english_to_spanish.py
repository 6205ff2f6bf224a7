"""English-to-Spanish translation with a transformer: an encoder of the source, and a causal decoder that attends to it."""
import keras
from keras import layers

from twin_support import Positions


def data(random, samples):
    spanish = random.integers(1, 3000, (samples, 21))
    return {"english": random.integers(1, 3000, (samples, 18)), "spanish": spanish[:, :-1]}, spanish[:, 1:]


def attend(query, value, name, **options):
    return layers.Add()([query, layers.MultiHeadAttention(8, 64, name=name)(query, value, **options)])


def mlp(x, name):
    y = layers.Dense(64, name=f"{name}_narrow")(layers.Dense(256, activation="relu", name=f"{name}_wide")(x))
    return layers.Add()([x, y])


def network():
    english, spanish = layers.Input((18,), name="english"), layers.Input((20,), name="spanish")
    x = Positions(name="positions")(layers.Embedding(3000, 64, name="words")(english))
    x = layers.LayerNormalization(name="encoder_norm1")(attend(x, x, "encoder_mixing_attention"))
    encoded = layers.LayerNormalization(name="encoder")(mlp(x, "encoder_mlp"))
    x = Positions(name="target_positions")(layers.Embedding(3000, 64, name="target_words")(spanish))
    x = layers.LayerNormalization(name="decoder_norm1")(attend(x, x, "decoder_mixing_attention", use_causal_mask=True))
    x = layers.LayerNormalization(name="decoder_norm2")(attend(x, encoded, "reading"))
    x = layers.LayerNormalization(name="decoder_norm3")(mlp(x, "decoder_mlp"))
    x = layers.Dense(3000, activation="softmax", name="predictions")(layers.Dropout(0.5)(x))
    model = keras.Model({"english": english, "spanish": spanish}, x)
    return model, keras.losses.SparseCategoricalCrossentropy(ignore_class=0)
