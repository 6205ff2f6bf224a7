// Finds cheap results of the forward pass that the backward pass reads, and inserts the ops that compute them again.
#include "core/compile/cheap_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/gated_linear_unit.h"
#include "core/graph/ops/normalization/layer_norm.h"

namespace trainctl {
namespace {

constexpr std::int64_t least_bytes = 1 << 20;

// The least number of floating-point operations, for each element of a result, of the ops that read it in the backward
// pass. Computing an element again takes about as long as a hundred of them on one core. With the products of the
// forward pass and of the input's gradient, a layer does three times as many, so that a repetition takes about 3 % of
// its time at most.
constexpr double least_flops = 1000;

bool is_cheap(const Op& op) {
  return op.get_if<Activation>() != nullptr || op.get_if<GatedLinearUnit>() != nullptr ||
         op.get_if<LayerNorm>() != nullptr;
}

// The ops of one segment that read a tensor or an alias of it.
struct Reads {
  std::size_t first = 0, last = 0;  // numbers of ops
  double flops = 0;                 // of all of them
};

class CheapValues {
 public:
  explicit CheapValues(Program& program) : program_(program), reads_(program.segments.size()) {
    for (const Tensor& tensor : program.tensors) {
      if (tensor.alias_of != no_tensor) aliased_.insert(tensor.alias_of);
    }
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
      const Segment& segment = program.segments[s];
      for (std::size_t o = 0; o < segment.ops.size(); ++o) add_reads(s, o, segment.ops[o]);
      for (const Op& op : segment.ops) {
        for (const TensorId id : op.outputs) ++writes_[memory(id)];
      }
    }
  }

  void run() {
    for (std::size_t s = 0; s < program_.segments.size(); ++s) {
      if (program_.segments[s].phase != Phase::forward) continue;
      for (const Op& op : program_.segments[s].ops) {
        if (is_cheap(op) && saves_memory(op, s)) repeat(op);
      }
    }
    for (std::size_t s = 0; s < program_.segments.size(); ++s) {
      if (program_.segments[s].phase == Phase::backward && !repeated_.empty()) insert_in(s);
    }
  }

 private:
  // The tensor whose memory a tensor has: itself, unless it is an alias.
  TensorId memory(TensorId id) const {
    while (program_.tensor(id).alias_of != no_tensor) id = program_.tensor(id).alias_of;
    return id;
  }

  void add_reads(std::size_t segment, std::size_t number, const Op& op) {
    std::set<TensorId> read;
    for (const TensorId id : op.inputs) read.insert(memory(id));
    if (read.empty()) return;
    const double flops = op.def->flops(types_of(op.inputs, program_.tensors), types_of(op.outputs, program_.tensors));
    for (const TensorId id : read) {
      Reads& reads = reads_[segment].try_emplace(id, Reads{number, number, 0}).first->second;
      reads.last = number;
      reads.flops += flops;
    }
  }

  const Reads* reads_of(TensorId id, std::size_t segment) const {
    const auto found = reads_[segment].find(id);
    return found == reads_[segment].end() ? nullptr : &found->second;
  }

  // Whether the first output of an op of a forward segment takes less memory if it is computed again.
  bool saves_memory(const Op& op, std::size_t forward) const {
    const TensorId id = op.outputs[0];
    const Tensor& tensor = program_.tensor(id);
    const bool own_memory = tensor.alias_of == no_tensor && !aliased_.contains(id) && writes_.at(id) == 1;
    if (tensor.role != Role::activation || tensor.type.dtype != DType::float32 || tensor.type.bytes() < least_bytes ||
        !own_memory || reads_of(id, forward) == nullptr) {
      return false;
    }
    bool is_kept = false;  // from the forward pass to the backward pass
    for (std::size_t s = 0; s < program_.segments.size(); ++s) {
      const Reads* reads = reads_of(id, s);
      if (s == forward || reads == nullptr) continue;
      if (program_.segments[s].phase != Phase::backward ||
          reads->flops < least_flops * static_cast<double>(tensor.type.shape.count()) || !has_inputs(op, s, *reads)) {
        return false;
      }
      is_kept = true;
    }
    return is_kept;
  }

  // Whether the inputs of an op are in memory, with the values of the forward pass, when a backward segment first reads
  // its output.
  bool has_inputs(const Op& op, std::size_t backward, const Reads& output) const {
    return std::ranges::all_of(op.inputs, [&](TensorId input) {
      const TensorId id = memory(input);
      const Role role = program_.tensor(id).role;
      if (role == Role::parameter) return true;
      if (role != Role::activation && role != Role::input) return false;
      const Reads* reads = reads_of(id, backward);
      const auto writes = writes_.find(id);
      return reads != nullptr && reads->last >= output.first && !repeated_.contains(id) &&
             (role == Role::input || (writes != writes_.end() && writes->second == 1));
    });
  }

  void repeat(const Op& op) {
    Op again = op;
    for (TensorId& output : again.outputs) {
      Tensor tensor = program_.tensor(output);
      tensor.name += "/again";
      program_.tensors.push_back(std::move(tensor));
      output = static_cast<TensorId>(program_.tensors.size() - 1);
    }
    repeated_.emplace(op.outputs[0], std::move(again));
  }

  void insert_in(std::size_t number) {
    std::set<TensorId> inserted;
    std::vector<Op> ops;
    for (Op& op : program_.segments[number].ops) {
      for (TensorId& input : op.inputs) {
        const auto found = repeated_.find(input);
        if (found == repeated_.end()) continue;
        if (inserted.insert(input).second) ops.push_back(found->second);
        input = found->second.outputs[0];
      }
      ops.push_back(std::move(op));
    }
    program_.segments[number].ops = std::move(ops);
  }

  Program& program_;
  std::vector<std::map<TensorId, Reads>> reads_;  // for each segment, by the tensor that has the memory
  std::map<TensorId, int> writes_;                // number of the ops that write each tensor's memory
  std::set<TensorId> aliased_;                    // tensors that have aliases
  std::map<TensorId, Op> repeated_;               // the op that computes a tensor again; key: the tensor
};

}  // namespace

void recompute_cheap_values(Program& program) {
  // Between the passes of a player, the updates of other players change parameters.
  if (program.step.players.empty()) CheapValues(program).run();
}

}  // namespace trainctl
