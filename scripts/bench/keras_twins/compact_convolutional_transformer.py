"""Compact convolutional transformer: convolutions make the tokens, and a weighted mean of the sequence is classified."""
import keras
from keras import layers, ops

from twin_support import Positions, images


def data(random, samples):
    return images(random, samples, 32, 32), random.integers(0, 10, samples)


def network():
    image = layers.Input((32, 32, 3))
    x = layers.Rescaling(1 / 255)(image)
    for i, filters in enumerate((64, 128), 1):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False, activation="relu", kernel_initializer="he_normal",
                          name=f"tokens{i}")(x)
        x = layers.MaxPooling2D(3, 2, padding="same")(layers.ZeroPadding2D(1)(x))
    x = Positions(name="positions")(layers.Reshape((-1, 128))(x))
    for i in range(2):
        y = layers.LayerNormalization(epsilon=1e-5, name=f"block_{i}_mixing_norm")(x)
        x = layers.Add()([x, layers.MultiHeadAttention(2, 128, dropout=0.1, name=f"block_{i}_mixing_attention")(y, y)])
        y = layers.LayerNormalization(epsilon=1e-5, name=f"block_{i}_mlp_norm")(x)
        y = layers.Dense(128, activation="gelu", name=f"block_{i}_mlp_wide")(y)
        x = layers.Add()([x, layers.Dense(128, activation="gelu", name=f"block_{i}_mlp_narrow")(y)])
    x = layers.LayerNormalization(epsilon=1e-5, name="last_norm")(x)
    shares = layers.Softmax(axis=1)(layers.Dense(1, name="importance")(x))
    x = layers.Flatten()(layers.Dot(axes=1)([shares, x]))
    model = keras.Model(image, layers.Dense(10, name="predictions")(x))
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    return model, lambda classes, logits: loss(ops.one_hot(classes, 10), logits)
