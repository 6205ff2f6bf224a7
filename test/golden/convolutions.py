"""Cases of convolution and pooling."""
import numpy as np
import torch

from cases import Case
from layers import functions
from windows import conv1d, conv2d, conv2d_transpose, conv3d, conv3d_transpose, pool2d


convolutions = {
    "conv2d_3x3": dict(x=(2, 6, 7, 3), kernel=(3, 3, 3, 8)),
    "conv2d_3x3_wide": dict(x=(1, 6, 6, 16), kernel=(3, 3, 16, 32)),
    "conv2d_no_bias": dict(x=(2, 5, 5, 8), kernel=(3, 3, 8, 8), bias=False),
    "conv2d_1x1": dict(x=(2, 4, 5, 6), kernel=(1, 1, 6, 10)),
    "conv2d_valid": dict(x=(2, 7, 6, 2), kernel=(5, 3, 2, 4), padding="valid"),
    "conv2d_stride_2_same": dict(x=(2, 8, 8, 4), kernel=(3, 3, 4, 6), strides=(2, 2)),  # pads only at the end
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
    "conv2d_depthwise_stride": dict(x=(2, 7, 7, 6), kernel=(3, 3, 1, 6), groups=6, strides=(2, 2)),
}


sequence_convolutions = {
    "conv1d": dict(x=(2, 9, 4), kernel=(3, 4, 6)),
    "conv1d_causal": dict(x=(2, 8, 3), kernel=(3, 3, 5), padding="causal", dilation=2),
    "conv1d_groups_stride": dict(x=(2, 10, 6), kernel=(4, 3, 4), padding="valid", strides=2, groups=2),
    "conv1d_1": dict(x=(3, 5, 8), kernel=(1, 8, 16), activation="tanh"),
}


volume_convolutions = {
    "conv3d": dict(x=(2, 4, 5, 6, 3), kernel=(3, 3, 3, 3, 4)),
    "conv3d_scan": dict(x=(1, 6, 7, 5, 1), kernel=(3, 3, 3, 1, 8), padding="valid", activation="relu"),
    "conv3d_tubelets": dict(x=(2, 6, 8, 8, 2), kernel=(2, 4, 4, 2, 16), padding="valid", strides=(2, 4, 4)),
    "conv3d_strides_same": dict(x=(2, 5, 7, 6, 4), kernel=(3, 2, 4, 4, 6), strides=(2, 3, 2)),
    "conv3d_dilation": dict(x=(1, 7, 6, 8, 3), kernel=(3, 2, 3, 3, 4), dilation=(2, 1, 3), bias=False),
    "conv3d_groups": dict(x=(2, 3, 4, 4, 6), kernel=(2, 3, 3, 2, 9), groups=3, activation="tanh"),
    "conv3d_padding": dict(x=(2, 3, 4, 5, 2), kernel=(3, 3, 3, 2, 3), padding=(1, 0, 2)),
    "conv3d_1": dict(x=(2, 3, 3, 4, 8), kernel=(1, 1, 1, 8, 16)),
}


transposed_volume_convolutions = {
    "conv3d_transpose_same": dict(x=(2, 2, 3, 4, 3), kernel=(3, 3, 2, 4, 3), padding="same", strides=(2, 2, 1)),
    "conv3d_transpose_gaps": dict(x=(1, 2, 3, 2, 4), kernel=(2, 1, 3, 3, 4), strides=(3, 2, 2), bias=False),
}


transposed_convolutions = {
    "conv2d_transpose_same": dict(x=(2, 4, 5, 3), kernel=(3, 3, 6, 3), padding="same", strides=(2, 2)),
    "conv2d_transpose_valid": dict(x=(2, 4, 3, 5), kernel=(4, 3, 4, 5), padding="valid", strides=(2, 1)),
    "conv2d_transpose_gaps": dict(x=(2, 3, 4, 4), kernel=(2, 2, 3, 4), padding="valid", strides=(3, 2)),
    "conv2d_transpose_dilation": dict(x=(1, 5, 4, 3), kernel=(3, 2, 4, 3), padding="same", dilation=(2, 3), bias=False),
    "conv2d_transpose_tanh": dict(x=(2, 3, 3, 4), kernel=(4, 4, 8, 4), padding="same", strides=(2, 2), activation="tanh"),
}


def convolution():
    for table, convolve in ((convolutions, conv2d), (sequence_convolutions, conv1d),
                            (transposed_convolutions, conv2d_transpose), (volume_convolutions, conv3d),
                            (transposed_volume_convolutions, conv3d_transpose)):
        for name, how in table.items():
            how = dict(how)
            case = Case(name)
            shape = how.pop("kernel")
            units = shape[-2] if convolve in (conv2d_transpose, conv3d_transpose) else shape[-1]
            operands = [case.normal(*how.pop("x")), case.normal(*shape, scale=1 / np.sqrt(np.prod(shape) / units))]
            if how.pop("bias", True):
                operands.append(case.normal(units, scale=0.5))
            function = functions[how.pop("activation", "none")]
            case.record(operands, [function(convolve(*operands, **how))])

    # Keras' depthwise kernel (height, width, in, multiplier), channel by channel; trainctl's kernel has the same
    # elements in the same order.
    case, multiplier = Case("conv2d_depthwise_multiplier"), 3
    x, kernel, bias = case.normal(2, 6, 7, 4), case.normal(3, 3, 1, 12, scale=1 / 3), case.normal(12, scale=0.5)
    keras = kernel.reshape(3, 3, 4, multiplier)
    y = [conv2d(x[..., c : c + 1], keras[:, :, c : c + 1, m : m + 1]) for c in range(4) for m in range(multiplier)]
    case.record([x, kernel, bias], [torch.cat(y, -1) + bias])


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
    for n, h, w, channels in ((1, 18, 17, 5), (3, 4, 5, 16)):  # the first one has more than 256 pixels
        case = Case(f"global_max_pool2d_c{channels}")
        x = case.distinct(n, h, w, channels)
        case.record([x], [x.amax((1, 2))])
