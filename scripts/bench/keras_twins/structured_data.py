"""Structured data classification from scratch: heart disease by numbers and words of a table."""
import csv

import keras
import numpy as np
from keras import layers

WORDS = {"sex": ["f", "m"], "thal": ["fixed", "normal", "reversible"]}


def data(random, samples):
    columns = {"age": random.integers(30, 80, samples), "pressure": random.normal(130, 17, samples).round(1)}
    columns |= {name: random.permutation(np.resize(words, samples)) for name, words in WORDS.items()}
    return columns, random.permutation(np.resize(["no", "yes"], samples))


def write(folder, columns, disease):
    """Writes the table, and returns the values that its description promises."""
    with open(folder / "patients.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*columns, "disease"])
        table.writerows(zip(*columns.values(), disease))
    numbers = [(columns[name] - columns[name].mean()) / columns[name].std() for name in ("age", "pressure")]
    one_hot = [columns[name] == word for name, words in WORDS.items() for word in words]
    return np.stack([*numbers, *one_hot], 1).astype("float32"), (disease == "yes").astype("float32")[:, None]


def network():
    model = keras.Sequential([
        layers.Input((7,)), layers.Dense(32, activation="relu", name="hidden"), layers.Dropout(0.5),
        layers.Dense(1, activation="sigmoid", name="predictions")])
    return model, "binary_crossentropy"
