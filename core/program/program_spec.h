// The specification that the programs of a run are built from: the model, its losses and metrics, and the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/model.h"
#include "core/layers/model/reference.h"
#include "core/metrics/loss_reduction.h"
#include "core/metrics/targets.h"
#include "core/spec/keys.h"

namespace trainctl {

// The options that all programs of a run share.
struct ProgramSpec {
  // An output of the model, with the loss that trains it.
  struct Output {
    std::string name;   // name of the output's layer, as in results; empty: the only output
    Choice loss;        // empty in prediction programs, which have no targets, metrics and optimizer
    double weight = 1;  // weight of the loss in the weighted sum of all outputs' losses
    std::vector<Choice> metrics;
    TargetInfo target;  // metadata of this output's targets in the data set
  };

  // A player of a run with several optimizers: it minimizes the sum of some losses by changing some of the parameters.
  struct Player {
    std::string name;
    std::vector<Reference> losses;  // names of added losses and of outputs; "output": the only output
    std::vector<Reference> trains;  // patterns of the names of layers and blocks whose parameters it changes
    Choice optimizer;
    double rate = 1;  // factor of the run's learning rate
    int steps = 1;    // number of updates in each step of the run
    SourceLocation location;
  };

  // Layers whose parameters are moving averages of those of other layers: a parameter whose name begins with `name`
  // follows the parameter whose name begins with `of` instead, and has the same initial values.
  struct Teacher {
    std::string name;
    std::string of;
    double momentum = 0;
    SourceLocation location;
  };

  const ModelOptions* model = nullptr;
  std::vector<ModelInput> inputs = {ModelInput{}};  // formats and shapes after the transforms
  std::vector<Output> outputs = {Output{}};
  Shape weight;            // shape of one sample's weights: scalar, or [P...] of its positions
  bool is_masked = false;  // whether weights of positions are a mask: positions of weight 0 do not exist
  LossReduction loss_reduction = LossReduction::sum_over_batch_size;
  Choice optimizer;
  std::vector<Player> players;  // in the order of their updates; empty: `optimizer` changes all parameters
  std::vector<Teacher> teachers;
  std::optional<float> moving_average;  // momentum of the moving average of weights; empty: there is none
  double clip_norm = 0;                 // largest norm of the gradient; 0: not clipped
  DType compute = DType::float32;       // dtype of activations: float32 or bfloat16
  std::uint64_t seed = 0;               // seed of dropout

  // Whether losses are divided by the sum of the weights instead of the number of samples or positions.
  bool divides_by_weight() const { return is_masked || loss_reduction == LossReduction::mean_with_sample_weight; }
  // Whether the spec is for prediction programs, which have no loss.
  bool predicts() const { return !outputs.front().loss; }
};

}  // namespace trainctl
