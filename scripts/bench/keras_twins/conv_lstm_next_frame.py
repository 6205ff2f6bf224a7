"""Next-frame prediction of films with convolutional LSTMs, with fewer filters and on smaller and shorter films than in the example."""
import keras
from keras import layers


LEARNING_RATE = 0.001


def data(random, samples):
    """Squares that move by one pixel with each frame. The targets are the next frames."""
    films = random.uniform(0, 0.1, (samples, 5, 8, 8, 1))
    for film in films:
        y, x = random.integers(1, 5, 2)
        for t, frame in enumerate(film):
            frame[y + t:y + t + 4, x + t:x + t + 4] += 0.8
    films = films.astype("float32")
    return films[:, :-1], films[:, 1:]


def network():
    model = keras.Sequential([layers.Input((4, 8, 8, 1))])
    for i, size in enumerate((5, 3, 1), 1):
        model.add(layers.ConvLSTM2D(16, size, padding="same", return_sequences=True, activation="relu", name=f"lstm{i}"))
        if i < 3:
            model.add(layers.BatchNormalization(name=f"norm{i}"))
    model.add(layers.Conv3D(1, 3, activation="sigmoid", padding="same", name="frames"))
    return model, "binary_crossentropy"
