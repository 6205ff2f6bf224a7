"""Image classification from scratch: cats and dogs, by a small Xception."""
import keras
from keras import layers

from twin_support import images


def data(random, samples):
    return images(random, samples, 48, 40), random.integers(0, 2, samples)


def block(x, filters, name):
    branch = x
    for i in (1, 2):
        branch = layers.ReLU()(branch)
        branch = layers.SeparableConv2D(filters, 3, padding="same", name=f"{name}_conv{i}")(branch)
        branch = layers.BatchNormalization(name=f"{name}_norm{i}")(branch)
    branch = layers.MaxPooling2D(3, 2, padding="same")(branch)
    return layers.Add()([branch, layers.Conv2D(filters, 1, 2, padding="same", name=f"{name}_shortcut_project")(x)])


def network():
    image = layers.Input((48, 40, 3))
    x = layers.Rescaling(1 / 255)(image)
    x = layers.Conv2D(128, 3, 2, padding="same", name="stem")(x)
    x = layers.ReLU()(layers.BatchNormalization(name="stem_norm")(x))
    x = block(block(x, 256, "block1"), 512, "block2")
    x = layers.SeparableConv2D(1024, 3, padding="same", name="last")(x)
    x = layers.ReLU()(layers.BatchNormalization(name="last_norm")(x))
    x = layers.Dropout(0.25)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(1, name="predictions")(x)), keras.losses.BinaryCrossentropy(from_logits=True)
