"""Simple MNIST convnet: digits of 28x28 pixels, two convolutions, one dense layer."""
import keras
from keras import layers


def data(random, samples):
    return random.integers(0, 256, (samples, 28, 28, 1), "uint8"), random.integers(0, 10, samples)


def network():
    model = keras.Sequential([
        layers.Input((28, 28, 1)), layers.Rescaling(1 / 255),
        layers.Conv2D(32, 3, activation="relu", name="conv1"), layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu", name="conv2"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dropout(0.5), layers.Dense(10, activation="softmax", name="predictions")])
    return model, "sparse_categorical_crossentropy"
