// Fuses ops into fewer, larger ops that compute the same.
#include "core/graph/passes/fuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/graph/ops/images/pool2d.h"

namespace trainctl {
namespace {

// A list of ops with the writer and the number of readers of each tensor, in which pairs of ops can be replaced.
class OpList {
 public:
  explicit OpList(std::vector<Op> ops, const std::vector<TensorId>& also_read = {}) : ops_(std::move(ops)) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      for (TensorId input : ops_[i].inputs) ++reads_[input];
      for (TensorId output : ops_[i].outputs) writer_[output] = i;
    }
    for (TensorId id : also_read) ++reads_[id];
  }

  std::size_t size() const { return ops_.size(); }
  const Op& operator[](std::size_t i) const { return ops_[i]; }

  // The index of the op that writes the tensor as its first output; empty unless the tensor has exactly one reader.
  std::optional<std::size_t> sole_writer(TensorId tensor) const {
    const auto writer = writer_.find(tensor);
    if (writer == writer_.end() || reads_.at(tensor) != 1) return {};
    return ops_[writer->second].outputs[0] == tensor ? std::optional(writer->second) : std::nullopt;
  }

  // Whether the tensor has been written before the op with this index runs.
  bool exists_before(TensorId tensor, std::size_t op) const {
    const auto writer = writer_.find(tensor);
    return writer == writer_.end() || writer->second < op;
  }

  // Replaces the ops with these indices by `fused`, at the index of the first op if all inputs of `fused` exist there,
  // otherwise at the index of the second.
  void replace(std::size_t first, std::size_t second, Op fused) {
    const bool early = std::all_of(fused.inputs.begin(), fused.inputs.end(),
                                   [&](TensorId input) { return exists_before(input, first); });
    ops_[first] = ops_[second] = Op();
    const std::size_t index = early ? first : second;
    for (TensorId output : fused.outputs) writer_[output] = index;
    ops_[index] = std::move(fused);
  }

  // Replaces the ops with these indices by ops with the same inputs and outputs.
  void replace(std::size_t first, std::size_t second, std::pair<Op, Op> ops) {
    ops_[first] = std::move(ops.first);
    ops_[second] = std::move(ops.second);
  }

  std::vector<Op> take() && {
    std::erase_if(ops_, [](const Op& op) { return op.def == nullptr; });
    return std::move(ops_);
  }

 private:
  std::vector<Op> ops_;
  std::map<TensorId, std::size_t> writer_;
  std::map<TensorId, int> reads_;
};

// The order in which the operands of an op are tried, if several of them come from ops that could be fused with it.
enum class FirstAsked { first_operand, newest_operand };

std::vector<std::size_t> operands_of(const OpList& ops, std::size_t reader, FirstAsked asked) {
  std::vector<std::size_t> operands(ops[reader].inputs.size());
  std::iota(operands.begin(), operands.end(), std::size_t{0});
  if (asked == FirstAsked::first_operand) return operands;
  const auto writer = [&](std::size_t operand) { return ops.sole_writer(ops[reader].inputs[operand]); };
  std::stable_sort(operands.begin(), operands.end(),
                   [&](std::size_t a, std::size_t b) { return writer(a) > writer(b); });
  return operands;
}

// Fuses each op with the only reader of its result, if the op has a rule for that reader.
void fuse_all(OpList& ops, FirstAsked asked, bool may_hide_nan) {
  for (std::size_t reader = 0; reader < ops.size(); ++reader) {
    for (const std::size_t operand : operands_of(ops, reader, asked)) {
      const auto writer = ops.sole_writer(ops[reader].inputs[operand]);
      if (!writer) continue;
      std::optional<Op> fused = ops[*writer].def->fused_with(ops[*writer], ops[reader], operand);
      if (!fused || (!may_hide_nan && fused->def->may_hide_nan())) continue;
      ops.replace(*writer, reader, std::move(*fused));
      break;
    }
  }
}

// Moves relus into the max poolings that read them.
void move_relus(OpList& ops) {
  for (std::size_t reader = 0; reader < ops.size(); ++reader) {
    if (ops[reader].inputs.size() != 1) continue;
    const auto writer = ops.sole_writer(ops[reader].inputs[0]);
    if (!writer) continue;
    auto moved = move_relu_after_pooling(ops[*writer], ops[reader]);
    if (moved) ops.replace(*writer, reader, *std::move(moved));
  }
}

// Adds the additional output of a fused op, if it has one: the mask that batch normalization with residual and ReLU
// passes to its gradient.
void add_mask(Graph& graph, Op& op) {
  const std::vector<TensorType> outputs = op.def->outputs(types_of(op.inputs, graph.tensors));
  if (outputs.size() == op.outputs.size()) return;
  require(outputs.size() == op.outputs.size() + 1, "fusion adds more than one output");
  Tensor mask = graph.tensor(op.outputs[0]);
  mask.name = op.name + "/mask";
  mask.type = outputs.back();
  op.outputs.push_back(graph.add_tensor(std::move(mask)));
}

}  // namespace

Graph fuse(Graph graph, bool may_hide_nan) {
  OpList ops(std::move(graph.ops), graph.outputs);
  fuse_all(ops, FirstAsked::first_operand, may_hide_nan);
  move_relus(ops);
  graph.ops = std::move(ops).take();
  for (Op& op : graph.ops) add_mask(graph, op);
  return graph;
}

Backward fuse(Backward backward) {
  OpList ops(std::move(backward.ops));
  fuse_all(ops, FirstAsked::newest_operand, true);
  backward.ops = std::move(ops).take();
  return backward;
}

}  // namespace trainctl
