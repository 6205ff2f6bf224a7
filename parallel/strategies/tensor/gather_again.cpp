// Adds the second gathering of activations to the backward pass.
#include "parallel/strategies/tensor/gather_again.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// A gathering of the forward pass: the collective, followed by ops that make aliases of its output.
using Gathering = std::vector<Op>;

class GatherAgain {
 public:
  explicit GatherAgain(Program program) : program_(std::move(program)) {
    for (const Segment& segment : program_.segments) {
      if (segment.phase == Phase::forward) find_in(segment);
    }
  }

  Program run() {
    for (Segment& segment : program_.segments) {
      if (segment.phase == Phase::backward) insert_in(segment);
    }
    return std::move(program_);
  }

 private:
  void find_in(const Segment& segment) {
    for (const Op& op : segment.ops) {
      if (gathers_positions(op)) {
        gathering_of_[op.outputs[0]] = gatherings_.size();
        gatherings_.push_back({op});
      } else if (op.def->output_is_input()) {
        const auto found = gathering_of_.find(op.inputs[0]);
        if (found == gathering_of_.end()) continue;
        gatherings_[found->second].push_back(op);
        gathering_of_[op.outputs[0]] = found->second;
      }
    }
  }

  void insert_in(Segment& segment) {
    std::map<TensorId, TensorId> again;  // the tensor that is gathered again; key: the tensor of the forward pass
    std::vector<Op> ops;
    for (Op& op : segment.ops) {
      for (TensorId& input : op.inputs) {
        const auto found = gathering_of_.find(input);
        if (found == gathering_of_.end()) continue;
        if (!again.contains(input)) repeat(gatherings_[found->second], again, ops);
        input = again.at(input);
      }
      ops.push_back(std::move(op));
    }
    segment.ops = std::move(ops);
  }

  void repeat(const Gathering& gathering, std::map<TensorId, TensorId>& again, std::vector<Op>& ops) {
    for (Op op : gathering) {
      if (const auto found = again.find(op.inputs[0]); found != again.end()) op.inputs[0] = found->second;
      Tensor tensor = program_.tensor(op.outputs[0]);
      tensor.name += "/again";
      if (tensor.alias_of != no_tensor) tensor.alias_of = op.inputs[0];
      program_.tensors.push_back(std::move(tensor));
      again[op.outputs[0]] = static_cast<TensorId>(program_.tensors.size() - 1);
      op.outputs[0] = again.at(op.outputs[0]);
      ops.push_back(std::move(op));
    }
  }

  Program program_;
  std::vector<Gathering> gatherings_;
  std::map<TensorId, std::size_t> gathering_of_;  // index in gatherings_; key: a gathered tensor, or an alias of it
};

}  // namespace

bool gathers_positions(const Op& op) {
  const auto* gather = op.get_if<AllGatherColumns>();
  return gather != nullptr && gather->use == GatheredUse::summands;
}

Program gather_again(Program program, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::tensor) == 1 || !strategy.options.sequence_parallel) return program;
  return GatherAgain(std::move(program)).run();
}

}  // namespace trainctl
