// Cuts a graph into stages.
#include "parallel/strategies/pipeline/pipeline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/masks.h"

namespace trainctl {
namespace {

constexpr int no_stage = -1;

// A whole graph and one of its stages.
class StageCut {
 public:
  StageCut(Graph graph, int own, const Stages& stages)
      : graph_(std::move(graph)), own_(own), trained_(trained_tensors(graph_)) {
    const std::size_t tensors = graph_.tensors.size();
    maker_.assign(tensors, no_stage);
    readers_.resize(tensors);
    for (const Op& op : graph_.ops) {
      const int stage = stage_of(op, stages);
      const bool is_in_every_stage = stage == no_stage;
      stage_of_.push_back(stage);
      for (TensorId id : op.outputs) maker_[index(id)] = stage;
      for (TensorId id : op.inputs) {
        if (!is_in_every_stage) readers_[index(id)].insert(stage);
        require(is_in_every_stage || maker_[index(id)] <= stage,
                format("the stages do not follow the order of the layers: '{}'", op.name));
      }
    }
    read_for_every_stage();
    for (std::size_t i = 0; i < graph_.masks.size(); ++i) {  // the loss of an output reads its mask
      const int reader = maker_[index(graph_.outputs[i])];
      if (graph_.masks[i] != no_tensor) readers_[index(graph_.masks[i])].insert(reader);
    }
  }

  Graph stage() {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      const auto is_read = [&](TensorId id) { return is_read_here(id); };
      if (stage_of_[i] == no_stage && std::ranges::any_of(op.outputs, is_read)) ops.push_back(op);
    }
    for (const Op& op : graph_.ops) {
      for (TensorId id : op.outputs) {
        if (maker_[index(id)] < own_ && maker_[index(id)] != no_stage && is_read_here(id))
          ops.push_back(receive(id, op));
      }
    }
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (stage_of_[i] == own_) ops.push_back(graph_.ops[i]);
    }
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (stage_of_[i] == own_) append_sends(graph_.ops[i], ops);
    }
    graph_.ops = std::move(ops);
    remove_tensors_of_other_stages();
    return std::move(graph_);
  }

 private:
  // Whether the op computes the padding mask of an input of the network, which every stage can do by itself.
  bool is_mask_of_input(const Op& op) const {
    return op.get_if<PositionMask>() != nullptr && graph_.tensor(op.inputs[0]).role == Role::input;
  }

  // The stage of an op. An op of an added loss, which is no layer, is in the last stage that computes one of its
  // inputs.
  int stage_of(const Op& op, const Stages& stages) const {
    if (prepares_input(graph_, op) || is_mask_of_input(op)) return no_stage;
    if (const auto found = stages.find(op.name); found != stages.end()) return found->second;
    int stage = no_stage;
    for (TensorId id : op.inputs) stage = std::max(stage, maker_[index(id)]);
    return stage;
  }

  // An op without a stage is computed by every stage that reads its outputs, so that these stages read its inputs, too.
  void read_for_every_stage() {
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      const Op& op = graph_.ops[i];
      if (stage_of_[i] != no_stage || prepares_input(graph_, op)) continue;
      std::set<int> stages;
      for (TensorId id : op.outputs) stages.insert(readers_[index(id)].begin(), readers_[index(id)].end());
      for (TensorId id : op.inputs) readers_[index(id)].insert(stages.begin(), stages.end());
    }
  }

  bool is_read_here(TensorId id) const { return readers_[index(id)].contains(own_); }

  Op receive(TensorId id, const Op& made_by) {
    Tensor& tensor = graph_.tensors[index(id)];
    tensor.alias_of = no_tensor;
    auto def = std::make_shared<Receive>(MeshAxis::pipeline, maker_[index(id)], tensor.type, trained_.contains(id));
    def->placed = tensor.placements;
    return {std::move(def), {}, {id}, made_by.name, made_by.location};
  }

  void append_sends(const Op& op, std::vector<Op>& ops) {
    for (TensorId id : op.outputs) {
      for (const int reader : std::set<int>(readers_[index(id)])) {
        if (reader == own_) continue;
        Tensor sent = graph_.tensor(id);
        sent.name += format("/to_{}", reader);
        sent.alias_of = id;
        ops.push_back({std::make_shared<Send>(MeshAxis::pipeline, reader),
                       {id},
                       {graph_.add_tensor(std::move(sent))},
                       op.name,
                       op.location});
      }
    }
  }

  void remove_tensors_of_other_stages() {
    std::set<TensorId> held;
    for (const Op& op : graph_.ops) {
      held.insert(op.inputs.begin(), op.inputs.end());
      if (op.get_if<Receive>() == nullptr) held.insert(op.outputs.begin(), op.outputs.end());
    }
    const auto drop_unused = [&](TensorId& id) {
      if (!held.contains(id)) id = no_tensor;
    };
    std::for_each(graph_.inputs.begin(), graph_.inputs.end(), drop_unused);
    std::for_each(graph_.targets.begin(), graph_.targets.end(), drop_unused);
    drop_unused(graph_.step);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (maker_[index(graph_.outputs[i])] == own_) continue;
      graph_.outputs[i] = no_tensor;
      if (!graph_.masks.empty()) graph_.masks[i] = no_tensor;
    }
    std::erase_if(graph_.spectral_norms, [&](const GraphSpectralNorm& norm) { return !held.contains(norm.kernel); });
    for (const GraphSpectralNorm& norm : graph_.spectral_norms) {
      held.insert(norm.vector);
      readers_[index(norm.vector)] = readers_[index(norm.kernel)];
    }
    std::erase_if(graph_.parameters, [&](const GraphParameter& parameter) { return !held.contains(parameter.tensor); });
    for (GraphParameter& parameter : graph_.parameters) {
      const std::set<int>& stages = readers_[index(parameter.tensor)];
      if (stages.size() > 1) parameter.stages.assign(stages.begin(), stages.end());
    }
    std::erase_if(graph_.statistics, [&](const GraphStatistic& statistic) {
      return !held.contains(statistic.batch_value == no_tensor ? statistic.moving : statistic.batch_value);
    });
  }

  Graph graph_;
  const int own_;
  std::vector<int> stage_of_;  // stage of each op; no_stage: every stage that reads its output
  std::vector<int> maker_;     // stage that computes each tensor; no_stage: no stage, or each stage that reads it
  std::vector<std::set<int>> readers_;  // stages that read each tensor
  std::set<TensorId> trained_;          // tensors with gradients, which are sent back
};

}  // namespace

std::set<TensorId> trained_tensors(const Graph& graph) {
  std::set<TensorId> trained;
  for (const GraphParameter& parameter : graph.parameters) {
    if (parameter.trainable) trained.insert(parameter.tensor);
  }
  for (const Op& op : graph.ops) {
    const bool depends =
        op.def->peers_need_gradient() ||
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return trained.contains(id); });
    if (depends) trained.insert(op.outputs.begin(), op.outputs.end());
  }
  return trained;
}

Graph cut_stage(Graph graph, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::pipeline) == 1) return graph;
  return StageCut(std::move(graph), rank.along(MeshAxis::pipeline), strategy.stages).stage();
}

}  // namespace trainctl
