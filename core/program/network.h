// A model with its losses and metrics for one batch size: the forward graph that strategies cut, and the resolved
// outputs. A network without losses is for prediction.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/ops/whole_batch.h"
#include "core/layers/model/layer_line.h"
#include "core/metrics/output.h"
#include "core/program/program_spec.h"
#include "core/program/update_ops.h"

namespace trainctl {

struct Network {
  Graph graph;                          // forward, neither cut nor fused
  std::vector<ResolvedOutput> outputs;  // in the order of the spec; then the model's added losses
  std::vector<LayerLine> layers;        // one line for each layer that the user wrote
  std::set<std::string> blocks;         // paths of residual blocks and of the bodies of repeats
  double chance_loss = 0;               // expected loss before any training; 0: unknown
  std::vector<std::string> warnings;    // likely mistakes, each with its remedy
  std::vector<TeacherParameter> teachers;
};

// Builds the network for micro-batches of `micro_batch` samples. Problems are reported to the reader; the returned
// network is then unusable.
// `shares`: the samples of the replicas (Parallelism::shares).
Network build_network(const ProgramSpec& spec, std::int64_t micro_batch, bool training, Reader& reader,
                      const SampleShares& shares = {});

}  // namespace trainctl
