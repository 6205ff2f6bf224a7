"""MNIST with dense layers (the network of Keras' quickstart)."""
import keras
from keras import layers


def data(random, samples):
    return random.integers(0, 256, (samples, 28, 28), "uint8"), random.integers(0, 10, samples)


def network():
    model = keras.Sequential([
        layers.Input((28, 28)), layers.Rescaling(1 / 255), layers.Flatten(),
        layers.Dense(512, activation="relu", name="hidden1"), layers.Dropout(0.2),
        layers.Dense(512, activation="relu", name="hidden2"), layers.Dropout(0.2), layers.Dense(10, name="predictions")])
    return model, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
