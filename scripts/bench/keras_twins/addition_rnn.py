"""Sequence to sequence learning of additions: an LSTM reads "535+61", another one writes "596". The characters are one-hot."""
import keras
import numpy as np
from keras import layers


def data(random, samples):
    return np.eye(12, dtype="float32")[random.integers(0, 12, (samples, 7))], random.integers(0, 12, (samples, 4))


def network():
    model = keras.Sequential([
        layers.Input((7, 12)), layers.LSTM(128, name="encoder"), layers.RepeatVector(4),
        layers.LSTM(128, return_sequences=True, name="decoder"), layers.Dense(12, activation="softmax", name="characters")])
    return model, "sparse_categorical_crossentropy"
