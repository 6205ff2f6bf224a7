"""Knowledge distillation: the student's loss is that of the classes, plus the divergence from the softened logits of a frozen teacher."""
import keras
import numpy as np
from keras import layers, ops

from twin_support import images

LEARNING_RATE = 0.01
TEMPERATURE, ALPHA = 10, 0.1


class Distillation(layers.Layer):
    """Adds the divergence of the softened probabilities, and returns the student's logits."""

    def call(self, teacher, student):
        divergence = keras.losses.kl_divergence(ops.softmax(teacher / TEMPERATURE), ops.softmax(student / TEMPERATURE))
        self.add_loss((1 - ALPHA) * TEMPERATURE**2 * ops.mean(divergence))
        return student


def data(random, samples):
    return images(random, samples, 28, 28, 1).astype("float32") / 255, random.integers(0, 10, samples)


def write(folder, x, y):
    np.save(folder / "digits.npy", x)
    np.save(folder / "classes.npy", y)
    return x, y


def classifier(image, name, filters, last):
    x = layers.Conv2D(filters, 3, 2, padding="same", name=f"{name}_conv1")(image)
    x = layers.MaxPooling2D(2, 1, padding="same")(layers.LeakyReLU(0.2)(x))
    x = layers.Conv2D(2 * filters, 3, 2, padding="same", name=f"{name}_conv2")(x)
    return layers.Dense(10, name=last)(layers.Flatten()(x))


def network():
    image = layers.Input((28, 28, 1))
    model = keras.Model(image, Distillation()(classifier(image, "teacher", 256, "teacher_logits"),
                                              classifier(image, "student", 16, "student")))
    for layer in model.layers:
        layer.trainable = not layer.name.startswith("teacher")
    crossentropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return model, lambda y, logits: ALPHA * crossentropy(y, logits)
