// The `train` section of a config: the length of training, batches, loss, optimizer and precision.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/layers/model/model.h"
#include "core/metrics/choices.h"
#include "core/metrics/class_weights.h"
#include "core/metrics/loss_reduction.h"
#include "core/metrics/monitor.h"
#include "core/optim/choices.h"
#include "core/spec/by_name.h"
#include "core/spec/values.h"
#include "core/tensor/dtype.h"
#include "parallel/trainer/hooks/patience_options.h"
#include "parallel/trainer/loop/not_finite_policy.h"
#include "parallel/trainer/phases.h"
#include "parallel/trainer/players.h"

namespace trainctl {

// The dtype of activations and of the compute copies of weights; master weights are always float32.
enum class Precision { float32, bfloat16, float16 };

template <>
struct EnumNames<Precision> {
  static constexpr EnumName<Precision> names[] = {
      {Precision::float32, "float32"}, {Precision::bfloat16, "bfloat16"}, {Precision::float16, "float16"}};
};

// Whether the learning rate is meant for the batch of all ranks (off) or for the batch of one rank (by_ranks).
enum class RateScaling { off, by_ranks };

template <>
struct EnumNames<RateScaling> {
  static constexpr EnumName<RateScaling> names[] = {{RateScaling::off, "false"}, {RateScaling::by_ranks, "true"}};
};

// A moving average of all weights, as use_ema of Keras' optimizers.
struct MovingAverageOptions {
  double momentum = 0.99;

  static Keys<MovingAverageOptions> keys();
};

struct TrainOptions {
  // Exactly one of batch_size and batch_size_per_rank is set.
  std::optional<std::int64_t> batch_size;  // number of samples of all ranks together
  std::optional<std::int64_t> batch_size_per_rank;
  // At least one of epochs, max_steps, max_time and `phases` is set. With `phases`, `epochs` is the sum of the phases'
  // epochs. The first limit that is reached ends the run.
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> max_steps;
  std::optional<Seconds> max_time;
  std::optional<std::int64_t> steps_per_epoch;  // empty: one pass over the data set
  ByName<ChoiceOf<loss_choices>> loss;          // key: output
  std::map<std::string, double> loss_weights;   // key: output; 1 if not set
  ByName<ChoicesOf<metric_choices>> metrics;    // key: output
  ChoiceOf<optimizer_choices> optimizer;
  PlayerList players;                // empty: `optimizer` trains all layers
  Ordered<TeacherOptions> teachers;  // key: the beginning of the names of the teacher's layers
  ChoiceOf<schedule_choices> schedule{"constant"};
  // A RateScaling, or the batch size that the given rate is meant for.
  std::variant<RateScaling, std::int64_t> scale_learning_rate = RateScaling::off;
  Precision precision = Precision::float32;
  std::int64_t gradient_accumulation = 1;
  std::optional<double> clip_norm;
  std::optional<ClassWeights> class_weights;
  LossReduction loss_reduction = LossReduction::sum_over_batch_size;
  std::optional<MovingAverageOptions> moving_average;
  std::optional<EarlyStoppingOptions> early_stopping;
  std::optional<PlateauOptions> reduce_on_plateau;
  std::vector<PhaseOptions> phases;  // empty: one phase with the run's epochs, frozen layers and optimizer
  Located<OnNotFinite> on_not_finite{OnNotFinite::stop, {}};
  std::int64_t max_skipped = 10;
  bool deterministic = false;
  bool tf32 = false;
  bool cuda_graphs = true;
  bool kernel_timing = true;

  static Keys<TrainOptions> keys();

  // The number of samples of a full batch of all ranks together.
  std::int64_t global_batch(int ranks) const { return batch_size ? *batch_size : *batch_size_per_rank * ranks; }
  // The factor on the learning rates of the schedule; batch_size must be set.
  double rate_factor() const;
  DType compute() const;
  double loss_weight(const std::string& output) const {
    const auto found = loss_weights.find(output);
    return found == loss_weights.end() ? 1 : found->second;
  }
  // Whether each of the model's outputs has a loss and all metrics were read without errors.
  bool reads_choices_of(const std::vector<std::string>& outputs) const;
  // Returns the names of the results with a single value: "loss", "accuracy"; with several outputs "loss",
  // "digit_loss", "digit_accuracy"; with added losses also "kl_loss", and "output_loss" for the only output.
  std::vector<std::string> result_names(const ModelOptions& model) const;
  // Returns the modes of the results that are expressions, for a model with these outputs.
  GivenModes given_modes(const std::vector<std::string>& outputs) const;
  // Reports keys that do not match the names of the model's outputs, and results with equal names. `node`: the section.
  void check_names_of(const ModelOptions& model, const Node& node, Reader& reader) const;
};

}  // namespace trainctl
