"""Convolution and pooling in NHWC, and batch normalisation, in Keras' conventions."""
import numpy as np
import torch
import torch.nn.functional as F


def same_padding(size, window, stride, dilation):
    """The padding before and after the values, as in TensorFlow."""
    total = max((-(-size // stride) - 1) * stride + dilation * (window - 1) + 1 - size, 0)
    return total // 2, total - total // 2


def padded(x, window, strides, dilation, padding, fill=0.0):
    """Converts NHWC to NCHW and pads it: "same", "valid" or (rows, columns)."""
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


def conv3d(x, kernel, bias=None, strides=(1, 1, 1), padding="same", dilation=(1, 1, 1), groups=1):
    if padding == "same":
        pads = [same_padding(*sizes) for sizes in zip(x.shape[1:4], kernel.shape, strides, dilation)]
    else:
        pads = [(0, 0)] * 3 if padding == "valid" else [(p, p) for p in padding]
    x = F.pad(x.permute(0, 4, 1, 2, 3), (*pads[2], *pads[1], *pads[0]))
    y = F.conv3d(x, kernel.permute(4, 3, 0, 1, 2), bias, strides, 0, dilation, groups)
    return y.permute(0, 2, 3, 4, 1)


def conv1d(x, kernel, bias=None, strides=1, padding="same", dilation=1, groups=1):
    reach = dilation * (kernel.shape[0] - 1)
    before, after = {"causal": (reach, 0), "valid": (0, 0),
                     "same": same_padding(x.shape[1], kernel.shape[0], strides, dilation)}[padding]
    x = F.pad(x.transpose(1, 2), (before, after))
    return F.conv1d(x, kernel.permute(2, 1, 0), bias, strides, 0, dilation, groups).transpose(1, 2)


def conv2d_transpose(x, kernel, bias=None, strides=(1, 1), padding="valid", dilation=(1, 1)):
    """Output sizes are Keras'; `same` removes the pixels that it would pad in a convolution of the output."""
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel.shape)]
    y = F.conv_transpose2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), None, strides, dilation=dilation)
    y = F.pad(y, (0, max(strides[1] - spans[1], 0), 0, max(strides[0] - spans[0], 0)))
    if padding == "same":
        rows, columns = (size * stride for size, stride in zip(x.shape[1:3], strides))
        above, left = (max(span - stride, 0) // 2 for span, stride in zip(spans, strides))
        y = y[:, :, above : above + rows, left : left + columns]
    y = y.permute(0, 2, 3, 1)
    return y if bias is None else y + bias


def conv3d_transpose(x, kernel, bias=None, strides=(1, 1, 1), padding="valid", dilation=(1, 1, 1)):
    """Like conv2d_transpose."""
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel.shape)]
    y = F.conv_transpose3d(x.permute(0, 4, 1, 2, 3), kernel.permute(4, 3, 0, 1, 2), None, strides, dilation=dilation)
    gaps = [max(stride - span, 0) for span, stride in zip(spans, strides)]
    y = F.pad(y, (0, gaps[2], 0, gaps[1], 0, gaps[0]))
    if padding == "same":
        first = [max(span - stride, 0) // 2 for span, stride in zip(spans, strides)]
        ends = [begin + size * stride for begin, size, stride in zip(first, x.shape[1:4], strides)]
        y = y[:, :, first[0] : ends[0], first[1] : ends[1], first[2] : ends[2]]
    y = y.permute(0, 2, 3, 4, 1)
    return y if bias is None else y + bias


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
    """Returns y, mean and variance."""
    axes = tuple(range(x.dim() - 1))
    y = F.batch_norm(x.movedim(-1, 1), None, None, gamma, beta, True, 0.0, epsilon).movedim(1, -1)
    return y, x.mean(axes), x.var(axes, unbiased=False)
