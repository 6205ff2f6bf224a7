// A model with its losses and metrics for one batch size: the forward graph that strategies cut, and what follows from
// its outputs. Without a loss it predicts.
#pragma once

#include <string>
#include <vector>

#include "core/layers/model.h"
#include "core/metrics/output.h"
#include "core/metrics/targets.h"
#include "core/spec/keys.h"

namespace trainctl {

// What all programs of a run have in common.
struct ProgramSpec {
  // What an output of the model is trained to.
  struct Output {
    std::string name;   // of its layer, for results; empty: of the only output
    Choice loss;        // none: of prediction programs, which read neither targets and metrics nor the optimizer
    double weight = 1;  // of its loss among those of the other outputs
    std::vector<Choice> metrics;
    TargetFacts target;  // of the data set
  };

  const ModelOptions* model = nullptr;
  std::vector<ModelInput> inputs = {ModelInput{}};  // after the transforms
  std::vector<Output> outputs = {Output{}};
  Shape weight;  // of one sample's weights: scalar, or [P...] for a mask of its positions
  Choice optimizer;
  double clip_norm = 0;            // 0: none
  DType compute = DType::float32;  // of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // for dropout

  // Whether its programs predict, and do nothing else.
  bool predicts() const { return !outputs.front().loss; }
};

struct Network {
  Graph graph;                          // forward, neither cut nor fused
  std::vector<ResolvedOutput> outputs;  // as in the spec
  std::vector<LayerLine> layers;        // as the user wrote them
  double chance_loss = 0;               // of a network that knows nothing yet; 0: not known
};

// The network for micro-batches of so many samples. Problems go to the reader, and the result is then unusable.
Network build_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader);

}  // namespace trainctl
