"""Optimizers that PyTorch does not have, by their papers and Keras' documentation. States have PyTorch's names."""
import torch


class Optimizer(torch.optim.Optimizer):
    """Calls move(w, g, state, group) for each parameter. state["step"] counts from 1; states in `kept` start at 0."""

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
    """Updates and returns the averages of gradients and of their squares, and returns 1 - beta^t for both."""
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
    """KerasAdam with decoupled weight decay."""

    def move(self, w, g, state, group):
        m, v, c1, c2 = adam_averages(g, state, group)
        w.sub_(group["lr"] * (c2**0.5 / c1 * m / (v.sqrt() + group["eps"]) + group["weight_decay"] * w))


class Adamax(Optimizer):
    """Adamax as in Keras, which adds epsilon to the maximum; PyTorch adds it to the gradient's size."""

    kept = ("exp_avg", "largest")

    def move(self, w, g, state, group):
        (first, second), t = group["betas"], state["step"]
        m, u, g = state["exp_avg"], state["largest"], g + group["weight_decay"] * w
        m.mul_(first).add_(g, alpha=1 - first)
        torch.maximum(second * u, g.abs(), out=u)
        w.sub_(group["lr"] * m / ((1 - first**t) * (u + group["eps"])))


class Ftrl(Optimizer):
    """Algorithm 1 of McMahan et al. (2013), with Keras' further options."""

    kept = ("sum", "linear")
    standard = dict(power=-0.5, initial_accumulator_value=0.1, l1=0.0, l2=0.0, shrinkage=0.0, beta=0.0)

    def move(self, w, g, state, group):
        if state["step"] == 1:
            state["sum"] += group["initial_accumulator_value"]
        rate, g = group["lr"], g + group["weight_decay"] * w
        before, now = state["sum"] ** -group["power"], (state["sum"] + g**2) ** -group["power"]
        state["sum"] += g**2
        z = state["linear"].add_(g + 2 * group["shrinkage"] * w - (now - before) / rate * w)
        quadratic = now / rate + 2 * (group["l2"] + group["beta"] / (2 * rate))
        w.copy_(-z.sign() * torch.relu(z.abs() - group["l1"]) / quadratic)


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


class Adafactor(torch.optim.Optimizer):
    """Algorithms 4 and 5 of Shazeer and Stern (2018) as in Keras; weight decay is decoupled."""

    def __init__(self, params, lr, decay=-0.8, eps=(1e-30, 1e-3), threshold=1.0, relative=True):
        super().__init__(params, dict(lr=lr, decay=decay, eps=eps, threshold=threshold, relative=relative,
                                      weight_decay=0.0, spared=False))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                self.move(w, w.grad, self.state[w], group)

    def move(self, w, g, state, group):
        t = state["step"] = state.get("step", 0) + 1
        beta, (least_square, least_rms) = 1 - t ** group["decay"], group["eps"]
        w.mul_(1 - group["lr"] * group["weight_decay"])

        def average(name, now):
            state[name] = beta * state.get(name, 0 * now) + (1 - beta) * now
            return state[name]

        def rms(x):
            return x.square().mean().sqrt()

        square = g**2 + least_square
        if w.dim() < 2:
            v = state["factors"] = average("columns", square)
        else:
            rows, columns = average("rows", square.mean(-1)), average("columns", square.mean(-2))
            v = (rows / rows.mean(-1, keepdim=True)).unsqueeze(-1) * columns.unsqueeze(-2)
            state["factors"] = torch.cat([rows, columns], -1)
        rate = min(group["lr"], t**-0.5) if group["relative"] else group["lr"]
        u = g / v.sqrt()
        w.sub_(rate * max(least_rms, rms(w)) * u / max(1.0, rms(u) / group["threshold"]))


class Lars(Optimizer):
    """Algorithm 1 of You et al. (2017); `spared` parameters use the global learning rate."""

    kept = ("momentum_buffer",)
    standard = dict(momentum=0.9, trust_coefficient=0.001)

    def move(self, w, g, state, group):
        decay, rate = group["weight_decay"], group["lr"]
        if not group["spared"]:
            rate *= group["trust_coefficient"] * w.norm() / (g.norm() + decay * w.norm())
        v = state["momentum_buffer"]
        v.mul_(group["momentum"]).add_(rate * (g + decay * w))
        w.sub_(v)
