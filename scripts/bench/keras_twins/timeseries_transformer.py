"""Time series classification with a transformer: each block has attention and two convolutions of width 1."""
import keras
from keras import layers


def data(random, samples):
    return random.normal(size=(samples, 50, 1)).astype("float32"), random.integers(0, 2, samples)


def network():
    series = x = layers.Input((50, 1))
    for i in range(4):
        y = layers.MultiHeadAttention(4, 256, dropout=0.25, name=f"block_{i}_mixing_attention")(x, x)
        x = layers.Add()([x, layers.LayerNormalization(epsilon=1e-6, name=f"block_{i}_mixing_norm")(y)])
        y = layers.Conv1D(4, 1, activation="relu", name=f"block_{i}_mlp_wide")(x)
        y = layers.Conv1D(1, 1, name=f"block_{i}_mlp_narrow")(y)
        x = layers.Add()([x, layers.LayerNormalization(epsilon=1e-6, name=f"block_{i}_mlp_norm")(y)])
    x = layers.Dense(128, activation="relu", name="hidden")(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(series, layers.Dense(2, activation="softmax", name="predictions")(x))
    return model, "sparse_categorical_crossentropy"
