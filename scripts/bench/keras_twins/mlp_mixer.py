"""Image classification with an MLP-Mixer: dense layers over the patches, then over the channels."""
import keras
from keras import layers

from twin_support import images


def data(random, samples):
    return images(random, samples, 64, 64), random.integers(0, 100, samples)


def mlp(x, name, wide):
    x = layers.Dense(wide, activation="gelu", name=f"{name}_wide")(x)
    return layers.Dropout(0.2)(layers.Dense(64, name=f"{name}_narrow")(x))


def network():
    image = layers.Input((64, 64, 3))
    x = layers.Conv2D(64, 8, 8, name="patches")(layers.Rescaling(1 / 255)(image))
    x = layers.Reshape((64, 64))(x)
    for i in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization(name=f"block_{i}_tokens_norm")(x))
        x = layers.Add()([x, layers.Permute((2, 1))(mlp(y, f"block_{i}_tokens", 64))])
        y = layers.LayerNormalization(name=f"block_{i}_channels_norm")(x)
        x = layers.Add()([x, mlp(y, f"block_{i}_channels", 256)])
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling1D()(x))
    model = keras.Model(image, layers.Dense(100, name="predictions")(x))
    return model, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
