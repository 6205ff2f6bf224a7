// A model with its loss and metrics for one batch size: the forward graph that strategies cut, and what follows from
// its output. Without a loss it predicts.
#pragma once

#include <string>
#include <vector>

#include "core/layers/model.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/metrics/targets.h"
#include "core/spec/keys.h"

namespace trainctl {

// What all programs of a run have in common.
struct ProgramSpec {
  const ModelOptions* model = nullptr;
  Shape sample;              // of one input, after the transforms: [28, 28, 1]
  SampleFormat format;       // of inputs in a batch
  std::int64_t classes = 0;  // of the data set; 0: targets are values, or nothing is known
  Shape target;              // of one sample's target: [P...] of class numbers for positions P, or [P..., K] of values
  Shape weight;              // of one sample's weights: scalar, or [P...] for a mask of its positions
  LabelMode label_mode = LabelMode::integer;
  Choice loss;  // none: of prediction programs, which read neither targets and metrics nor the optimizer
  std::vector<Choice> metrics;
  Choice optimizer;
  double clip_norm = 0;            // 0: none
  DType compute = DType::float32;  // of activations: float32 or bfloat16
  std::uint64_t seed = 0;          // for dropout
};

struct Network {
  Graph graph;  // forward, neither cut nor fused
  ResolvedLoss loss;
  std::vector<ResolvedMetric> metrics;  // as in the spec
  std::vector<LayerLine> layers;        // as the user wrote them
  TargetForm target_form = TargetForm::values;
  double chance_loss = 0;  // of a network that knows nothing yet; 0: not known
};

// The network for micro-batches of so many samples. Problems go to the reader, and the result is then unusable.
Network build_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader);

}  // namespace trainctl
