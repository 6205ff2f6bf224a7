"""Optimizers that PyTorch lacks, written from their papers and from Keras' documentation; states are named as PyTorch's."""
import torch


class Optimizer(torch.optim.Optimizer):
    """Calls move(w, g, state, group) for each parameter; state["step"] counts from 1, the names `kept` begin at zero."""

    kept = ("exp_avg", "exp_avg_sq")
    standard = dict(betas=(0.9, 0.999), eps=1e-7)

    def __init__(self, params, lr, **options):
        super().__init__(params, dict(lr=lr, weight_decay=0.0, spared=False) | self.standard | options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                state = self.state[w]
                if not state:
                    state.update(step=0, **{name: torch.zeros_like(w) for name in self.kept})
                state["step"] += 1
                self.move(w, w.grad, state, group)


def adam_averages(g, state, group):
    """The averages of gradients and of their squares, and 1 - beta^t for both."""
    (first, second), t = group["betas"], state["step"]
    m, v = state["exp_avg"], state["exp_avg_sq"]
    m.mul_(first).add_(g, alpha=1 - first)
    v.mul_(second).add_(g**2, alpha=1 - second)
    return m, v, 1 - first**t, 1 - second**t


class Lamb(Optimizer):
    """Algorithm 2 of You et al. (2020)."""

    def move(self, w, g, state, group):
        m, v, c1, c2 = adam_averages(g, state, group)
        update = m / c1 / ((v / c2).sqrt() + group["eps"]) + group["weight_decay"] * w
        w.sub_(group["lr"] * w.norm() / update.norm() * update)


class KerasAdam(Optimizer):
    """Adam as in Keras: the bias corrections are part of the learning rate. Weight decay as in PyTorch: L2."""

    def move(self, w, g, state, group):
        m, v, c1, c2 = adam_averages(g + group["weight_decay"] * w, state, group)
        w.sub_(group["lr"] * c2**0.5 / c1 * m / (v.sqrt() + group["eps"]))


class KerasAdamW(Optimizer):
    """The same with decoupled weight decay."""

    def move(self, w, g, state, group):
        m, v, c1, c2 = adam_averages(g, state, group)
        w.sub_(group["lr"] * (c2**0.5 / c1 * m / (v.sqrt() + group["eps"]) + group["weight_decay"] * w))


class Lion(Optimizer):
    """Algorithm 2 of Chen et al. (2023)."""

    kept = ("exp_avg",)
    standard = dict(betas=(0.9, 0.99))

    def move(self, w, g, state, group):
        (first, second), m = group["betas"], state["exp_avg"]
        interpolated = first * m + (1 - first) * g
        assert interpolated.abs().min() > 1e-6, "rounding must not change a sign"
        w.sub_(group["lr"] * (interpolated.sign() + group["weight_decay"] * w))
        m.mul_(second).add_(g, alpha=1 - second)


class Lars(Optimizer):
    """Algorithm 1 of You et al. (2017); spared parameters take the global learning rate."""

    kept = ("momentum_buffer",)
    standard = dict(momentum=0.9, trust_coefficient=0.001)

    def move(self, w, g, state, group):
        decay, rate = group["weight_decay"], group["lr"]
        if not group["spared"]:
            rate *= group["trust_coefficient"] * w.norm() / (g.norm() + decay * w.norm())
        v = state["momentum_buffer"]
        v.mul_(group["momentum"]).add_(rate * (g + decay * w))
        w.sub_(v)
