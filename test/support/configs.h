// Sections of small configs that the tests of whole runs share.
#pragma once

#include <string>

namespace trainctl::test {

// 103 samples: in batches of 20, the last batch of each epoch has 3 samples, so that one of 4 ranks has none. 37
// validation samples.
inline const std::string uneven_data = R"(
data: {dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5, validation: {samples: 37}}
log: {every: 1 steps}
)";

inline const std::string mlp_model = R"(
model:
  layers:
    - flatten
    - dense: {units: 48, activation: relu}
    - dropout: 0.3
    - dense: {units: 24, activation: tanh}
    - dense: {units: 5, activation: softmax}
)";

inline const std::string skip_model = R"(
model:
  layers:
    - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same, activation: relu}
    - residual:
        layers:
          - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
          - dropout: 0.2
          - conv2d: {filters: 8, kernel_size: 3, padding: same}
        activation: relu
    - max_pooling2d: {name: pooled, pool_size: 2}
    - conv2d: {name: wide, filters: 8, kernel_size: 3, padding: same, activation: gelu}
    - concatenate: {from: [pooled, wide]}
    - global_average_pooling2d
    - dense: {units: 5}
)";

// Uses a convolution three times, and a dense layer and a dropout twice.
inline const std::string shared_model = R"(
model:
  layers:
    - conv2d: {name: first, filters: 12, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: again, filters: 12, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: again, filters: 12, kernel_size: 3, padding: same, activation: relu}
    - max_pooling2d: {pool_size: 2}
    - dropout: {name: drop, rate: 0.2}
    - conv2d: {name: again, filters: 12, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dense: {name: mix, units: 12, activation: tanh}
    - dropout: {name: drop, rate: 0.2}
    - dense: {name: mix, units: 12, activation: tanh}
    - dense: {units: 5}
)";

inline const std::string batch_norm_model = R"(
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {momentum: 0.9}
    - activation: relu
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dense: {units: 5, activation: softmax}
)";

inline std::string train_section(const std::string& keys) {
  return "train: {loss: sparse_categorical_crossentropy, metrics: [accuracy], " + keys + "}\n";
}

// Training in reproducible mode on up to four ranks; 200 epochs take seconds on a fast machine, too. `checkpoint`: that
// section's map.
inline std::string lasting_config(const std::string& checkpoint, int epochs) {
  return R"(
data: {dataset: synthetic, samples: 320, shape: [32, 32, 3], classes: 5}
log: {every: 1 steps}
strategy: {reproducible: {shards: 4}}
model:
  layers:
    - conv2d: {filters: 16, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 16, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dropout: 0.2
    - dense: {units: 5, activation: softmax}
checkpoint: )" +
         checkpoint + "\n" +
         train_section("batch_size: 32, epochs: " + std::to_string(epochs) +
                       ", optimizer: {name: adam, learning_rate: 1e-4}");
}

}  // namespace trainctl::test
