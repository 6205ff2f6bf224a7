"""Image classification with ConvMixer: depthwise and pointwise convolutions of patches."""
import keras
from keras import layers

from twin_support import images


def data(random, samples):
    return images(random, samples, 32, 32), random.integers(0, 10, samples)


def network():
    image = layers.Input((32, 32, 3))
    x = layers.Conv2D(128, 2, 2, activation="gelu", name="patches")(layers.Rescaling(1 / 255)(image))
    x = layers.BatchNormalization(name="patches_norm")(x)
    for i in range(4):
        y = layers.DepthwiseConv2D(5, padding="same", activation="gelu", name=f"block_{i}_mixing_conv")(x)
        x = layers.Add()([x, layers.BatchNormalization(name=f"block_{i}_mixing_norm")(y)])
        x = layers.Conv2D(128, 1, activation="gelu", name=f"block_{i}_pointwise")(x)
        x = layers.BatchNormalization(name=f"block_{i}_norm")(x)
    x = layers.Dense(10, activation="softmax", name="predictions")(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, x), "sparse_categorical_crossentropy"
