"""Classes of papers with a graph attention network: each paper reads others, with weights that follow from the states of both."""
import keras
import numpy as np
from keras import layers, ops

PAPERS, EDGES = 30, 90


def data(random, samples):
    edges = random.integers(0, PAPERS, (samples, EDGES, 2))
    edges[:, :PAPERS, 0] = np.arange(PAPERS)  # each paper reads at least one
    return {"words": random.random((samples, PAPERS, 50), dtype="float32"), "edges": edges}, random.integers(0, 7, (samples, PAPERS))


class Attention(layers.Layer):
    """The share of each edge, before it is divided by the sum of the shares of all edges of its paper."""

    def build(self, shapes):
        self.read, self.reader = (self.add_weight(name=name, shape=(shapes[0][-1], 1)) for name in ("read", "reader"))

    def call(self, inputs):
        h, edges = inputs
        of = [ops.take_along_axis(h, edges[:, :, k:k + 1], axis=1) for k in (0, 1)]
        return ops.exp(ops.clip(ops.leaky_relu(ops.matmul(of[0], self.reader) + ops.matmul(of[1], self.read), 0.2), -2, 2))


def sums_by_paper(values, edges):
    papers = ops.arange(PAPERS)[None, :, None]
    return ops.sum(ops.where((edges[:, None, :, 0] == papers)[..., None], values[:, None], 0), axis=2)


def read(inputs):
    h, edges, shares, x = inputs
    shares = shares / ops.take_along_axis(sums_by_paper(shares, edges), edges[:, :, :1], axis=1)
    return ops.relu(sums_by_paper(shares * ops.take_along_axis(h, edges[:, :, 1:], axis=1), edges)) + x


def network():
    words, edges = layers.Input((PAPERS, 50), name="words"), layers.Input((EDGES, 2), name="edges", dtype="int32")
    first = x = layers.Dense(32, activation="relu", name="first")(words)
    for i in (1, 2):
        h = layers.Dense(32, use_bias=False, name=f"states{i}")(x)
        shares = Attention(name=f"attend{i}")([h, edges])
        x = layers.Lambda(read, output_shape=(PAPERS, 32))([h, edges, shares, first])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return keras.Model({"words": words, "edges": edges}, layers.Dense(7, name="predictions")(x)), loss
