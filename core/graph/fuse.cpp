// Fusion: fewer, larger ops that compute the same.
#include "core/graph/fuse.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/images/conv2d.h"
#include "core/graph/ops/normalization/batch_norm_pool.h"
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

namespace trainctl {
namespace {

// A list of ops that knows the writer and the number of readers of each tensor, and from which ops can be removed.
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
  Op& operator[](std::size_t i) { return ops_[i]; }

  // The op that writes the tensor as its first output, if the tensor has only one reader; else null.
  Op* sole_producer(TensorId tensor) {
    const auto writer = writer_.find(tensor);
    if (writer == writer_.end() || reads_[tensor] != 1) return nullptr;
    Op& op = ops_[writer->second];
    return op.outputs[0] == tensor ? &op : nullptr;
  }

  // Whether the tensor exists before the op that writes the other one.
  bool is_made_before(TensorId tensor, TensorId other) const {
    const auto writer = writer_.find(tensor), later = writer_.find(other);
    return later != writer_.end() && (writer == writer_.end() || writer->second < later->second);
  }

  // Replaces the ops `at` and `other` by `fused`, which takes the place of `at`.
  void replace(Op& at, Op& other, Op fused) {
    const auto place = static_cast<std::size_t>(&at - ops_.data());
    other.def = nullptr;
    other.outputs.clear();
    at = std::move(fused);
    for (TensorId output : at.outputs) writer_[output] = place;
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

// The definition of the op with the function fused, or null where the op cannot fuse the function.
std::shared_ptr<const OpDef> with_activation(const Op& op, const ActivationFunction& function) {
  const auto taken = [&](auto def) -> std::shared_ptr<const OpDef> {
    if (def.function.kind != ActivationKind::none) return nullptr;
    def.function = function;
    return std::make_shared<decltype(def)>(std::move(def));
  };
  const auto normalised = [&](auto def) -> std::shared_ptr<const OpDef> {
    if (def.a.relu || function.kind != ActivationKind::relu) return nullptr;
    def.a.relu = true;
    return std::make_shared<decltype(def)>(std::move(def));
  };
  if (!can_be_fused(function.kind)) return nullptr;
  if (const auto* dense = op.get_if<Dense>()) return taken(*dense);
  if (const auto* conv = op.get_if<Conv2d>()) return taken(*conv);
  if (const auto* add = op.get_if<Add>()) return taken(*add);
  if (const auto* add = op.get_if<AddBias>()) return taken(*add);
  if (const auto* norm = op.get_if<BatchNorm>()) return normalised(*norm);
  if (const auto* norm = op.get_if<SynchronizedBatchNorm>()) return normalised(*norm);
  if (const auto* norm = op.get_if<BatchNormInference>()) return normalised(*norm);
  return nullptr;
}

// The definition of a batch normalisation with a residual and the sum's function, or null where the op cannot fuse
// them.
std::shared_ptr<const OpDef> with_residual(const Op& op, const ActivationFunction& function) {
  const auto added = [&](auto def) -> std::shared_ptr<const OpDef> {
    const bool relu = function.kind == ActivationKind::relu;
    if (def.a.residual || def.a.relu || (!relu && function.kind != ActivationKind::none)) return nullptr;
    def.a.residual = true;
    def.a.relu = relu;
    return std::make_shared<decltype(def)>(std::move(def));
  };
  if (const auto* norm = op.get_if<BatchNorm>()) return added(*norm);
  if (const auto* norm = op.get_if<SynchronizedBatchNorm>()) return added(*norm);
  if (const auto* norm = op.get_if<BatchNormInference>()) return added(*norm);
  return nullptr;
}

// Fuses an activation into its producer, at the place of the producer.
void fuse_activation(OpList& ops, Op& op, bool into_products) {
  const auto* activation = op.get_if<Activation>();
  Op* producer = activation ? ops.sole_producer(op.inputs[0]) : nullptr;
  if (!producer || (!into_products && (producer->get_if<Dense>() || producer->get_if<Conv2d>()))) return;
  if (auto def = with_activation(*producer, activation->function)) {
    Op fused = *producer;
    fused.def = std::move(def);
    fused.outputs[0] = op.outputs[0];
    ops.replace(*producer, op, std::move(fused));
  }
}

// Fuses an add into the batch normalisation that computes one summand, at the place of the add, where both summands
// exist.
void fuse_add(OpList& ops, Op& op) {
  const auto* add = op.get_if<Add>();
  if (!add) return;
  for (const std::size_t summand : {std::size_t{0}, std::size_t{1}}) {
    Op* producer = ops.sole_producer(op.inputs[summand]);
    auto def = producer ? with_residual(*producer, add->function) : nullptr;
    if (!def) continue;
    Op fused = *producer;
    fused.def = std::move(def);
    fused.inputs.push_back(op.inputs[1 - summand]);
    fused.outputs[0] = op.outputs[0];
    ops.replace(op, *producer, std::move(fused));
    return;
  }
}

// Adds the mask that a batch normalisation with residual and relu passes to its gradient as a further output.
void add_mask(Graph& graph, Op& op) {
  const auto* norm = op.get_if<BatchNorm>();
  const auto* synchronized = op.get_if<SynchronizedBatchNorm>();
  if (!norm && !synchronized) return;
  const TensorType& x = graph.tensor(op.inputs[0]).type;
  if (!(norm ? norm->a : synchronized->a).masks_by_bits(x.shape.back())) return;
  Tensor mask = graph.tensor(op.outputs[0]);
  mask.name = op.name + "/mask";
  mask.type = batch_norm_mask(x);
  op.outputs.push_back(graph.add_tensor(std::move(mask)));
}

// Fuses a max pooling into the batch normalisation with relu in front of it, at the place of the latter.
void fuse_pooling(OpList& ops, Op& op) {
  const auto* pool = op.get_if<Pool2d>();
  if (!pool || !pool->training || pool->mode != PoolMode::max) return;
  Op* producer = ops.sole_producer(op.inputs[0]);
  const auto* norm = producer ? producer->get_if<BatchNorm>() : nullptr;
  if (!norm || !norm->a.masks_by_x()) return;
  Op fused = *producer;
  fused.def = std::make_shared<BatchNormPool>(norm->a, pool->window);
  fused.outputs = {op.outputs[0], producer->outputs[1], producer->outputs[2], op.outputs[1]};
  ops.replace(*producer, op, std::move(fused));
}

// Fuses the gradient of an activation into the gradient by the input of the dense layer behind the activation, at the
// place of the latter.
void fuse_activation_gradient(OpList& ops, Op& op) {
  const auto* gradient = op.get_if<ActivationGrad>();
  if (!gradient || !gradient_uses_output(gradient->function.kind)) return;
  Op* producer = ops.sole_producer(op.inputs[0]);
  const auto* dense = producer ? producer->get_if<DenseGradInput>() : nullptr;
  if (!dense || dense->accumulate || dense->function.kind != ActivationKind::none) return;
  Op fused = *producer;
  fused.def = std::make_shared<DenseGradInput>(gradient->function);
  fused.inputs.push_back(op.inputs[1]);
  fused.outputs = op.outputs;
  ops.replace(*producer, op, std::move(fused));
}

// The definition of a gradient by an input that adds to another gradient; null where the op is no such gradient or
// cannot.
std::shared_ptr<const OpDef> added_to(const Op& op) {
  if (const auto* conv = op.get_if<Conv2dGradInput>(); conv && !conv->accumulate) {
    return std::make_shared<Conv2dGradInput>(conv->window, conv->groups, conv->input, true);
  }
  const auto* dense = op.get_if<DenseGradInput>();
  if (!dense || dense->accumulate || dense->function.kind != ActivationKind::none) return nullptr;
  return std::make_shared<DenseGradInput>(ActivationFunction{}, true);
}

// Fuses a sum of two gradients into the op that computes one of them: at the place of that op if the other gradient
// exists there, else at the place of the sum.
void fuse_gradient_sum(OpList& ops, Op& op) {
  const auto* add = op.get_if<Add>();
  if (!add || add->function.kind != ActivationKind::none) return;
  const std::size_t last = ops.is_made_before(op.inputs[0], op.inputs[1]) ? 1 : 0;
  for (const std::size_t summand : {last, 1 - last}) {
    Op* producer = ops.sole_producer(op.inputs[summand]);
    auto def = producer ? added_to(*producer) : nullptr;
    if (!def) continue;
    Op fused = *producer;
    fused.def = std::move(def);
    fused.inputs.push_back(op.inputs[1 - summand]);
    fused.outputs = op.outputs;
    if (summand == last) {
      ops.replace(*producer, op, std::move(fused));
    } else {
      ops.replace(op, *producer, std::move(fused));
    }
    return;
  }
}

}  // namespace

Graph fuse(Graph graph, bool into_products) {
  OpList ops(std::move(graph.ops), graph.outputs);
  for (std::size_t i = 0; i < ops.size(); ++i) fuse_add(ops, ops[i]);
  for (std::size_t i = 0; i < ops.size(); ++i) fuse_activation(ops, ops[i], into_products);
  for (std::size_t i = 0; i < ops.size(); ++i) fuse_pooling(ops, ops[i]);
  graph.ops = std::move(ops).take();
  for (Op& op : graph.ops) add_mask(graph, op);
  return graph;
}

Backward fuse(Backward backward) {
  OpList ops(std::move(backward.ops));
  for (std::size_t i = 0; i < ops.size(); ++i) fuse_activation_gradient(ops, ops[i]);
  for (std::size_t i = 0; i < ops.size(); ++i) fuse_gradient_sum(ops, ops[i]);
  backward.ops = std::move(ops).take();
  return backward;
}

}  // namespace trainctl
