# Trains an LSTM that predicts the next value of a series from the 48 values before it. The arrays are in $TRAINCTL_DATA/series.
import os

import keras
import numpy as np
from keras import layers


def array(name):
    return np.load(f"{os.environ['TRAINCTL_DATA']}/series/{name}.npy")


model = keras.Sequential([keras.Input((48, 1)), layers.LSTM(64), layers.Dense(1)])
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(array("x_train"), array("y_train"), batch_size=64, epochs=5,
          validation_data=(array("x_test"), array("y_test")))
