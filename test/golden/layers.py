"""Cases of element-wise ops, embedding, dense layers, recurrent layers and borders."""
import numpy as np
import torch
import torch.nn.functional as F

from cases import Case, bfloat16
from windows import conv2d


functions = {
    "none": lambda x: x,
    "relu": F.relu,
    "relu6": F.relu6,
    "elu": lambda x: F.elu(x, 0.3),
    "selu": F.selu,
    "mish": F.mish,
    "hard_swish": F.hardswish,
    "hard_sigmoid": F.hardsigmoid,
    "softplus": F.softplus,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


def element_wise():
    for name, function in functions.items():
        if name != "none":
            case = Case(f"activation_{name}")
            has_other_kinks = name in ("relu6", "hard_swish", "hard_sigmoid")  # has kinks away from 0, too
            x = case.away_from_zero(3, 5, 7, scale=4 if has_other_kinks else 1)
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

    case = Case("multiply")
    a, b = case.normal(2, 3, 3, 5), case.normal(2, 3, 3, 5)
    case.record([a, b], [torch.tanh(a * b)])
    for channels in (5, 72):
        case = Case(f"multiply_channels_c{channels}")
        x, factors = case.normal(3, 4, 3, channels), case.normal(3, 1, 1, channels)
        case.record([x, factors], [x * factors])
    case = Case("square")
    x = case.normal(4, 9)
    case.record([x], [x * x])
    case = Case("scale_by")
    x = case.normal(4, 9)
    case.record([x], [-1.5 * x])
    case = Case("normalize")
    x = case.normal(3, 5, 4, 3)
    case.record([x], [x * torch.tensor([0.5, -2, 1.25]) + torch.tensor([1, 0.25, -3])])
    for name, function in (("maximum", torch.maximum), ("minimum", torch.minimum)):
        case = Case(name)
        a, apart = case.normal(3, 4, 5), case.away_from_zero(3, 4, 5)
        b = case.add(bfloat16((a + apart).detach()))
        case.record([a, b], [function(a, b)])
    for order, shape in (((2, 1), (3, 5, 40)), ((3, 1, 2), (2, 4, 5, 6)), ((2, 1, 3), (2, 4, 5, 8)),
                         ((4, 2, 1, 3), (2, 3, 4, 5, 6))):
        case = Case("permute_" + "_".join(map(str, order)))
        x = case.normal(*shape)
        case.record([x], [x.permute(0, *order)])

    case = Case("cast")  # to bfloat16 and back; bfloat16 cannot represent the inputs
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


def einsum_dense():
    """Kernels with several dimensions; outputs are flattened over the new dimensions."""
    case = Case("einsum_dense_heads")
    x, kernel, bias = case.normal(3, 5, 6), case.normal(6, 4, 2, scale=0.5), case.normal(4, 2)
    case.record([x, kernel, bias], [(torch.einsum("abc,cde->abde", x, kernel) + bias).flatten(2)])
    case = Case("einsum_dense_join")
    x, kernel, bias = case.normal(3, 5, 4, 2), case.normal(4, 2, 7, scale=0.5), case.normal(7)
    case.record([x, kernel, bias], [torch.einsum("abcd,cde->abe", x, kernel) + bias])
    case = Case("einsum_dense_transposed")  # dy kernel^T
    x, kernel = case.normal(3, 5, 8), case.normal(6, 4, 2, scale=0.5)
    case.record([x, kernel], [torch.einsum("abde,cde->abc", x.unflatten(2, (4, 2)), kernel)])


def products():
    """Products of two activations with either operand transposed."""
    def product(name, a, b, transpose_a=False, transpose_b=False):
        case = Case(name)
        left, right = case.normal(*a), case.normal(*b, scale=0.5)
        case.record([left, right], [(left.mT if transpose_a else left) @ (right.mT if transpose_b else right)])

    product("matmul", (3, 5, 7), (3, 7, 4))
    product("matmul_scores", (2, 3, 5, 8), (2, 3, 6, 8), transpose_b=True)
    product("matmul_sums", (2, 9, 5), (2, 9, 3), transpose_a=True)
    product("matmul_transposed", (3, 4, 16, 2), (3, 4, 8, 16), transpose_a=True, transpose_b=True)
    product("matmul_row", (6, 1, 33), (6, 1, 33), transpose_b=True)
    case = Case("matmul_square")  # one tensor is both operands
    x = case.normal(3, 5, 5)
    case.record([x], [x @ x.mT])


def recurrent():
    """Recurrent layers on sequences (samples, steps, features). Inputs: x, kernel, bias, recurrent kernel, and a GRU's
    recurrent bias, with the gates in Keras' order. An LSTM's gates are in the same order in PyTorch; in a GRU, PyTorch
    has the reset gate before the update gate."""
    def operands_of(case, cell, shape, units, bias):
        gates, features = {"lstm": 4, "gru": 3, "simple": 1}[cell], shape[-1]

        def draw(*shape, size):
            return case.uniform(*shape, low=-size, high=size)

        operands = [draw(*shape, size=2), draw(features, gates * units, size=1 / np.sqrt(features))]
        if bias:
            operands.append(draw(gates * units, size=0.5))
        operands.append(draw(units, gates * units, size=1.5 / np.sqrt(units)))
        if bias and cell == "gru":
            operands.append(draw(gates * units, size=0.5))
        return operands

    def computed(cell, operands, units, bias, steps, begin=None):
        """PyTorch's outputs of all steps and last states."""
        gru, gates, features = cell == "gru", {"lstm": 4, "gru": 3, "simple": 1}[cell], steps.shape[-1]

        def ordered(weights):
            parts = weights.split(units, -1)
            return torch.cat([parts[1], parts[0], parts[2]] if gru else parts, -1).movedim(-1, 0)

        weights = {"weight_ih_l0": ordered(operands[1]), "weight_hh_l0": ordered(operands[3 if bias else 2])}
        if bias:
            weights["bias_ih_l0"] = ordered(operands[2])
            weights["bias_hh_l0"] = ordered(operands[4]) if gru else torch.zeros(gates * units, dtype=torch.float64)
        kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "simple": torch.nn.RNN}[cell]
        module = kind(features, units, bias=bias, batch_first=True, dtype=torch.float64)
        return torch.func.functional_call(module, weights, (steps, begin))

    def recurrence(name, shape, units, last=False, backwards=False, bias=True, reverse=False):
        case, cell = Case(name), name.split("_")[0]
        operands = operands_of(case, cell, shape, units, bias)
        y = computed(cell, operands, units, bias, operands[0].flip(1) if backwards else operands[0])[0]
        case.record(operands, [y[:, -1] if last else y.flip(1) if reverse else y])

    def encoder_decoder(name, source, target, units):
        """The last states of a layer are the first states of another one."""
        case, cell = Case(name), name.split("_")[0]
        encoder, decoder = (operands_of(case, cell, shape, units, True) for shape in (source, target))
        states = computed(cell, encoder, units, True, encoder[0])[1]
        case.record(encoder + decoder, [computed(cell, decoder, units, True, decoder[0], states)[0]])

    # (samples, steps, features), units: small, since each element of a kernel's gradient is a sum that may cancel.
    recurrence("lstm", (8, 5, 2), 19)
    recurrence("lstm_last", (2, 4, 5), 16, last=True)
    recurrence("lstm_backwards_no_bias", (2, 6, 2), 5, backwards=True, bias=False)
    recurrence("lstm_last_backwards", (2, 3, 5), 11, last=True, backwards=True)
    recurrence("lstm_two_steps", (2, 2, 7), 35)
    recurrence("gru", (2, 5, 8), 18)
    recurrence("gru_last", (4, 4, 4), 16, last=True)
    recurrence("gru_backwards_no_bias", (5, 6, 3), 5, backwards=True, bias=False)
    recurrence("gru_last_backwards", (2, 3, 8), 11, last=True, backwards=True)
    recurrence("gru_two_steps", (2, 2, 3), 34)
    recurrence("simple", (3, 5, 4), 17)
    recurrence("simple_last", (4, 4, 4), 16, last=True)
    recurrence("simple_backwards_no_bias", (2, 6, 3), 5, backwards=True, bias=False)
    recurrence("simple_last_backwards", (2, 3, 5), 11, last=True, backwards=True)
    recurrence("simple_two_steps", (2, 2, 5), 34)
    for cell, steps in {"lstm": 1, "gru": 1, "simple": 2}.items():
        encoder_decoder(f"{cell}_encoder_decoder", (2, 2, 3), (2, steps, 4), 16)
    for cell in ("lstm", "gru", "simple"):  # output steps in the order of the input, as in Keras' Bidirectional
        recurrence(f"{cell}_both_ways", (3, 4, 3), 6, backwards=True, reverse=True)


def parametric_relu():
    """PReLU with an alpha for each value of a sample, or for each channel, which is dimension 1 in PyTorch."""
    for name, shape in {"prelu": (3, 4, 5, 2), "prelu_rows": (6, 19)}.items():
        case = Case(name)
        x, alpha = case.away_from_zero(*shape), case.normal(*shape[1:], scale=0.5)
        case.record([x, alpha], [F.relu(x) - alpha * F.relu(-x)])
    for channels in (5, 16):
        case = Case(f"prelu_shared_c{channels}")
        x, alpha = case.away_from_zero(3, 4, 5, channels), case.normal(1, 1, channels, scale=0.5)
        case.record([x, alpha], [F.prelu(x.movedim(-1, 1), alpha.flatten()).movedim(1, -1)])


def borders():
    for channels in (3, 16):
        case = Case(f"pad2d_c{channels}")
        x = case.normal(2, 5, 4, channels)
        case.record([x], [F.pad(x, (0, 0, 2, 3, 1, 0))])
        case = Case(f"crop2d_c{channels}")
        x = case.normal(2, 5, 7, channels)
        case.record([x], [x[:, 1:, 2:-3]])
    upsamplings = {"nearest_c3": ((2, 3), (2, 4, 5, 3)), "nearest_c16": ((2, 2), (2, 3, 4, 16)),
                   "bilinear_c3": ((3, 2), (2, 4, 5, 3)), "bilinear_c16": ((2, 2), (2, 3, 4, 16)),
                   "bilinear_row": ((4, 5), (2, 1, 6, 4))}
    for name, (size, shape) in upsamplings.items():
        case, mode = Case(f"upsample2d_{name}"), name.split("_")[0]
        x = case.normal(*shape)
        how = dict(align_corners=False) if mode == "bilinear" else {}
        case.record([x], [F.interpolate(x.permute(0, 3, 1, 2), scale_factor=size, mode=mode, **how).permute(0, 2, 3, 1)])


def gated_linear_units():
    for name in ("none", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"):
        case = Case(f"gated_linear_unit_{name}")
        gate, up = case.away_from_zero(3, 5, 7, scale=2), case.normal(3, 5, 7)
        case.record([gate, up], [functions[name](gate) * up])


def rotate_half(x):
    """As in transformers' modeling_llama.py."""
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def rotate_every_two(x):
    """As in transformers' modeling_gptj.py."""
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def llama3_frequencies(frequencies, factor, low, high, positions):
    """The rule of Llama 3.1, as in transformers' modeling_rope_utils.py."""
    result = []
    for frequency in frequencies.tolist():
        wavelength = 2 * np.pi / frequency
        if wavelength < positions / high:
            result.append(frequency)
        elif wavelength > positions / low:
            result.append(frequency / factor)
        else:
            smooth = (positions / wavelength - low) / (high - low)
            result.append((1 - smooth) * frequency / factor + smooth * frequency)
    return torch.tensor(result, dtype=torch.float64)


def rotary():
    def case(name, shape, size, width=None, base=10_000.0, neighbours=False, scaled=lambda f: f, documents=False):
        case = Case(name)
        x, width = case.normal(*shape), width or size
        inputs, positions = [x], torch.arange(shape[1]).expand(shape[0], -1)
        if documents:
            numbers = np.sort(case.random.integers(0, 4, shape[:2], dtype=np.int32), axis=1)
            numbers[-1] = 7  # a sample of one document
            inputs.append(case.add(numbers))
            positions = torch.tensor([[t - list(row).index(row[t]) for t in range(shape[1])] for row in numbers])
        frequencies = scaled(base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width))
        angles = positions[:, :, None, None] * frequencies
        angles = angles.repeat_interleave(2, -1) if neighbours else torch.cat([angles, angles], -1)
        heads = x.unflatten(-1, (-1, size))
        turning = heads[..., :width]
        turned = turning * angles.cos() + (rotate_every_two if neighbours else rotate_half)(turning) * angles.sin()
        case.record(inputs, [torch.cat([turned, heads[..., width:]], -1).flatten(-2)])

    case("rotary", (2, 37, 48), 16)
    case("rotary_part", (2, 9, 30), 10, width=6)
    case("rotary_neighbours", (2, 9, 32), 16, neighbours=True)
    case("rotary_neighbours_part", (3, 5, 14), 7, width=6, neighbours=True)
    case("rotary_documents", (3, 11, 16), 8, documents=True)
    case("rotary_linear", (2, 9, 16), 16, scaled=lambda f: f / 4)
    case("rotary_llama3", (1, 70, 32), 32, base=500_000.0, scaled=lambda f: llama3_frequencies(f, 8, 1, 4, 256))


def position_embeddings():
    for name, positions in (("position_embedding", 5), ("position_embedding_long", 9), ("position_embedding_alone", 6)):
        case = Case(name)
        x, table = case.normal(3, 5, 7), case.normal(positions, 7)
        rows = table[:5].expand(3, -1, -1)
        case.record([x, table], [rows * x if name.endswith("alone") else rows + x])
    case = Case("tied_embedding")
    tokens, table = case.integers(3, 5, bound=7), case.normal(7, 6)
    case.record([tokens, table], [torch.tanh(F.embedding(tokens.long(), table)) @ table.T])
    case = Case("transposed_dense_sum")
    x, kernel, other = case.normal(3, 5, 6), case.normal(9, 6, scale=0.5), case.normal(3, 5, 9)
    case.record([x, kernel, other], [x @ kernel.T + other])
