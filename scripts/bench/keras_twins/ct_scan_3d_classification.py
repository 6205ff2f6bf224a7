"""Classification of CT scans by a network with convolutions over volumes: are there signs of a viral pneumonia?"""
import keras
from keras import layers

from twin_support import images

LEARNING_RATE = 0.01


def data(random, samples):
    slices = images(random, samples * 4, 24, 26, 1).reshape(samples, 4, 24, 26, 1).repeat(8, axis=1)[:, :30]
    return ((slices + random.uniform(0, 31, slices.shape)) / 286).astype("float32"), random.integers(0, 2, samples)


def network():
    model = keras.Sequential([layers.Input((30, 24, 26, 1))])
    for i, filters in enumerate((64, 64, 128), 1):
        model.add(layers.Conv3D(filters, 3, activation="relu", name=f"conv{i}"))
        model.add(layers.MaxPooling3D(2))
        model.add(layers.BatchNormalization(name=f"norm{i}"))
    model.add(layers.GlobalAveragePooling3D())
    model.add(layers.Dense(512, activation="relu", name="hidden"))
    model.add(layers.Dropout(0.3))
    model.add(layers.Dense(1, activation="sigmoid", name="predictions"))
    return model, "binary_crossentropy"
