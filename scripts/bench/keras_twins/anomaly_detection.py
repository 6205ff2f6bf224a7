"""Anomaly detection in a time series: an autoencoder of convolutions learns windows of normal values."""
import keras
from keras import layers


def data(random, samples):
    windows = random.normal(size=(samples, 96, 1)).cumsum(1).astype("float32") / 10
    return windows, windows


def network():
    model = keras.Sequential([
        layers.Input((96, 1)),
        layers.Conv1D(32, 7, 2, padding="same", activation="relu", name="conv1"), layers.Dropout(0.2),
        layers.Conv1D(16, 7, 2, padding="same", activation="relu", name="conv2"),
        layers.Conv1DTranspose(16, 7, 2, padding="same", activation="relu", name="up1"), layers.Dropout(0.2),
        layers.Conv1DTranspose(32, 7, 2, padding="same", activation="relu", name="up2"),
        layers.Conv1DTranspose(1, 7, padding="same", name="values")])
    return model, "mean_squared_error"
