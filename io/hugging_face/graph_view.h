// Finds the parameters of a network and the ops that read them, to describe the network for other programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/graph/graph.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "io/hugging_face/values.h"

namespace trainctl {

class GraphView {
 public:
  explicit GraphView(const Graph& graph) : graph_(&graph) {
    for (const GraphParameter& parameter : graph.parameters)
      parameters_[graph.tensor(parameter.tensor).name] = parameter.tensor;
  }

  // The shape of a parameter; nullptr if there is no such parameter.
  const Shape* shape(const std::string& name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? nullptr : &graph_->tensor(found->second).type.shape;
  }
  // The first op of a kind; with a `parameter`, the first that reads it. Nullptr if there is none.
  template <class Def>
  const Def* op(const std::string& parameter = "") const {
    const auto found = parameters_.find(parameter);
    if (!parameter.empty() && found == parameters_.end()) return nullptr;
    for (const Op& op : graph_->ops) {
      const Def* def = op.get_if<Def>();
      if (def == nullptr) continue;
      if (parameter.empty()) return def;
      for (const TensorId input : op.inputs) {
        if (input == found->second) return def;
      }
    }
    return nullptr;
  }
  // The rate of the first dropout of single values; 0 if there is none.
  double dropout_rate() const {
    for (const Op& op : graph_->ops) {
      const auto* dropout = op.get_if<Dropout>();
      if (dropout != nullptr && dropout->unit == DropoutUnit::element) return short_double(dropout->rate);
    }
    return 0;
  }
  // The number of blocks: the first number n for which there is no parameter BEFORE + n + AFTER.
  std::int64_t blocks(const std::string& before, const std::string& after) const {
    std::int64_t count = 0;
    while (parameters_.contains(before + std::to_string(count) + after)) ++count;
    return count;
  }

 private:
  const Graph* graph_;
  std::map<std::string, TensorId> parameters_;
};

}  // namespace trainctl
