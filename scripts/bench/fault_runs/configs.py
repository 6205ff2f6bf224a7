"""The configs of the campaign: small networks whose runs take a few seconds, one for each strategy."""
import dataclasses

STEPS = 300
CHECKPOINT_EVERY = 25

CONFIG = """
data: {dataset: synthetic, samples: 320, shape: [16, 16, 3], classes: 5}
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dropout: 0.2
    - dense: {units: 5, activation: softmax}
train:
  batch_size: 32
  max_steps: %d
  loss: sparse_categorical_crossentropy
  optimizer: {name: adam, learning_rate: 1e-4}
  deterministic: true
log: {every: 1 steps, tensorboard: false}
checkpoint: {every: %d steps}
cluster: {timeout: 30 s}
""" % (STEPS, CHECKPOINT_EVERY)


@dataclasses.dataclass(frozen=True)
class Strategy:
    name: str
    value: str          # of the key `strategy`
    ranks: tuple        # the numbers of ranks with which a run may begin or go on
    resizes: bool       # whether the weights do not depend on the number of ranks


STRATEGIES = (
    Strategy("data", "{}", (1, 2, 3, 4), False),
    Strategy("shard", "{shard: gradients, reproducible: {shards: 4}}", (1, 2, 3, 4), True),
    Strategy("pipeline", "{pipeline: 2, reproducible: {shards: 2}}", (2, 4), True),
    Strategy("reproducible", "{reproducible: {shards: 4}}", (1, 2, 3, 4), True),
)
