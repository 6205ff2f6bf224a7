"""Text classification from scratch: convolutions over the words of a film review."""
import keras
from keras import layers


def data(random, samples):
    return random.integers(0, 20000, (samples, 100)), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([layers.Input((100,)), layers.Embedding(20000, 128, name="words"), layers.Dropout(0.5)])
    for i in (1, 2):
        model.add(layers.Conv1D(128, 7, 3, activation="relu", name=f"conv{i}"))
    model.add(layers.GlobalMaxPooling1D())
    model.add(layers.Dense(128, activation="relu", name="hidden"))
    model.add(layers.Dropout(0.5))
    model.add(layers.Dense(1, activation="sigmoid", name="predictions"))
    return model, "binary_crossentropy"
