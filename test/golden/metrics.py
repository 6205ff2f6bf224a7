"""Cases of metrics."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
import numpy as np
import torch
import torch.nn.functional as F

from cases import Case, bfloat16


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
    for name in ("mean_squared_error", "root_mean_squared_error", "mean_absolute_percentage_error",
                 "cosine_similarity", "r2_score"):
        case = Case(f"metric_{name}")
        targets, weights = case.normal(n, k, shift=0.5), case.uniform(n, low=0.5, high=2)
        x = case.add(bfloat16((targets + 0.5 * case.normal(n, k)).detach()))

        def mean(of_samples):
            return (of_samples * (weights if of_samples.dim() == 1 else weights[:, None])).sum(0) / weights.sum()

        squares = (x - targets) ** 2
        value = {"mean_squared_error": lambda: mean(squares.mean(1)),
                 "root_mean_squared_error": lambda: mean(squares.mean(1)).sqrt(),
                 "mean_absolute_percentage_error": lambda: mean(100 * ((x - targets) / targets).abs().mean(1)),
                 "cosine_similarity": lambda: mean(F.cosine_similarity(x, targets)),
                 "r2_score": lambda: (1 - mean(squares) / mean((targets - mean(targets)) ** 2)).mean()}[name]()
        case.record([x, targets, weights], [value], gradients=False)
        case.save("count", weights.sum())
    for name in ("mean_squared_logarithmic_error", "log_cosh", "poisson", "hinge", "squared_hinge"):
        case = Case(f"metric_{name}")
        x, weights = case.uniform(n, k, low=0.25, high=3), case.uniform(n, low=0.5, high=2)
        targets = case.integers(n, k, bound=2).double() if "hinge" in name else case.uniform(n, k, high=3)
        value = (getattr(keras.losses, name)(targets, x) * weights).sum() / weights.sum()
        case.record([x, targets, weights], [value], gradients=False)
        case.save("count", weights.sum())
    n = 60
    for name in ("precision", "recall", "f1_score", "specificity", "mean_iou"):
        for of in ("classes", "one_hot", "answers", "micro", "weighted", "macro_answers"):
            if of not in ("classes", "answers") and name != "f1_score":
                continue
            case = Case(f"metric_{name}_{of}")
            x, weights = case.normal(n, k), case.uniform(n, low=0.5, high=2)
            if of.endswith("answers"):
                targets = case.integers(n, k, bound=2).double()
                predicted, answers = (x > 0).double(), targets
            else:  # the last class never occurs
                with torch.no_grad():
                    x[:, -1] -= 16
                targets = case.integers(n, bound=k - 1)
                predicted, answers = F.one_hot(x.argmax(1), k).double(), F.one_hot(targets.long(), k).double()
            if of == "one_hot":
                targets = answers
            counts = [(weights[:, None] * part).sum(0) for part in (
                predicted * answers, predicted * (1 - answers), (1 - predicted) * answers,
                (1 - predicted) * (1 - answers))]
            if of in ("answers", "micro"):
                counts = [count.sum(0, keepdim=True) for count in counts]
            both, only_predicted, missed, neither = counts
            if name == "mean_iou" and of == "answers":
                both, only_predicted, missed = torch.cat([both, neither]), only_predicted + missed, torch.zeros(1)
            numerator, denominator = {"precision": (both, both + only_predicted), "recall": (both, both + missed),
                                      "f1_score": (2 * both, 2 * both + only_predicted + missed),
                                      "specificity": (neither, neither + only_predicted),
                                      "mean_iou": (both, both + only_predicted + missed)}[name]
            scores = torch.where(denominator > 0, numerator / denominator.clamp(min=1e-30), 0)
            occurring = (both + only_predicted + missed > 0).double()
            shares = both + missed if of == "weighted" else occurring
            case.record([x, targets, weights], [(scores * shares).sum() / shares.sum()], gradients=False)
            case.save("count", weights.sum())
    for curve in ("roc", "pr"):
        case = Case(f"metric_auc_{curve}")
        x, weights = case.uniform(200, 1), case.uniform(200, low=0.5, high=2)
        chances = 0.2 + 0.6 * x.detach().numpy()
        targets = case.add((case.random.random((200, 1)) < chances).astype(np.float32))
        case.record([x, targets, weights], [area_under_curve(x, targets, weights[:, None], curve)], gradients=False)
        case.save("count", weights.sum())


def crossentropy_metrics():
    """Metrics named like losses, of logits and of probabilities, as Keras' metric objects compute them with sample weights."""
    n, k = 13, 6
    smoothed = {"label_smoothing": 0.125}
    for name, kind, options in (
            ("sparse_categorical_crossentropy", keras.metrics.SparseCategoricalCrossentropy, {}),
            ("categorical_crossentropy", keras.metrics.CategoricalCrossentropy, {}),
            ("categorical_crossentropy_smoothed", keras.metrics.CategoricalCrossentropy, smoothed),
            ("binary_crossentropy", keras.metrics.BinaryCrossentropy, {}),
            ("binary_crossentropy_smoothed", keras.metrics.BinaryCrossentropy, smoothed),
            ("kl_divergence", keras.metrics.KLDivergence, {})):
        for of in ("logits", "probabilities"):
            case = Case(f"metric_{name}_{of}")
            x, weights = case.normal(n, k, scale=1.5).detach(), case.uniform(n, low=0.5, high=2).detach()
            link = torch.sigmoid if name.startswith("binary") else lambda rows: F.softmax(rows, 1)
            if of == "probabilities":
                x = torch.tensor(bfloat16(link(x)))
            targets = case.uniform(n, k).detach()
            if name.startswith("sparse"):
                targets = case.integers(n, bound=k)
            elif not name.startswith("binary"):
                targets = torch.tensor(bfloat16(targets / targets.sum(1, keepdim=True)))
                targets[0] = torch.tensor([0, 0, 1, 0, 0, 0])
            takes_logits = of == "logits" and name != "kl_divergence"
            metric = kind(**options, **({"from_logits": True} if takes_logits else {}), dtype="float64")
            metric.update_state(targets, link(x) if of == "logits" and not takes_logits else x, weights)
            case.record([x, targets, weights], [metric.result()], gradients=False)
            case.save("count", weights.sum())
    case = Case("metric_categorical_hinge")
    x, weights = case.normal(n, k, scale=2).detach(), case.uniform(n, low=0.5, high=2).detach()
    targets = F.one_hot(case.integers(n, bound=k).long(), k).double()
    metric = keras.metrics.CategoricalHinge(dtype="float64")
    metric.update_state(targets, x, weights)
    case.record([x, targets, weights], [metric.result()], gradients=False)
    case.save("count", weights.sum())
    case = Case("metric_huber")
    x, targets, weights = case.normal(n, k).detach(), case.normal(n, k).detach(), case.uniform(n, low=0.5, high=2).detach()
    value = (keras.losses.huber(targets, x, delta=0.75) * weights).sum() / weights.sum()
    case.record([x, targets, weights], [value], gradients=False)
    case.save("count", weights.sum())


def area_under_curve(predictions, targets, weights, curve, thresholds=200):
    """The area as Keras documents AUC, with summation_method="interpolation"."""
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


def sequence_metrics():
    """Greedy decoding by keras.ops.ctc_decode, and the edit distance by its recursive definition."""
    for name in ("edit_distance", "sequence_accuracy", "masked_edit_distance"):
        case = Case(f"metric_{name}")
        n, steps, k, longest = 13, 8, 4, 5
        x, weights = case.normal(n, steps, k, scale=2), case.uniform(n, low=0.5, high=2)
        labels = case.random.integers(1, k, (n, longest), dtype=np.int32)
        lengths = case.random.integers(0, steps, n) if name.startswith("masked") else np.full(n, steps)
        decoded = keras.ops.ctc_decode(x.detach(), torch.tensor(lengths), strategy="greedy", mask_index=0)[0][0].numpy()
        for row in range(n):
            labels[row, case.random.integers(0, longest + 1):] = 0
            if row % 3 == 0:  # right, as far as the target is long enough
                labels[row] = np.maximum(decoded[row, :longest], 0)
        values = []
        for of_sample, label in zip(decoded, labels):
            target = [int(i) for i in label if i]
            distance = levenshtein([int(i) for i in of_sample if i >= 0], target)
            values.append(float(distance == 0) if name == "sequence_accuracy" else distance / max(len(target), 1))
        result = (torch.tensor(values, dtype=torch.float64) * weights).sum() / weights.sum()
        inputs = [x, case.add(labels), weights]
        if name.startswith("masked"):
            inputs.append(torch.tensor(np.arange(steps) < lengths[:, None]).to(torch.uint8))
        case.record(inputs, [result], gradients=False)
        case.save("count", weights.sum())


def levenshtein(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(levenshtein(a[1:], b) + 1, levenshtein(a, b[1:]) + 1, levenshtein(a[1:], b[1:]) + (a[0] != b[0]))
