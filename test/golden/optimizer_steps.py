"""Cases of steps of every optimizer."""
import torch

from cases import Case
from optimizers import Adafactor, Adamax, Ftrl, KerasAdam, KerasAdamW, Lamb, Lars, Lion


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
    "adam_epsilon_hat": (KerasAdam, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
    "adamw_epsilon_hat": (KerasAdamW, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
    "adam_amsgrad": (torch.optim.Adam, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5,
                                            amsgrad=True)),
    "adamw_amsgrad": (torch.optim.AdamW, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25,
                                              amsgrad=True)),
    "adamax": (Adamax, dict(lr=0.0625)),
    "adamax_decay_clip": (Adamax, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, weight_decay=0.25, clip=0.5)),
    "ftrl": (Ftrl, dict(lr=0.0625)),
    "ftrl_decay_clip": (Ftrl, dict(lr=0.0625, power=-0.75, initial_accumulator_value=0.25, l1=0.5, l2=0.125,
                                   shrinkage=0.0625, beta=0.5, weight_decay=0.25, clip=0.5)),
    # Keras' momentum is PyTorch's with momentum_decay 1.
    "nadam": (torch.optim.NAdam, dict(lr=0.0625, eps=1e-7, momentum_decay=1.0)),
    "nadam_decay_clip": (torch.optim.NAdam, dict(lr=0.0625, betas=(0.75, 0.9375), eps=1e-3, momentum_decay=1.0,
                                                 weight_decay=0.25, clip=0.5)),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.0625, eps=1e-7, initial_accumulator_value=0.1)),
    "adagrad_decay_clip": (torch.optim.Adagrad, dict(lr=0.0625, eps=1e-3, initial_accumulator_value=0.0,
                                                     weight_decay=0.25, clip=0.5)),
    "adadelta": (torch.optim.Adadelta, dict(lr=1.0, rho=0.95, eps=1e-7)),
    "adadelta_decay_clip": (torch.optim.Adadelta, dict(lr=1.0, rho=0.75, eps=1e-3, weight_decay=0.25, clip=0.5)),
    "lion": (Lion, dict(lr=0.0625)),
    "lion_decay_clip": (Lion, dict(lr=0.0625, betas=(0.75, 0.9375), weight_decay=0.25, clip=0.5)),
    "lars": (Lars, dict(lr=0.25)),
    "lars_decay_clip": (Lars, dict(lr=0.5, momentum=0.75, trust_coefficient=0.125, weight_decay=0.25, clip=0.5)),
    "adafactor": (Adafactor, dict(lr=0.25)),
    "adafactor_decay_clip": (Adafactor, dict(lr=0.25, decay=-0.5, eps=(1e-4, 2.0), threshold=0.75, relative=False,
                                             weight_decay=0.25, clip=0.5)),
}


def parts_of(values):
    """A matrix, and a vector without weight decay."""
    return values[:34].view(2, 17), values[34:]


def optimizer_steps(steps=6, count=16.0):
    """in0: the weights before; in1: gradients of all steps, sums over `count` samples. out0: the weights after each
    step; out1, out2, ...: the states after the last one; norms: the norms of the gradients."""
    for name, (kind, how) in optimizers.items():
        how = dict(how)
        clip, decay = how.pop("clip", None), how.pop("weight_decay", 0.0)
        case = Case(name)
        first, gradients = case.normal(51), case.normal(steps, 51, scale=count)
        plain, spared = (torch.nn.Parameter(part.detach().clone()) for part in parts_of(first))
        groups = [dict(params=[plain], weight_decay=decay), dict(params=[spared], weight_decay=0.0, spared=True)]
        optimizer = kind(groups, **how)
        after, norms = [], []
        for gradient in gradients.detach() / count:
            plain.grad, spared.grad = (part.clone() for part in parts_of(gradient))
            norms.append(torch.nn.utils.clip_grad_norm_([plain, spared], clip if clip else 1e9))
            optimizer.step()
            after.append(torch.cat([plain.flatten(), spared]).detach().clone())
        states = [optimizer.state[p] for p in (plain, spared)]
        case.save("in0", first)
        case.save("in1", gradients)
        case.save("out0", torch.stack(after))
        keys = [key for key in ("sum", "square_avg", "acc_delta", "momentum_buffer", "grad_avg", "exp_avg", "exp_avg_sq",
                            "max_exp_avg_sq", "largest", "linear", "factors")
                if states[0].get(key) is not None]
        for state in states:
            if "sum" in state:  # trainctl's sum does not include the initial value
                state["sum"] -= optimizer.param_groups[0]["initial_accumulator_value"]
        for i, key in enumerate(keys):
            case.save(f"out{i + 1}", torch.cat([state[key].flatten() for state in states]))
        case.save("norms", torch.stack(norms))
