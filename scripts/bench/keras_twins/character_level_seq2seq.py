"""Character-level translation from English to French: the decoder's LSTM begins with the states of the encoder's."""
import keras
import numpy as np
from keras import layers

LEARNING_RATE = 3.0  # the gradients of the encoder are small

def data(random, samples):
    french = random.integers(0, 93, (samples, 20))
    one_hot = {"english": np.eye(71, dtype="float32")[random.integers(0, 71, (samples, 16))],
               "french": np.eye(93, dtype="float32")[french[:, :-1]]}
    return one_hot, french[:, 1:]


def network():
    english, french = layers.Input((16, 71), name="english"), layers.Input((19, 93), name="french")
    states = layers.LSTM(256, return_state=True, name="encoder")(english)[1:]
    x = layers.LSTM(256, return_sequences=True, name="decoder")(french, initial_state=states)
    x = layers.Dense(93, activation="softmax", name="characters")(x)
    return keras.Model({"english": english, "french": french}, x), "sparse_categorical_crossentropy"
