"""Cases of losses. Needs keras."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np
import torch
import torch.nn.functional as F

from cases import Case, bfloat16


def save(case, x, targets, weights, loss):
    """Records the weighted sum and its gradient by the predictions x."""
    total = (loss * weights).sum()
    for i, value in enumerate((x, targets, weights)):
        case.save(f"in{i}", value)
    case.save("out0", total)
    case.save("din0", torch.autograd.grad(total, x)[0])


def weights_of(case, *shape):
    """Weights of samples, one of which is 0."""
    weights = case.uniform(*shape, low=0.5, high=2)
    with torch.no_grad():
        weights[3 % shape[0]] = 0
    return weights


def losses():
    """Inputs: predictions, targets, sample weights. Output: the weighted sum of the losses; din0 is its gradient."""
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
                # Keras smooths targets as they are; PyTorch's own smoothing assumes that they sum to 1.
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
            save(case, x, targets, weights, loss)

    for name in ("mean_absolute_error", "mean_absolute_percentage_error", "log_cosh"):
        case = Case(f"loss_{name}")
        targets = case.away_from_zero(n, k, distance=0.5)
        x = case.add(bfloat16((targets + case.away_from_zero(n, k, distance=0.25)).detach()))
        loss = {"mean_absolute_error": lambda: F.l1_loss(x, targets, reduction="none"),
                "mean_absolute_percentage_error": lambda: 100 * (x - targets).abs() / targets.abs(),
                "log_cosh": lambda: torch.log(torch.cosh(x - targets))}[name]().mean(1)
        save(case, x, targets, weights_of(case, n), loss)

    case = Case("loss_categorical_hinge")  # without equal values, and without margins near 0
    order = np.argsort(case.random.random((n, k)), axis=1)
    x = case.add(bfloat16(0.75 * order - 1.1 + case.random.uniform(-0.05, 0.05, (n, k))))
    targets = F.one_hot(case.integers(n, bound=k).long(), k).double()
    save(case, x, targets, weights_of(case, n), keras.losses.categorical_hinge(targets, x))

    for name in ("hinge", "squared_hinge"):
        for signs in ("", "_signed"):  # targets of 0 and 1, or of -1 and 1
            case = Case(f"loss_{name}{signs}")
            answers = case.integers(n, k, bound=2).double()
            margins = case.away_from_zero(n, k, distance=0.25).detach()
            x = case.add(bfloat16((1 - margins) * (2 * answers - 1)))
            targets = 2 * answers - 1 if signs else answers
            save(case, x, targets, weights_of(case, n), getattr(keras.losses, name)(targets, x))

    for name in ("mean_squared_logarithmic_error", "poisson", "cosine_similarity"):
        case = Case(f"loss_{name}")
        lowest = -3 if name == "cosine_similarity" else 0.75
        x, targets = case.uniform(n, k, low=lowest, high=3), case.uniform(n, k, low=min(lowest, 0), high=3)
        save(case, x, targets, weights_of(case, n), getattr(keras.losses, name)(targets, x))

    case = Case("loss_kl_divergence")
    x, targets = case.normal(n, k, scale=2), case.uniform(n, k).detach()
    targets = torch.tensor(bfloat16(targets / targets.sum(1, keepdim=True)))
    targets[0] = torch.tensor([0, 0, 1, 0, 0])
    save(case, x, targets, weights_of(case, n), keras.losses.kl_divergence(targets, F.softmax(x, 1)))

    for name, gamma, alpha, smoothing in (("", 2.0, 1.0, 0.0), ("_balanced", 1.5, 0.375, 0.125), ("_flat", 0.0, 1.0, 0.0)):
        case = Case("loss_binary_focal_crossentropy" + name)
        x, targets = case.normal(n, k, scale=2), case.integers(n, k, bound=2).double()
        smoothed = targets * (1 - smoothing) + smoothing / 2
        p = torch.sigmoid(x)
        right = smoothed * p + (1 - smoothed) * (1 - p)
        loss = (1 - right) ** gamma * F.binary_cross_entropy(p, smoothed, reduction="none")
        if name == "_balanced":
            loss = loss * (smoothed * alpha + (1 - smoothed) * (1 - alpha))
        save(case, x, targets, weights_of(case, n), loss.mean(1))

    for name, gamma, alpha, smoothing in (("sparse_categorical", 2.0, 0.25, 0.0), ("categorical", 2.0, 0.25, 0.0),
                                          ("categorical", 0.5, 0.75, 0.125)):
        case = Case(f"loss_{name}_focal_crossentropy" + ("_smoothed" if smoothing else ""))
        x, numbers = case.normal(n, k, scale=2), case.integers(n, bound=k)
        targets = F.one_hot(numbers.long(), k).double()
        if name == "categorical":
            targets = case.uniform(n, k).detach()
            targets = torch.tensor(bfloat16(targets / targets.sum(1, keepdim=True)))
        smoothed, p = targets * (1 - smoothing) + smoothing / k, F.softmax(x, 1)
        loss = -(alpha * (1 - p) ** gamma * smoothed * torch.log(p)).sum(1)
        save(case, x, numbers if name == "sparse_categorical" else targets, weights_of(case, n), loss)

    for name in ("dice", "masked_dice"):  # is computed for whole samples, and each of their positions has that loss
        case = Case(f"loss_{name}")
        x, targets = case.normal(n, 2, 3, 4, scale=2), case.integers(n, 2, 3, 4, bound=2).double()
        weights = weights_of(case, *((n, 2, 3) if name == "masked_dice" else (n,)))
        with torch.no_grad():
            if name == "masked_dice":
                weights[0, 1] = 0
        shares = weights[..., None] if name == "masked_dice" else torch.ones(())
        p, over = torch.sigmoid(x), (1, 2, 3)
        loss = 1 - 2 * (shares * targets * p).sum(over) / ((shares * targets).sum(over) + (shares * p).sum(over) + 1e-7)
        save(case, x, targets, weights, loss[:, None, None].expand(n, 2, 3) if weights.dim() == 3 else 6 * loss)
    for name in ("sequence", "masked_sequence"):  # a class for each position
        case = Case(f"loss_{name}")
        x, targets = case.normal(4, 6, 5, scale=2), case.integers(4, 6, bound=5)
        weights = case.uniform(*((4, 6) if name == "masked_sequence" else (4,)), low=0.5, high=2)
        with torch.no_grad():
            weights[1] = 0
        loss = F.cross_entropy(x.transpose(1, 2), targets.long(), reduction="none")
        save(case, x, targets, weights, loss if weights.dim() == 2 else loss.sum(1))
    ctc_losses()


def ctc_losses():
    """The targets have several lengths, among them an empty one, and one that needs all steps because of its repeats."""
    for name, blank in (("ctc", 0), ("ctc_last_class", 4), ("masked_ctc", 0)):
        case = Case(f"loss_{name}")
        n, steps, k, longest = 7, 7, 5, 4
        x, weights = case.normal(n, steps, k, scale=2), weights_of(case, n)
        labels = case.random.integers(1, k, (n, longest), dtype=np.int32)
        labels[0], labels[1], labels[2] = 1, (2, 2, 3, 3), (4, 1, 4, 1)
        lengths = [4, 4, 3, 2, 0, 1, 4] if name != "masked_ctc" else [2, 4, 3, 2, 0, 1, 3]
        present = np.ones((n, steps), np.uint8)
        if name == "masked_ctc":
            present[:, 5:] = case.random.random((n, 2)) < 0.5
            present[0], present[1], present[5] = (1, 0, 1, 1, 0, 0, 0), (1, 1, 1, 1, 0, 1, 1), (1, 1, 0, 0, 0, 0, 0)
        for row, length in enumerate(lengths):
            labels[row, length:] = 0
        if blank == 4:
            labels = (labels + 4) % 5
        targets = case.add(labels)
        losses = []
        for row, length in enumerate(lengths):
            own = F.log_softmax(x[row, torch.tensor(present[row], dtype=torch.bool)], 1)
            losses.append(F.ctc_loss(own, targets[row, :length].long(), torch.tensor(len(own)), torch.tensor(length),
                                     blank=blank, reduction="none"))
        save(case, x, targets, weights, torch.stack(losses))
        if name == "masked_ctc":
            case.save("in3", torch.tensor(present))
