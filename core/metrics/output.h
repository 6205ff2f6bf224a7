// An output of the network with its loss, weight and metrics, resolved against the network.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/metrics/target_form.h"

namespace trainctl {

struct ResolvedOutput {
  std::string name;  // of its layer; empty: of the only output
  ResolvedLoss loss;
  double weight = 1;                    // of its loss among those of the other outputs
  std::vector<ResolvedMetric> metrics;  // as in the config
  TargetForm target_form = TargetForm::values;
  std::int64_t rows_each = 1;  // rows of the output that have a weight in common

  // "digit_loss", or "loss" of the only output: what results and their tensors are called, as Keras does.
  std::string prefixed(const std::string& result) const { return name.empty() ? result : name + "_" + result; }
};

}  // namespace trainctl
