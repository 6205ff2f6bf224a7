"""Time series classification with convolutions: does an engine's noise show a fault?"""
import keras
from keras import layers


def data(random, samples):
    return random.normal(size=(samples, 100, 1)).astype("float32"), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([layers.Input((100, 1))])
    for i in range(3):
        model.add(layers.Conv1D(64, 3, padding="same", name=f"block_{i}_conv"))
        model.add(layers.BatchNormalization(name=f"block_{i}_norm"))
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling1D())
    model.add(layers.Dense(2, activation="softmax", name="predictions"))
    return model, "sparse_categorical_crossentropy"
