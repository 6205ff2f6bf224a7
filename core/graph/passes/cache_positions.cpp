// Follows the positions of the input through the graph: each op either computes them one by one, as its placement rule
// tells, or is replaced by an op that knows where they begin, or reads earlier positions again, as recurrent ops do.
#include "core/graph/passes/cache_positions.h"

#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/attention.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/recurrent.h"
#include "core/graph/ops/rotary.h"
#include "core/graph/ops/write_cache.h"

namespace trainctl {
namespace {

constexpr Placement by_position = split_along(1);

class Rewriter {
 public:
  Rewriter(Graph graph, std::size_t tokens, std::int64_t positions)
      : graph_(std::move(graph)), positions_(positions), placements_(graph_.tensors.size(), replicated) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const bool of_positions = i == tokens || graph_.tensor(graph_.inputs[i]).type == tokens_type(tokens);
      if (of_positions) placements_[index(graph_.inputs[i])] = by_position;
    }
    Tensor starts;
    starts.name = "starts";
    starts.type = {{graph_.batch}, DType::int32};
    starts.role = Role::input;
    starts_ = graph_.add_tensor(std::move(starts));
    placements_.push_back(replicated);
    graph_.inputs.push_back(starts_);
  }

  CachedGraph run() {
    const std::vector<Op> ops = std::exchange(graph_.ops, {});
    for (const Op& op : ops) {
      follow(op);
      if (!not_causal_.empty()) break;
    }
    for (const TensorId output : graph_.outputs) {
      if (not_causal_.empty() && placements_[index(output)] != by_position) not_causal_ = "its output has no positions";
    }
    return {std::move(graph_), std::move(problem_), std::move(not_causal_)};
  }

 private:
  TensorType tokens_type(std::size_t tokens) const { return graph_.tensor(graph_.inputs[tokens]).type; }

  // Appends the op, or what replaces it, or sets what is wrong with it.
  void follow(const Op& op) {
    if (const auto* attention = op.get_if<Attention>()) return follow(*attention, op);
    if (const auto* recurrent = op.get_if<Recurrent>()) return follow(*recurrent, op);
    const bool has_positions = !op.inputs.empty() && placements_[index(op.inputs[0])] == by_position &&
                               graph_.tensor(op.inputs[0]).type.shape[0] == graph_.batch;
    if (const auto* rotary = op.get_if<Rotary>(); rotary != nullptr && has_positions) {
      return replace(with_positions(*rotary), op, 1);
    }
    if (const auto* embedding = op.get_if<PositionEmbedding>(); embedding != nullptr && has_positions) {
      return replace(std::make_shared<PositionEmbedding>(embedding->adds, true), op, 2);
    }
    std::vector<Placement> inputs;
    for (const TensorId id : op.inputs) inputs.push_back(placements_[index(id)]);
    const std::vector<TensorType> input_types = types_of(op.inputs, graph_.tensors),
                                  output_types = types_of(op.outputs, graph_.tensors);
    PlacementQuery query;
    query.inputs = inputs;
    query.input_types = input_types;
    query.output_types = output_types;
    const OutputPlacements found = op.def->placements(query);
    if (!found.problem.empty()) return refuse(op);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) placements_[index(op.outputs[i])] = found.outputs[i];
    graph_.ops.push_back(op);
  }

  static std::string layer_of(const Op& op) { return format("the layer '{}' ({})", op.name, op.def->kind()); }

  void refuse(const Op& op) { not_causal_ = layer_of(op) + " may read later positions"; }

  // The op's results at a position depend on all earlier positions, which it must read again.
  void reads_earlier(const Op& op) {
    if (problem_.empty()) problem_ = layer_of(op) + " reads all earlier positions";
    for (const TensorId output : op.outputs) placements_[index(output)] = by_position;
  }

  void follow(const Recurrent& recurrent, const Op& op) {
    const RecurrentAttributes& a = recurrent.a;
    const bool forward = a.sequences && !a.backwards && !a.reversed && !a.returns_c && !a.begins;
    forward ? reads_earlier(op) : refuse(op);
  }

  std::shared_ptr<const OpDef> with_positions(const Rotary& rotary) const {
    auto def = std::make_shared<Rotary>(rotary);
    def->positions = positions_;
    return def;
  }

  // Appends the op with another definition, whose inputs are the first `kept` inputs and the starts.
  void replace(std::shared_ptr<const OpDef> def, Op op, std::size_t kept) {
    op.def = std::move(def);
    op.inputs.resize(kept);
    op.inputs.push_back(starts_);
    placements_[index(op.outputs[0])] = by_position;
    graph_.ops.push_back(std::move(op));
  }

  void follow(const Attention& attention, const Op& op) {
    const bool packed = attention.a.packed != 0;
    const bool self =
        placements_[index(op.inputs[0])] == by_position && (packed || placements_[index(op.inputs[1])] == by_position);
    if (!self || !attention.a.causal) return refuse(op);
    if (packed || attention.a.mask || attention.a.dropout.rate != 0) return reads_earlier(op);
    AttentionAttributes cached = attention.a;
    cached.documents = false;
    cached.starts = true;
    Op replaced = op;
    replaced.def = std::make_shared<Attention>(cached);
    replaced.inputs = {op.inputs[0], cached_rows(op, 1, "/keys"), cached_rows(op, 2, "/values"), starts_};
    for (const TensorId output : op.outputs) placements_[index(output)] = by_position;
    graph_.ops.push_back(std::move(replaced));
  }

  // Appends the op that writes an input of attention into its cache, and returns the cache.
  TensorId cached_rows(const Op& attention, std::size_t input, const std::string& suffix) {
    const auto def = std::make_shared<WriteCache>(positions_);
    const std::vector<TensorId> inputs{attention.inputs[input], starts_};
    Tensor cache;
    cache.name = attention.name + suffix;
    cache.type = def->outputs(types_of(inputs, graph_.tensors))[0];
    cache.role = Role::cache;
    cache.location = attention.location;
    const TensorId id = graph_.add_tensor(std::move(cache));
    placements_.push_back(replicated);
    graph_.ops.push_back({def, inputs, {id}, attention.name, attention.location});
    return id;
  }

  Graph graph_;
  std::int64_t positions_;
  std::vector<Placement> placements_;  // by tensor: split along dimension 1 if that dimension is the positions
  TensorId starts_ = no_tensor;
  std::string problem_, not_causal_;
};

}  // namespace

CachedGraph cache_positions(Graph graph, std::size_t tokens, std::int64_t positions) {
  return Rewriter(std::move(graph), tokens, positions).run();
}

}  // namespace trainctl
