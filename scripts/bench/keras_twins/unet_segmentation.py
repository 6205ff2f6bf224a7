"""Image segmentation with a network like U-Net: each pixel of a pet's photo is pet, border or background."""
import keras
from keras import layers

from twin_support import images

LEARNING_RATE = 0.01


def data(random, samples):
    return images(random, samples, 48, 32), random.integers(0, 3, (samples, 48, 32))


def convolutions(x, name, layer, filters):
    for i in (1, 2):
        x = layer(filters, 3, padding="same", name=f"{name}_conv{i}")(layers.ReLU()(x))
        x = layers.BatchNormalization(name=f"{name}_norm{i}")(x)
    return x


def network():
    image = layers.Input((48, 32, 3))
    x = layers.Conv2D(32, 3, 2, padding="same", name="stem")(layers.Rescaling(1 / 255)(image))
    x = layers.ReLU()(layers.BatchNormalization(name="stem_norm")(x))
    for i, filters in enumerate((64, 128), 1):
        y = convolutions(x, f"down{i}", layers.SeparableConv2D, filters)
        x = layers.Add()([layers.MaxPooling2D(3, 2, padding="same")(y),
                          layers.Conv2D(filters, 1, 2, padding="same", name=f"down{i}_shortcut_project")(x)])
    for i, filters in enumerate((64, 32), 1):
        y = layers.UpSampling2D()(convolutions(x, f"up{i}", layers.Conv2DTranspose, filters))
        x = layers.Conv2D(filters, 1, padding="same", name=f"up{i}_shortcut_project")(layers.UpSampling2D()(x))
        x = layers.Add()([y, x])
    x = layers.Conv2D(3, 3, padding="same", name="predictions")(layers.UpSampling2D()(x))
    return keras.Model(image, x), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
