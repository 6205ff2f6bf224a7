"""Generative adversarial network of faces: each step updates the discriminator, and then the generator against it."""
import jax
import keras
import numpy as np
from keras import layers, ops

from twin_support import images

LEARNING_RATE = 1.0


def data(random, samples):
    faces = images(random, samples, 64, 64).astype("float32") / 255
    noise = random.normal(size=(samples, 128)).astype("float32")
    return {"image": faces, "noise": noise}, 0.05 * random.random((samples, 1), dtype="float32")


def write(folder, x, labels):
    for name, values in (("faces", x["image"]), ("noise", x["noise"]), ("labels", labels)):
        np.save(folder / f"{name}.npy", values)
    return x, labels


def network():
    image, noise = layers.Input((64, 64, 3), name="image"), layers.Input((128,), name="noise")
    x = layers.Reshape((8, 8, 128))(layers.Dense(8192, name="make_dense")(noise))
    for i, filters in enumerate((128, 256, 512)):
        x = layers.LeakyReLU(0.2)(layers.Conv2DTranspose(filters, 4, 2, padding="same", name=f"make_up{i + 1}")(x))
    made = layers.Conv2D(3, 5, padding="same", activation="sigmoid", name="make_pixels")(x)
    judge = []
    for i, filters in enumerate((64, 128, 128)):
        judge += [layers.Conv2D(filters, 4, 2, padding="same", name=f"judge_conv{i + 1}"), layers.LeakyReLU(0.2)]
    judge += [layers.Flatten(), layers.Dense(1, activation="sigmoid", name="judge")]
    verdicts = []
    for x in (made, image):
        for layer in judge:
            x = layer(x)
        verdicts.append(x)
    return keras.Model({"image": image, "noise": noise}, verdicts), None


def train(model, x, labels, batch, rate):
    """Makes the steps of both networks, one after the other."""
    crossentropy = keras.losses.BinaryCrossentropy()

    def discriminator(made, real, of_real):
        return crossentropy(ops.concatenate([ops.ones_like(made), of_real]), ops.concatenate([made, real]))

    def generator(made, real, of_real):
        return crossentropy(ops.zeros_like(made), made)

    paths = [variable.path for variable in model.trainable_variables]

    def gradients_of(loss):
        def value(own, others, inputs, of_real):
            values = [own[path] if path in own else others[path] for path in paths]
            return loss(*model.stateless_call(values, [], inputs)[0], of_real)

        return jax.jit(jax.grad(value))

    players = {"judge": gradients_of(discriminator), "make": gradients_of(generator)}
    for begin in range(0, len(labels), batch):
        inputs = {key: ops.convert_to_tensor(values[begin:begin + batch], keras.config.floatx()) for key, values in x.items()}
        of_real = ops.convert_to_tensor(labels[begin:begin + batch], keras.config.floatx())
        for name, gradients in players.items():
            own = {path: variable.value for path, variable in zip(paths, model.trainable_variables) if path.startswith(name)}
            others = {path: variable.value for path, variable in zip(paths, model.trainable_variables) if path not in own}
            found = gradients(own, others, inputs, of_real)
            for path, variable in zip(paths, model.trainable_variables):
                if path in own:
                    variable.assign(variable - rate * found[path])
