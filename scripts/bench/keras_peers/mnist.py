# Trains Keras' "simple MNIST convnet" on the original MNIST files in $TRAINCTL_DATA/mnist.
import gzip
import os

import keras
import numpy as np
from keras import layers


def read(name, offset):
    with gzip.open(f"{os.environ['TRAINCTL_DATA']}/mnist/{name}-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def images(name):
    return read(name, 16).reshape(-1, 28, 28, 1).astype("float32") / 255


x_train, y_train = images("train-images-idx3"), read("train-labels-idx1", 8)
x_test, y_test = images("t10k-images-idx3"), read("t10k-labels-idx1", 8)

model = keras.Sequential([
    keras.Input((28, 28, 1)),
    layers.Conv2D(32, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Flatten(),
    layers.Dropout(0.5),
    layers.Dense(10, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=5, validation_data=(x_test, y_test))
