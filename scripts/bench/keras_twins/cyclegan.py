"""Translation of images without pairs by a CycleGAN: two generators and two discriminators, with losses of cycles and of identity."""
import keras
import numpy as np
from keras import layers, ops

from twin_support import images

LEARNING_RATE = 0.01


def data(random, samples):
    pairs = {name: images(random, samples, 16, 16).astype("float32") / 127.5 - 1 for name in ("horse", "zebra")}
    return pairs, pairs["horse"]


def write(folder, x, y):
    for name, array in x.items():
        np.save(folder / f"{name}s.npy", array)
    return x, y


def norm(name, groups):
    return layers.GroupNormalization(groups, epsilon=1e-5, name=name)


def generator(name):
    """Returns a function that translates an image with the same layers in each call."""
    name += "_0_"
    reflect = layers.Lambda(lambda x: ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect"))
    begin = [reflect, layers.Conv2D(8, 3, use_bias=False, name=name + "begin"), norm(name + "norm1", 8), layers.ReLU(),
             layers.Conv2D(16, 3, 2, padding="same", use_bias=False, name=name + "down"), norm(name + "norm2", 16), layers.ReLU()]
    block = [reflect, layers.Conv2D(16, 3, use_bias=False, name=name + "block_conv"), norm(name + "block_norm", 16)]
    end = [layers.Conv2DTranspose(8, 3, 2, padding="same", use_bias=False, name=name + "up"), norm(name + "norm3", 8), layers.ReLU(),
           layers.Conv2D(3, 5, padding="same", activation="tanh", name=name + "end")]
    return lambda x: chain((y := chain(x, begin)) + chain(y, block), end)


def discriminator(name):
    name += "_0_"
    half = {"strides": 2, "padding": "same"}
    all_layers = [layers.Conv2D(8, 4, name=name + "conv1", **half), layers.LeakyReLU(0.2),
                  layers.Conv2D(16, 4, use_bias=False, name=name + "conv2", **half), norm(name + "norm", 16), layers.LeakyReLU(0.2),
                  layers.Conv2D(1, 4, padding="same", name=name + "verdicts")]
    return lambda x: chain(x, all_layers)


def chain(x, all_layers):
    for layer in all_layers:
        x = layer(x)
    return x


def network():
    horse, zebra = (layers.Input((16, 16, 3), name=name) for name in ("horse", "zebra"))
    to_zebra, to_horse = generator("to_zebra"), generator("to_horse")
    judge_zebra, judge_horse = discriminator("judge_zebra"), discriminator("judge_horse")
    made_zebra, made_horse = to_zebra(horse), to_horse(zebra)
    return keras.Model({"horse": horse, "zebra": zebra}, {
        "cycle_zebra": to_zebra(made_horse), "cycle_horse": to_horse(made_zebra), "same_zebra": to_zebra(zebra), "same_horse": to_horse(horse),
        "real_zebra": judge_zebra(zebra), "made_zebra": judge_zebra(made_zebra), "real_horse": judge_horse(horse),
        "made_horse": judge_horse(made_horse)}), None


def generates(animal):
    def loss(outputs, x):
        difference = [ops.mean(ops.abs(x[animal] - outputs[f"{kind}_{animal}"])) for kind in ("cycle", "same")]
        return ops.mean((outputs[f"made_{animal}"] - 1) ** 2) + 10 * difference[0] + 5 * difference[1]
    return loss


def judges(animal):
    return lambda outputs, _: (ops.mean((outputs[f"real_{animal}"] - 1) ** 2) + ops.mean(outputs[f"made_{animal}"] ** 2)) / 2


# The beginning of the names of a player's layers, and its loss.
PLAYERS = [("to_zebra", generates("zebra")), ("to_horse", generates("horse")),
           ("judge_zebra", judges("zebra")), ("judge_horse", judges("horse"))]
