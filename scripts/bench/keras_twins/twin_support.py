"""What several examples need: random images, and layers that Keras' examples define themselves."""
import keras
import numpy as np


def images(random, samples, height, width, channels=3):
    """Returns images of coarse random patterns with some noise. Those of pure noise would give hardly any gradient."""
    coarse = random.uniform(0, 224, (samples, -(-height // 8), -(-width // 8), channels))
    fine = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2)[:, :height, :width]
    return (fine + random.uniform(0, 31, fine.shape)).astype("uint8")


class Positions(keras.layers.Layer):
    """Adds a learned vector to each position of a sequence (positions, channels)."""

    def build(self, shape):
        self.embeddings = self.add_weight(name="embeddings", shape=shape[1:], initializer="glorot_uniform")

    def call(self, x):
        return x + self.embeddings


def train_in_turn(model, players, x, learning_rate, batch):
    """Makes a step of plain SGD for each batch and player, one player after the other, each after a forward pass of its own.

    players: pairs of the beginning of the names of a player's layers, and its loss, a function of the model's outputs and inputs.
    Needs Keras with JAX.
    """
    import jax

    variables = model.trainable_variables
    values = [variable.value for variable in variables]
    fixed = [variable.value for variable in model.non_trainable_variables]

    def step_of(prefix, loss):
        own = [i for i, variable in enumerate(variables) if variable.path.startswith(prefix)]

        @jax.jit
        def step(values, part):
            def value_of(changed):
                by_number = dict(zip(own, changed))
                outputs, _ = model.stateless_call([by_number.get(i, value) for i, value in enumerate(values)], fixed, part, training=True)
                return loss(outputs, part)

            gradients = dict(zip(own, jax.grad(value_of)([values[i] for i in own])))
            return [value - learning_rate * gradients[i] if i in gradients else value for i, value in enumerate(values)]

        return step

    steps = [step_of(*player) for player in players]
    samples = len(next(iter(x.values())) if isinstance(x, dict) else x)
    for first in range(0, samples, batch):
        part = jax.tree.map(lambda array: jax.numpy.asarray(array[first:first + batch], model.compute_dtype), x)
        for step in steps:
            values = step(values, part)
    for variable, value in zip(variables, values):
        variable.assign(value)
