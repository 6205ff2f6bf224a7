"""The cases of ops.safetensors: their random inputs and their recorded results."""
import pathlib
import zlib

import numpy as np
import torch
from safetensors.numpy import save_file

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
values = {}  # the arrays of ops.safetensors, by name


def bfloat16(array):
    """Rounds to values that bfloat16 can represent."""
    return torch.tensor(np.asarray(array, dtype=np.float32)).bfloat16().double().numpy()


class Case:
    """Draws the inputs of one case from a generator seeded by its name, and records PyTorch's results for them."""

    def __init__(self, name):
        self.name = name
        self.random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.inputs = []

    def normal(self, *shape, scale=1.0, shift=0.0):
        return self.add(bfloat16(shift + scale * self.random.standard_normal(shape)))

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.add(bfloat16(self.random.uniform(low, high, shape)))

    def away_from_zero(self, *shape, distance=0.1, scale=1.0):
        """Normal values, moved away from the kink at 0."""
        x = scale * self.random.standard_normal(shape)
        return self.add(bfloat16(x + distance * np.sign(x)))

    def distinct(self, n, h, w, c):
        """Images with h * w different values in each channel, so that no window has two maxima."""
        order = np.argsort(self.random.random((n, h * w, c)), axis=1)
        return self.add(bfloat16((order.reshape(n, h, w, c) - h * w / 2) / 16))

    def integers(self, *shape, bound, dtype=np.int32):
        return self.add(self.random.integers(0, bound, shape, dtype=dtype))

    def add(self, array, exact=True):
        array = np.asarray(array)
        self.inputs.append(array)
        floating = array.dtype.kind == "f"
        return torch.tensor(array, dtype=torch.float64 if floating else None, requires_grad=floating)

    def record(self, inputs, outputs, gradients=True):
        """Records inputs, outputs and gradients. `inputs` are results of add() and of the draws, in the op's order."""
        for i, x in enumerate(inputs):
            self.save(f"in{i}", x)
        for i, y in enumerate(outputs):
            self.save(f"out{i}", y)
        if not gradients:
            return
        dy = torch.tensor(bfloat16(self.random.standard_normal(tuple(outputs[0].shape))))
        wanted = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad((outputs[0] * dy).sum(), wanted))
        self.save("dout", dy)
        for i, x in enumerate(inputs):
            if x.requires_grad:
                self.save(f"din{i}", next(found))

    def save(self, name, tensor):
        array = tensor.detach().numpy()
        values[f"{self.name}/{name}"] = np.array(array, np.float32 if array.dtype.kind == "f" else None, order="C")


def save():
    """Writes the values of all cases."""
    save_file(values, pathlib.Path(__file__).parent / "ops.safetensors")
    cases = {name.split("/")[0] for name in values}
    print(f"{len(cases)} cases, {sum(v.nbytes for v in values.values())} bytes")
