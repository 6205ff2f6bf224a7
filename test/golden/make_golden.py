#!/usr/bin/env python3
"""Writes the golden values beside this script: what PyTorch computes for the cases of test/ops.

    python3 -m venv venv && venv/bin/pip install torch numpy safetensors
    venv/bin/python test/golden/make_golden.py

PyTorch computes in float64 and in Keras' conventions: images NHWC, kernels (height, width, in / groups, out) or
(in, out), padding `same` with the odd pixel at the end, averages that do not count padding, leaky_relu's slope 0.3.
Inputs, parameters and incoming gradients are random numbers that bfloat16 represents, so that one set of values holds
for float32 and bfloat16. Results are rounded to float32.

ops.safetensors holds, for each case, CASE/in0..., CASE/out0..., the incoming gradient CASE/dout of out0 and the
gradients CASE/din0... of those inputs that have one. Whole networks: make_training.py.
"""
import pathlib
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
folder = pathlib.Path(__file__).parent
values = {}  # of ops.safetensors


def bfloat16(array):
    """Rounded to what bfloat16 represents."""
    return torch.tensor(np.asarray(array, dtype=np.float32)).bfloat16().double().numpy()


class Case:
    """Draws the inputs of one case from a generator seeded by its name, and records what PyTorch makes of them."""

    def __init__(self, name):
        self.name = name
        self.random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.inputs = []

    def normal(self, *shape, scale=1.0, shift=0.0):
        return self.add(bfloat16(shift + scale * self.random.standard_normal(shape)))

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.add(bfloat16(self.random.uniform(low, high, shape)))

    def away_from_zero(self, *shape, distance=0.1):
        """Normal values, moved away from the kink at 0."""
        x = self.random.standard_normal(shape)
        return self.add(bfloat16(x + distance * np.sign(x)))

    def distinct(self, n, h, w, c):
        """Images of h * w different values in each channel: no window has two maxima."""
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
        """`inputs` are what add() and the drawing functions returned, in the order of the op's inputs."""
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


functions = {
    "none": lambda x: x,
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


def same_padding(size, window, stride, dilation):
    """Before and behind, as TensorFlow has it."""
    total = max((-(-size // stride) - 1) * stride + dilation * (window - 1) + 1 - size, 0)
    return total // 2, total - total // 2


def padded(x, window, strides, dilation, padding, fill=0.0):
    """NHWC to NCHW, padded: "same", "valid" or (down, right)."""
    x = x.permute(0, 3, 1, 2)
    if padding == "same":
        pads = [same_padding(x.shape[2 + i], window[i], strides[i], dilation[i]) for i in (0, 1)]
    else:
        pads = [(0, 0), (0, 0)] if padding == "valid" else [(p, p) for p in padding]
    return F.pad(x, (*pads[1], *pads[0]), value=fill)


def conv2d(x, kernel, bias=None, strides=(1, 1), padding="same", dilation=(1, 1), groups=1):
    x = padded(x, kernel.shape[:2], strides, dilation, padding)
    y = F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, strides, 0, dilation, groups)
    return y.permute(0, 2, 3, 1)


def pool2d(x, mode, size, strides, padding):
    if mode == "max":
        y = F.max_pool2d(padded(x, size, strides, (1, 1), padding, -np.inf), size, strides)
    else:
        total, count = (
            F.avg_pool2d(padded(v, size, strides, (1, 1), padding), size, strides, divisor_override=1)
            for v in (x, torch.ones_like(x))
        )
        y = total / count
    return y.permute(0, 2, 3, 1)


def batch_norm(x, gamma, beta, epsilon=1e-3):
    """y, mean, variance."""
    axes = tuple(range(x.dim() - 1))
    y = F.batch_norm(x.movedim(-1, 1), None, None, gamma, beta, True, 0.0, epsilon).movedim(1, -1)
    return y, x.mean(axes), x.var(axes, unbiased=False)


def element_wise():
    for name, function in functions.items():
        if name != "none":
            case = Case(f"activation_{name}")
            x = case.away_from_zero(3, 5, 7)
            case.record([x], [function(x)])
    case = Case("activation_leaky_relu_slope")
    x = case.away_from_zero(4, 9)
    case.record([x], [F.leaky_relu(x, 0.125)])

    for columns in (2, 10, 33):
        case = Case(f"softmax_{columns}")
        x = case.normal(5, columns, scale=2)
        case.record([x], [F.softmax(x, -1)])
    for name in ("none", "relu", "tanh"):
        case = Case(f"add_{name}")
        total, a = case.away_from_zero(2, 3, 3, 5), case.normal(2, 3, 3, 5)
        b = case.add(bfloat16((total - a).detach()))
        case.record([a, b], [functions[name](a + b)])

    case = Case("cast")  # to bfloat16 and back; the inputs are not representable
    x = case.add(case.random.standard_normal((7, 9)).astype(np.float32))
    case.record([x], [x.float().bfloat16().double()])
    case = Case("concatenate_two")
    a, b = case.normal(2, 3, 3, 4), case.normal(2, 3, 3, 7)
    case.record([a, b], [torch.cat([a, b], -1)])
    case = Case("concatenate_three")
    parts = [case.normal(5, columns) for columns in (16, 1, 3)]
    case.record(parts, [torch.cat(parts, -1)])
    case = Case("reshape")
    x = case.normal(3, 4, 5, 2)
    case.record([x], [F.relu(x.reshape(3, 40))])

    case = Case("skip")  # x is used twice: its gradients are summed
    x, kernel = case.normal(2, 5, 5, 4), case.normal(3, 3, 4, 4, scale=0.25)
    case.record([x, kernel], [x + conv2d(x, kernel)])


def embedding():
    case = Case("embedding")
    tokens, table = case.integers(3, 5, bound=7), case.normal(7, 6)
    case.record([tokens, table], [F.embedding(tokens.long(), table)])


def dense():
    shapes = {"small": (3, 4, 5), "wide": (6, 37, 64), "one": (4, 8, 1), "sequence": (3, 5, 6, 7), "image": (2, 3, 4, 5, 6)}
    for name, (*n, inputs, units) in shapes.items():
        for bias in (True, False):
            case = Case(f"dense_{name}" + ("" if bias else "_no_bias"))
            operands = [case.normal(*n, inputs), case.normal(inputs, units, scale=0.5)]
            if bias:
                operands.append(case.normal(units))
            y = operands[0] @ operands[1]
            case.record(operands, [y + operands[2] if bias else y])
    for name in ("relu", "leaky_relu", "tanh", "sigmoid", "gelu", "silu"):
        case = Case(f"dense_{name}")
        x, kernel, bias = case.normal(5, 6), case.normal(6, 16, scale=0.5), case.normal(16)
        case.record([x, kernel, bias], [functions[name](x @ kernel + bias)])
    for name in ("relu", "leaky_relu", "tanh", "sigmoid"):  # the gradient passes an activation between two layers
        case = Case(f"dense_{name}_dense")
        x, k1, b1 = case.normal(6, 8), case.normal(8, 12, scale=0.5), case.normal(12)
        k2, b2 = case.normal(12, 5, scale=0.5), case.normal(5)
        case.record([x, k1, b1, k2, b2], [functions[name](x @ k1 + b1) @ k2 + b2])


convolutions = {
    "conv2d_3x3": dict(x=(2, 6, 7, 3), kernel=(3, 3, 3, 8)),
    "conv2d_3x3_wide": dict(x=(1, 6, 6, 16), kernel=(3, 3, 16, 32)),
    "conv2d_no_bias": dict(x=(2, 5, 5, 8), kernel=(3, 3, 8, 8), bias=False),
    "conv2d_1x1": dict(x=(2, 4, 5, 6), kernel=(1, 1, 6, 10)),
    "conv2d_valid": dict(x=(2, 7, 6, 2), kernel=(5, 3, 2, 4), padding="valid"),
    "conv2d_stride_2_same": dict(x=(2, 8, 8, 4), kernel=(3, 3, 4, 6), strides=(2, 2)),  # pads at the end alone
    "conv2d_strides_2_3": dict(x=(2, 9, 10, 3), kernel=(4, 3, 3, 5), strides=(2, 3)),
    "conv2d_stride_2_1x1": dict(x=(2, 7, 7, 8), kernel=(1, 1, 8, 16), strides=(2, 2), padding="valid", bias=False),
    "conv2d_even_kernel": dict(x=(2, 6, 6, 3), kernel=(2, 4, 3, 4)),
    "conv2d_padding_2_1": dict(x=(2, 5, 6, 3), kernel=(3, 3, 3, 4), padding=(2, 1)),
    "conv2d_dilation_2": dict(x=(2, 8, 9, 3), kernel=(3, 3, 3, 4), dilation=(2, 2)),
    "conv2d_dilation_2_1": dict(x=(1, 9, 7, 4), kernel=(3, 2, 4, 4), dilation=(2, 1), padding="valid"),
    "conv2d_groups_2": dict(x=(2, 6, 6, 8), kernel=(3, 3, 4, 6), groups=2),
    "conv2d_depthwise": dict(x=(2, 6, 6, 8), kernel=(3, 3, 1, 8), groups=8),
    "conv2d_groups_stride": dict(x=(2, 7, 8, 6), kernel=(3, 3, 2, 9), groups=3, strides=(2, 2)),
    "conv2d_grey": dict(x=(2, 8, 8, 1), kernel=(5, 5, 1, 6)),
    "conv2d_relu": dict(x=(2, 6, 6, 4), kernel=(3, 3, 4, 8), activation="relu"),
    "conv2d_leaky_relu": dict(x=(2, 6, 6, 4), kernel=(3, 3, 4, 8), activation="leaky_relu", strides=(2, 2)),
    "conv2d_tanh": dict(x=(2, 5, 5, 3), kernel=(3, 3, 3, 4), activation="tanh", padding="valid"),
    "conv2d_sigmoid": dict(x=(2, 5, 5, 3), kernel=(3, 3, 3, 4), activation="sigmoid"),
    "conv2d_silu": dict(x=(2, 5, 5, 3), kernel=(3, 3, 3, 4), activation="silu"),
}


def convolution():
    for name, how in convolutions.items():
        how = dict(how)
        case = Case(name)
        shape = how.pop("kernel")
        scale = 1 / np.sqrt(shape[0] * shape[1] * shape[2])
        operands = [case.normal(*how.pop("x")), case.normal(*shape, scale=scale)]
        if how.pop("bias", True):
            operands.append(case.normal(shape[3], scale=0.5))
        function = functions[how.pop("activation", "none")]
        case.record(operands, [function(conv2d(*operands, **how))])


def pooling():
    shapes = {
        "2x2": dict(size=(2, 2), strides=(2, 2), padding="valid"),
        "3x3_stride_2_same": dict(size=(3, 3), strides=(2, 2), padding="same"),
        "3x2_stride_1": dict(size=(3, 2), strides=(1, 1), padding="same"),
        "padding_1": dict(size=(3, 3), strides=(2, 3), padding=(1, 1)),
    }
    for mode in ("max", "average"):
        for name, how in shapes.items():
            for channels in (3, 16):
                case = Case(f"{mode}_pool2d_{name}_c{channels}")
                x = case.distinct(2, 8, 7, channels)
                case.record([x], [pool2d(x, mode, **how)])
    for channels in (5, 32):
        case = Case(f"global_average_pool2d_c{channels}")
        x = case.normal(3, 4, 5, channels)
        case.record([x], [x.mean((1, 2))])


def normalisation():
    for scale in (True, False):
        for center in (True, False):
            case = Case("batch_norm" + ("" if scale else "_no_scale") + ("" if center else "_no_center"))
            x = case.normal(3, 4, 4, 6, scale=2, shift=0.5)
            gamma = case.uniform(6, low=0.5, high=1.5) if scale else None
            beta = case.normal(6) if center else None
            y, mean, variance = batch_norm(x, gamma, beta)
            case.record([v for v in (x, gamma, beta) if v is not None], [y, mean, variance])
    case = Case("batch_norm_rows")
    x, gamma, beta = case.normal(8, 19), case.uniform(19, low=0.5, high=1.5), case.normal(19)
    case.record([x, gamma, beta], batch_norm(x, gamma, beta, 1e-5))

    # With ReLU, and with a residual and ReLU. Sums keep their distance from 0, so that no rounding changes a sign.
    for residual in (False, True):
        case = Case("batch_norm_residual_relu" if residual else "batch_norm_relu")
        gamma, beta = case.uniform(16, low=0.5, high=1.5), case.normal(16)
        if residual:
            x = case.normal(2, 5, 5, 16, scale=2)
            y, mean, variance = batch_norm(x, gamma, beta)
            r = case.random.standard_normal(y.shape)
            total = y.detach().numpy() + r
            r = case.add(bfloat16(r + 0.1 * np.sign(total)))
            case.record([x, gamma, beta, r], [F.relu(y + r), mean, variance])
        else:
            while True:
                x = case.normal(2, 5, 5, 16, scale=2)
                y, mean, variance = batch_norm(x, gamma, beta)
                if y.abs().min() > 2e-4:
                    break
            case.record([x, gamma, beta], [F.relu(y), mean, variance])

    # With ReLU and max pooling. Values keep their distance from each other and from 0: no rounding changes a winner.
    for channels, size, padding in ((5, (2, 2), "valid"), (16, (3, 3), "same")):
        case = Case(f"batch_norm_relu_max_pool_c{channels}")
        x = case.distinct(3, 7, 6, channels)
        gamma, beta = case.uniform(channels, low=0.5, high=1.5), case.normal(channels, shift=-0.5)
        y, mean, variance = batch_norm(x, gamma, beta)
        case.record([x, gamma, beta], [pool2d(F.relu(y), "max", size, (2, 2), padding), mean, variance])

    for residual in (False, True):
        case = Case("batch_norm_inference" + ("_residual_relu" if residual else ""))
        x, gamma, beta = case.normal(2, 4, 4, 5), case.uniform(5, low=0.5, high=1.5), case.normal(5)
        mean, variance = case.normal(5).detach(), case.uniform(5, low=0.25, high=2).detach()
        y = F.batch_norm(x.movedim(-1, 1), mean, variance, gamma, beta, False, 0.0, 1e-3).movedim(1, -1)
        operands = [x, gamma, beta, mean, variance]
        if residual:
            operands.append(case.normal(2, 4, 4, 5))
            y = F.relu(y + operands[-1])
        case.record(operands, [y], gradients=False)


def philox(counter, key):
    """The block function Philox 4x32-10 of Salmon et al. (2011), after the paper."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        low, high = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(high >> 32) ^ counter[1] ^ key[0], high & 0xFFFFFFFF,
                   (low >> 32) ^ counter[3] ^ key[1], low & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def layer_normalisation():
    def layer_norm(name, shape, scale=True, center=True, epsilon=1e-3):
        case, n = Case(name), shape[-1]
        x = case.normal(*shape, scale=2, shift=0.5)
        gamma = case.uniform(n, low=0.5, high=1.5) if scale else None
        beta = case.normal(n) if center else None
        case.record([v for v in (x, gamma, beta) if v is not None], [F.layer_norm(x, (n,), gamma, beta, epsilon)])

    layer_norm("layer_norm", (9, 24))
    layer_norm("layer_norm_no_scale", (9, 24), scale=False)
    layer_norm("layer_norm_no_center", (9, 24), center=False)
    layer_norm("layer_norm_bare", (5, 13), scale=False, center=False)
    layer_norm("layer_norm_sequence", (3, 7, 5, 19), epsilon=1e-5)


def borders():
    for channels in (3, 16):
        case = Case(f"pad2d_c{channels}")
        x = case.normal(2, 5, 4, channels)
        case.record([x], [F.pad(x, (0, 0, 2, 3, 1, 0))])
        case = Case(f"crop2d_c{channels}")
        x = case.normal(2, 5, 7, channels)
        case.record([x], [x[:, 1:, 2:-3]])


def dropout():
    """The mask is ours, a function of (seed, step, sample, layer, element): made here from its definition."""
    case, rate, seed, layer = Case("dropout"), 0.375, 0x123456789, 77
    x = case.normal(3, 3, 7)
    samples, step = case.add(np.array([11, 0, 2**33 + 5], np.int64)), case.add(np.array(9, np.int64))
    mixed = layer ^ (4 * 0x85EBCA6B & 0xFFFFFFFF)
    mask = np.empty((3, 21))
    for row, sample in enumerate(samples.tolist()):
        for e in range(21):
            counter = (sample & 0xFFFFFFFF, (sample >> 32) ^ mixed, e // 4, step.item())
            word = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))[e % 4]
            mask[row, e] = (word >> 8) * 2.0**-24 >= rate
    case.record([x, samples, step], [x * torch.tensor(mask.reshape(3, 3, 7)) / (1 - rate)])


def losses():
    """in: predictions, targets, sample weights. out: the weighted sum; din0 its gradient."""
    n, k = 7, 5
    for name in ("sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy",
                 "mean_squared_error", "huber", "huber_near"):
        for smoothing in (0.0, 0.125):
            if smoothing and name in ("mean_squared_error", "huber", "huber_near"):
                continue
            case = Case(f"loss_{name}" + ("_smoothed" if smoothing else ""))
            x = case.normal(n, k, scale=2)
            weights = case.uniform(n, low=0.5, high=2)
            with torch.no_grad():
                weights[3] = 0  # a skipped sample
            if name == "sparse_categorical_crossentropy":
                targets = case.integers(n, bound=k)
                loss = F.cross_entropy(x, targets.long(), reduction="none", label_smoothing=smoothing)
            elif name == "categorical_crossentropy":
                targets = case.uniform(n, k)
                with torch.no_grad():
                    targets.copy_(torch.tensor(bfloat16((targets / targets.sum(1, keepdim=True)))))
                # Keras smooths targets as they are; PyTorch's own smoothing supposes that they sum to 1.
                smoothed = targets * (1 - smoothing) + smoothing / k
                loss = F.cross_entropy(x, smoothed, reduction="none")
            elif name == "binary_crossentropy":
                targets = case.uniform(n, k)
                smoothed = targets * (1 - smoothing) + smoothing / 2
                loss = F.binary_cross_entropy_with_logits(x, smoothed, reduction="none").mean(1)
            else:
                targets = case.normal(n, k)
                elements = {"mean_squared_error": lambda: F.mse_loss(x, targets, reduction="none"),
                            "huber": lambda: F.huber_loss(x, targets, reduction="none"),
                            "huber_near": lambda: F.huber_loss(x, targets, reduction="none", delta=4.0)}[name]()
                loss = elements.mean(1)
            total = (loss * weights).sum()
            for i, value in enumerate((x, targets, weights)):
                case.save(f"in{i}", value)
            case.save("out0", total)
            case.save("din0", torch.autograd.grad(total, x)[0])
    for name in ("sequence", "masked_sequence"):  # a class for each position
        case = Case(f"loss_{name}")
        x, targets = case.normal(4, 6, 5, scale=2), case.integers(4, 6, bound=5)
        weights = case.uniform(*((4, 6) if name == "masked_sequence" else (4,)), low=0.5, high=2)
        with torch.no_grad():
            weights[1] = 0
        loss = F.cross_entropy(x.transpose(1, 2), targets.long(), reduction="none")
        total = (loss * (weights if weights.dim() == 2 else weights[:, None])).sum()
        for i, value in enumerate((x, targets, weights)):
            case.save(f"in{i}", value)
        case.save("out0", total)
        case.save("din0", torch.autograd.grad(total, x)[0])


def metrics():
    n, k = 13, 6
    for name in ("sparse_categorical_accuracy", "categorical_accuracy", "binary_accuracy",
                 "top_k_categorical_accuracy", "mean_absolute_error"):
        case = Case(f"metric_{name}")
        x, weights = case.normal(n, k), case.uniform(n, low=0.5, high=2)
        if name in ("sparse_categorical_accuracy", "top_k_categorical_accuracy"):
            targets = case.integers(n, bound=k)
            top = 3 if name.startswith("top") else 1
            value = (x.topk(top).indices == targets[:, None]).any(1)
        else:
            targets = case.uniform(n, k)
            value = {"categorical_accuracy": lambda: x.argmax(1) == targets.argmax(1),
                     "binary_accuracy": lambda: ((x > 0) == (targets > 0.5)).double().mean(1),
                     "mean_absolute_error": lambda: (x - targets).abs().mean(1)}[name]()
        case.record([x, targets, weights], [(value * weights).sum() / weights.sum()], gradients=False)
        case.save("count", weights.sum())
    for curve in ("roc", "pr"):
        case = Case(f"metric_auc_{curve}")
        x, weights = case.uniform(200, 1), case.uniform(200, low=0.5, high=2)
        chances = 0.2 + 0.6 * x.detach().numpy()
        targets = case.add((case.random.random((200, 1)) < chances).astype(np.float32))
        case.record([x, targets, weights], [area_under_curve(x, targets, weights[:, None], curve)], gradients=False)
        case.save("count", weights.sum())


def area_under_curve(predictions, targets, weights, curve, thresholds=200):
    """As Keras documents AUC, with summation_method="interpolation"."""
    edges = [-1e-7] + [i / (thresholds - 1) for i in range(1, thresholds - 1)] + [1 + 1e-7]
    above = torch.stack([(predictions > edge).double() for edge in edges])
    true = (above * targets * weights).sum((1, 2))
    false = (above * (1 - targets) * weights).sum((1, 2))
    if curve == "roc":
        recall, fall_out = true / (targets * weights).sum(), false / ((1 - targets) * weights).sum()
        return ((fall_out[:-1] - fall_out[1:]) * (recall[:-1] + recall[1:]) / 2).sum()
    positive = true + false
    steps = positive[:-1] - positive[1:]
    slopes = torch.where(steps > 0, (true[:-1] - true[1:]) / steps, 0)
    intercepts = true[1:] - slopes * positive[1:]
    ratios = torch.where((positive[:-1] > 0) & (positive[1:] > 0), positive[:-1] / positive[1:], 1)
    increments = slopes * (true[:-1] - true[1:] + intercepts * ratios.log())
    return (increments / (targets * weights).sum()).sum()


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al. (2020), each parameter's norms in float64."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-7, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for w in group["params"]:
                state = self.state[w]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(w), exp_avg_sq=torch.zeros_like(w))
                state["step"] += 1
                m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
                m.mul_(first).add_(w.grad, alpha=1 - first)
                v.mul_(second).add_(w.grad**2, alpha=1 - second)
                update = m / (1 - first**t) / ((v / (1 - second**t)).sqrt() + group["eps"]) + group["weight_decay"] * w
                w.sub_(group["lr"] * w.norm() / update.norm() * update)


optimizers = {
    "sgd": (torch.optim.SGD, dict(lr=0.125)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.125, momentum=0.875)),
    "sgd_nesterov_decay": (torch.optim.SGD, dict(lr=0.125, momentum=0.875, nesterov=True, weight_decay=0.0625)),
    "sgd_clip": (torch.optim.SGD, dict(lr=0.125, momentum=0.875, weight_decay=0.0625, clip=0.5)),
    "adam": (torch.optim.Adam, dict(lr=0.0625, eps=1e-7)),
    "adam_decay_clip": (torch.optim.Adam, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
    "adamw": (torch.optim.AdamW, dict(lr=0.0625, eps=1e-7, weight_decay=0.25)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.0625, alpha=0.9, eps=1e-7)),
    "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.0625, alpha=0.75, eps=1e-3, momentum=0.875, weight_decay=0.25,
                                                   clip=0.5)),
    "rmsprop_centered": (torch.optim.RMSprop, dict(lr=0.0625, alpha=0.75, eps=1e-3, momentum=0.5, centered=True)),
    "lamb": (Lamb, dict(lr=0.0625)),
    "lamb_decay_clip": (Lamb, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
    "adamw_clip": (torch.optim.AdamW, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
}


def optimizer_steps(steps=6, count=16.0):
    """in0: the weights before; in1: gradients of all steps, sums over `count` samples. out0: the weights after each
    step; out1, out2, ...: the states after the last one; norms: the gradients'. The last third of the weights knows no decay."""
    for name, (kind, how) in optimizers.items():
        how = dict(how)
        clip, decay = how.pop("clip", None), how.pop("weight_decay", 0.0)
        case = Case(name)
        first, gradients = case.normal(51), case.normal(steps, 51, scale=count)
        plain, spared = (torch.nn.Parameter(part.detach().clone()) for part in (first[:34], first[34:]))
        groups = [dict(params=[plain], weight_decay=decay), dict(params=[spared], weight_decay=0.0)]
        optimizer = kind(groups, **how)
        after, norms = [], []
        for gradient in gradients.detach() / count:
            plain.grad, spared.grad = gradient[:34].clone(), gradient[34:].clone()
            norms.append(torch.nn.utils.clip_grad_norm_([plain, spared], clip if clip else 1e9))
            optimizer.step()
            after.append(torch.cat([plain, spared]).detach().clone())
        states = [optimizer.state[p] for p in (plain, spared)]
        case.save("in0", first)
        case.save("in1", gradients)
        case.save("out0", torch.stack(after))
        keys = [key for key in ("square_avg", "momentum_buffer", "grad_avg", "exp_avg", "exp_avg_sq") if states[0].get(key) is not None]
        for i, key in enumerate(keys):
            case.save(f"out{i + 1}", torch.cat([state[key] for state in states]))
        case.save("norms", torch.stack(norms))


if __name__ == "__main__":
    for part in (element_wise, embedding, dense, convolution, pooling, normalisation, layer_normalisation, borders, dropout, losses,
                 metrics, optimizer_steps):
        part()
    save_file(values, folder / "ops.safetensors")
    cases = {name.split("/")[0] for name in values}
    print(f"{len(cases)} cases, {sum(v.nbytes for v in values.values())} bytes")
