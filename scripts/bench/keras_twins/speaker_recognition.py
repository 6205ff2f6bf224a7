"""Speaker recognition: residual blocks of convolutions over the frequencies of a second of speech."""
import keras
from keras import layers


def data(random, samples):
    return random.normal(size=(samples, 200, 1)).astype("float32"), random.integers(0, 5, samples)


def network():
    frequencies = x = layers.Input((200, 1))
    for i, filters in enumerate((16, 32), 1):
        y = layers.Conv1D(filters, 3, padding="same", activation="relu", name=f"block{i}_conv1")(x)
        y = layers.Conv1D(filters, 3, padding="same", name=f"block{i}_conv2")(y)
        x = layers.Add()([y, layers.Conv1D(filters, 1, padding="same", name=f"block{i}_shortcut_project")(x)])
        x = layers.MaxPooling1D(2, 2)(layers.ReLU()(x))
    x = layers.Flatten()(layers.AveragePooling1D(3, 3)(x))
    x = layers.Dense(128, activation="relu", name="hidden")(x)
    return keras.Model(frequencies, layers.Dense(5, activation="softmax", name="speakers")(x)), "sparse_categorical_crossentropy"
