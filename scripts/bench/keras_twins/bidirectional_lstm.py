"""Bidirectional LSTMs read film reviews."""
import keras
from keras import layers


def data(random, samples):
    return random.integers(0, 20000, (samples, 40)), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([
        layers.Input((40,)), layers.Embedding(20000, 128, name="words"),
        layers.Bidirectional(layers.LSTM(64, return_sequences=True, name="layer"), name="first"),
        layers.Bidirectional(layers.LSTM(64, name="layer"), name="second"),
        layers.Dense(1, activation="sigmoid", name="predictions")])
    return model, "binary_crossentropy"
