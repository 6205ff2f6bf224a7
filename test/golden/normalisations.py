"""Cases of batch, layer and group normalisation."""
import numpy as np
import torch.nn.functional as F

from cases import Case, bfloat16
from windows import batch_norm, pool2d


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

    # With ReLU, and with a residual and ReLU. Sums are not near 0, so that rounding does not change a sign.
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

    # With ReLU and max pooling. Values are not near each other or 0, so that rounding does not change a maximum.
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

    def rms_norm(name, shape, scale=True, center=False, epsilon=1e-3):
        case, n = Case(name), shape[-1]
        x = case.normal(*shape, scale=2, shift=0.5)
        gamma = case.uniform(n, low=0.5, high=1.5) if scale else None
        beta = case.normal(n) if center else None
        y = F.rms_norm(x, (n,), gamma, epsilon)
        case.record([v for v in (x, gamma, beta) if v is not None], [y + beta if center else y])

    rms_norm("rms_norm", (9, 24), epsilon=1e-6)
    rms_norm("rms_norm_sequence", (3, 7, 5, 19), epsilon=1e-5)
    rms_norm("rms_norm_shifted", (6, 17), center=True)
    rms_norm("rms_norm_bare", (5, 13), scale=False)

    # The norm of a sum, whose result is added to the sum if `again`. Summands have few bits, so that the sum is exact.
    def norm_of_sum(name, shape, centered=True, again=True):
        case, n = Case(name), shape[-1]
        x = case.add(case.random.integers(-8, 9, shape) / 4)
        other = case.add(case.random.integers(-8, 9, shape) / 4)
        gamma = case.uniform(n, low=0.5, high=1.5)
        total = x + other
        if centered:
            beta = case.normal(n)
            y, operands = F.layer_norm(total, (n,), gamma, beta, 1e-5), [x, other, gamma, beta]
        else:
            y, operands = F.rms_norm(total, (n,), gamma, 1e-5), [x, other, gamma]
        case.record(operands, [total + y if again else y])

    norm_of_sum("layer_norm_of_sum", (7, 3, 24))
    norm_of_sum("layer_norm_of_sum_once", (9, 19), again=False)
    norm_of_sum("rms_norm_of_sum", (5, 4, 13), centered=False)


def group_normalisation():
    def group_norm(name, shape, groups, scale=True, center=True, epsilon=1e-3):
        case, n = Case(name), shape[-1]
        x = case.normal(*shape, scale=2, shift=0.5)
        gamma = case.uniform(n, low=0.5, high=1.5) if scale else None
        beta = case.normal(n) if center else None
        y = F.group_norm(x.movedim(-1, 1), groups, gamma, beta, epsilon).movedim(1, -1)
        case.record([v for v in (x, gamma, beta) if v is not None], [y])

    group_norm("group_norm", (3, 4, 5, 6), 3)
    group_norm("group_norm_no_scale", (3, 4, 5, 6), 3, scale=False)
    group_norm("group_norm_no_center", (3, 4, 5, 6), 3, center=False)
    group_norm("group_norm_bare", (3, 4, 5, 6), 3, scale=False, center=False)
    group_norm("group_norm_32", (2, 5, 5, 64), 32)
    group_norm("group_norm_one", (3, 7, 9), 1, epsilon=1e-5)
    group_norm("group_norm_of_channels", (2, 4, 6, 5), 5)
    group_norm("group_norm_rows", (4, 24), 4)
