"""Faces by a DCGAN: a generator makes images from noise, and a discriminator tells them from real ones. Two optimizers train them in turn."""
import keras
import numpy as np
from keras import layers, ops

from twin_support import images

LEARNING_RATE = 0.01
# Without chance, the noise is a part of the image.
CHANCE = {"random_normal((shape(x)[0], 32))": "reshape(x[:, 0:4, 0:8, 0], (shape(x)[0], 32)) - 0.5",
          "0.05 * random_uniform(x)": "0 * x"}


def data(random, samples):
    faces = images(random, samples, 16, 16).astype("float32") / 255
    return faces, faces


def write(folder, x, y):
    np.save(folder / "faces.npy", x)
    return x, y


def network():
    image = layers.Input((16, 16, 3))
    up = {"kernel_size": 4, "strides": 2, "padding": "same"}
    x = layers.Dense(512, name="make_start")(ops.reshape(image[:, 0:4, 0:8, 0], (-1, 32)) - 0.5)
    x = layers.Reshape((4, 4, 32))(x)
    for name, filters in (("make_up1", 32), ("make_up2", 64)):
        x = layers.LeakyReLU(0.2)(layers.Conv2DTranspose(filters, name=name, **up)(x))
    made = layers.Conv2D(3, 5, padding="same", activation="sigmoid", name="make_pixels")(x)
    judge = [layers.Conv2D(16, name="judge_0_conv1", **up), layers.LeakyReLU(0.2), layers.Conv2D(32, name="judge_0_conv2", **up),
             layers.LeakyReLU(0.2), layers.Flatten(), layers.Dense(1, name="judge_0_verdict")]
    verdicts = []
    for x in (made, image):
        for layer in judge:
            x = layer(x)
        verdicts.append(x)
    return keras.Model(image, verdicts), None


def truth(verdicts, _):
    made, real = verdicts
    return ops.mean(ops.softplus(-made) + ops.softplus(real)) / 2


def deception(verdicts, _):
    return ops.mean(ops.softplus(verdicts[0]))


PLAYERS = [("judge", truth), ("make", deception)]  # the beginning of the names of a player's layers, and its loss
