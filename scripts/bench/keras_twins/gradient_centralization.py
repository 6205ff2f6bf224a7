"""Gradient centralization: pictures of horses and of humans, five convolutions, and gradients with zero means."""
import keras
from keras import layers, ops
from twin_support import images


class CentralizedSGD(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        grads = [g - ops.mean(g, tuple(range(len(g.shape) - 1)), keepdims=True) if len(g.shape) > 1 else g for g in grads]
        return super().apply(grads, trainable_variables)


def optimizer(rate):
    """The example has no clipnorm. It is here to be compared, too."""
    return CentralizedSGD(rate, clipnorm=0.05)


LEARNING_RATE = 0.02


def data(random, samples):
    return images(random, samples, 128, 128), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([layers.Input((128, 128, 3)), layers.Rescaling(1 / 255)])
    for i, filters in enumerate((16, 32, 64, 64, 64), 1):
        model.add(layers.Conv2D(filters, 3, activation="relu", name=f"conv{i}"))
        if i in (2, 3):
            model.add(layers.Dropout(0.5))
        model.add(layers.MaxPooling2D(2))
    for layer in (layers.Flatten(), layers.Dropout(0.5), layers.Dense(512, activation="relu", name="hidden"),
                  layers.Dense(1, activation="sigmoid", name="kind")):
        model.add(layer)
    return model, "binary_crossentropy"
