"""Recommendations with small tables of embeddings: products of the vectors of quotients and remainders, and blocks of different widths."""
import keras
from keras import layers, ops

LEARNING_RATE = 20.0  # the gradients are small

# Of films by their frequency: the name of the table, its first film, its number of films, and the size of its vectors.
BLOCKS = [("often", 0, 400, 64), ("seldom", 2000, 2000, 16), ("sometimes", 400, 1600, 32)]


def data(random, samples):
    return ({"user": random.integers(0, 625, (samples, 1)), "film": random.integers(0, 4000, (samples, 1))},
            random.random((samples, 1), dtype="float32"))


class QuotientsAndRemainders(layers.Layer):
    def build(self, shape):
        self.quotients, self.remainders = (self.add_weight(name=name, shape=(25, 64), initializer="random_uniform")
                                           for name in ("quotients", "remainders"))

    def call(self, x):
        return ops.take(self.quotients, x[:, 0] // 25, axis=0) * ops.take(self.remainders, x[:, 0] % 25, axis=0)


class Blocks(layers.Layer):
    def build(self, shape):
        self.blocks = [[self.add_weight(name=name, shape=(films, width), initializer="random_uniform"),
                        self.add_weight(name=f"{name}_map", shape=(width, 64))] for name, _, films, width in BLOCKS]

    def call(self, x):
        y = 0
        for (table, projection), (_, first, films, _) in zip(self.blocks, BLOCKS):
            inside = ops.logical_and(x >= first, x < first + films)
            vectors = ops.matmul(ops.take(table, ops.clip(x[:, 0] - first, 0, films - 1), axis=0), projection)
            y = y + ops.where(inside, vectors, 0)
        return y


def network():
    user, film = layers.Input((1,), name="user", dtype="int32"), layers.Input((1,), name="film", dtype="int32")
    match = layers.Dot(1)([QuotientsAndRemainders(name="user_vector")(user), Blocks(name="film_vector")(film)])
    return keras.Model({"user": user, "film": film}, layers.Activation("sigmoid")(match)), "mean_squared_error"
