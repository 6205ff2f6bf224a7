"""Image classification with a vision transformer: patches, positions, attention blocks, and a head on all patches."""
import keras
from keras import layers

from twin_support import Positions, images


def data(random, samples):
    return images(random, samples, 72, 72), random.integers(0, 100, samples)


def attention_block(x, name):
    y = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_mixing_norm")(x)
    x = layers.Add()([x, layers.MultiHeadAttention(4, 64, dropout=0.1, name=f"{name}_mixing_attention")(y, y)])
    y = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_mlp_norm")(x)
    y = layers.Dropout(0.1)(layers.Dense(128, activation="gelu", name=f"{name}_mlp_wide")(y))
    y = layers.Dropout(0.1)(layers.Dense(64, activation="gelu", name=f"{name}_mlp_narrow")(y))
    return layers.Add()([x, y])


def network():
    image = layers.Input((72, 72, 3))
    x = layers.Rescaling(1 / 127.5, offset=-1)(image)
    x = layers.Reshape((144, 64))(layers.Conv2D(64, 6, 6, name="patches")(x))
    x = Positions(name="positions")(x)
    for i in range(4):
        x = attention_block(x, f"block_{i}")
    x = layers.Dropout(0.5)(layers.Flatten()(layers.LayerNormalization(epsilon=1e-6, name="last_norm")(x)))
    for i, units in enumerate((256, 128), 1):
        x = layers.Dropout(0.5)(layers.Dense(units, activation="gelu", name=f"head{i}")(x))
    model = keras.Model(image, layers.Dense(100, name="predictions")(x))
    return model, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
