// Tensor parallelism as a function from graph to graph.
#include "parallel/strategies/tensor.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/images/conv2d.h"
#include "parallel/strategies/parts.h"
#include "parallel/strategies/split_groups.h"

namespace trainctl {
namespace {

std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }

Placement last_dimension(const TensorType& type) { return split_along(static_cast<int>(type.shape.rank()) - 1); }

// Walks a forward graph and writes this rank's part of it.
class Cutter {
 public:
  // The ops with the numbers `left` are not split by columns. `stages`: of a pipeline that the graph will be cut into.
  Cutter(const Graph& graph, const MeshRank& rank, const std::set<std::size_t>& left, const Stages& stages)
      : from_(graph),
        left_(left),
        stages_(stages),
        ranks_(rank.size(MeshAxis::tensor)),
        place_(rank.along(MeshAxis::tensor)),
        forms_(graph.tensors.size()) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      for (TensorId input : graph.ops[i].inputs) forms_[index(input)].readers.push_back(i);
    }
    for (const GraphStatistic& statistic : graph.statistics) ++moved_[statistic.moving];
  }

  void run() {
    for (std::size_t i = 0; i < from_.ops.size(); ++i) cut(from_.ops[i], i);
    for (TensorId output : from_.outputs) to_.outputs.push_back(end_with(output));
    finish();
  }

  // The column-split ops of groups that do not pay.
  std::vector<std::size_t> unpaid() const { return groups_.unpaid(); }
  bool splits() const { return !groups_.empty(); }
  Graph take() { return std::move(to_); }

 private:
  // How a tensor of the graph appears in the part.
  struct Forms {
    TensorId whole = no_tensor;        // equal on all ranks
    TensorId shared = no_tensor;       // the same as the input of layers that are split by columns
    int shared_in = 0;                 // the stage of these layers
    TensorId part = no_tensor;         // this rank's part, of an activation along the last dimension
    int group = -1;                    // of the layers that the split form joins
    std::vector<std::size_t> readers;  // ops
  };

  void cut(const Op& op, std::size_t number) {
    if (is_splittable(op)) {
      if (is_split(op.inputs[0]) && !shares_kernel(op)) return split_rows(op);
      if (units(op) % ranks_ == 0 && !is_left(op)) return split_columns(op, number);
    }
    if (!work_on_parts(op)) keep(op);
  }

  // A dense layer, convolution or embedding whose parameters only such ops read, of the same kind.
  bool is_splittable(const Op& op) const {
    const auto* convolution = op.get_if<Conv2d>();
    const bool of_channels = op.get_if<Dense>() != nullptr || is_embedding(op);
    if (!of_channels && (convolution == nullptr || convolution->groups != 1)) return false;
    const auto is_alike = [&](std::size_t reader) { return from_.ops[reader].def->kind() == op.def->kind(); };
    return std::all_of(op.inputs.begin() + 1, op.inputs.end(), [&](TensorId parameter) {
      const std::vector<std::size_t>& readers = forms_[index(parameter)].readers;
      return std::all_of(readers.begin(), readers.end(), is_alike);
    });
  }
  // Layers that share a kernel are all split by its columns, or none of them is.
  bool shares_kernel(const Op& op) const { return forms_[index(op.inputs[1])].readers.size() > 1; }
  bool is_left(const Op& op) const {
    const std::vector<std::size_t>& readers = forms_[index(op.inputs[1])].readers;
    return std::any_of(readers.begin(), readers.end(), [this](std::size_t reader) { return left_.contains(reader); });
  }
  std::int64_t units(const Op& op) const { return from_.tensor(op.inputs[1]).type.shape.back(); }
  static bool is_embedding(const Op& op) { return op.get_if<Embedding>() != nullptr; }
  bool is_split(TensorId id) const { return forms_[index(id)].part != no_tensor; }

  void split_columns(const Op& op, std::size_t number) {
    // Tokens have no gradient that the ranks would add up.
    const TensorId x = is_embedding(op) ? whole(op.inputs[0]) : shared(op.inputs[0], op);
    const int joined = is_embedding(op) ? groups_.add() : forms_[index(op.inputs[0])].group;
    SplitGroup& group = groups_[joined];
    group.work += work_of(op);
    group.begins.push_back(number);
    std::vector<TensorId> inputs{x};
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      inputs.push_back(parameter_part(op.inputs[i], from_.tensor(op.inputs[i]).type.shape.rank() - 1));
    }
    Forms& y = forms_[index(op.outputs[0])];
    y.part = in_parts(emit(op.def, std::move(inputs), op, "")[0]);
    y.group = joined;
  }

  // The bias is added to the sum, once.
  void split_rows(const Op& op) {
    const Tensor& y = from_.tensor(op.outputs[0]);
    SplitGroup& group = groups_[forms_[index(op.inputs[0])].group];
    group.work += work_of(op);
    group.exchanged += static_cast<double>(y.type.shape.count());
    const TensorId kernel = parameter_part(op.inputs[1], from_.tensor(op.inputs[1]).type.shape.rank() - 2);
    const TensorId summand = emit(op.def, {forms_[index(op.inputs[0])].part, kernel}, op, "/summand")[0];
    const bool bias = op.inputs.size() > 2;
    TensorId sum = emit(std::make_shared<AllReduce>(MeshAxis::tensor), {summand}, op, bias ? "/sum" : "")[0];
    if (bias) sum = emit(std::make_shared<AddBias>(), {sum, whole(op.inputs[2])}, op, "")[0];
    forms_[index(op.outputs[0])].whole = sum;
  }

  // Lets the op work on parts along the last dimension, where all of its activations are split and its rule of
  // placement lets it work on each part alone. Returns false where it needs whole ones.
  bool work_on_parts(const Op& op) {
    if (op.inputs.empty() || !is_split(op.inputs[0]) || moves_shared(op)) return false;
    std::vector<Placement> placements;
    std::vector<TensorType> types;
    std::vector<bool> parts;
    for (TensorId input : op.inputs) {
      const Tensor& tensor = from_.tensor(input);
      const bool part = is_split(input) || is_of_channels(input, op);
      if (!part && (tensor.type.shape.rank() > 1 || tensor.role == Role::parameter)) return false;
      parts.push_back(part);
      types.push_back(part ? part_of(tensor.type) : tensor.type);
      placements.push_back(part ? last_dimension(tensor.type) : replicated);
    }
    const auto def = on_part(op, from_.tensor(op.inputs[0]).type.shape, ranks_, place_);
    if (def == nullptr || !splits_outputs(op, *def, placements, types)) return false;

    int group = forms_[index(op.inputs[0])].group;
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId input = op.inputs[i];
      if (is_split(input)) groups_.join(group, forms_[index(input)].group);
      inputs.push_back(!parts[i]         ? whole(input)
                       : is_split(input) ? forms_[index(input)].part
                                         : parameter_part(input, 0));
    }
    const std::vector<TensorId> made = emit(def, std::move(inputs), op, "");
    for (std::size_t i = 0; i < made.size(); ++i) {
      forms_[index(op.outputs[i])].part = in_parts(made[i]);
      forms_[index(op.outputs[i])].group = group;
    }
    return true;
  }

  // Whether the rule of placement has all outputs of an op in parts along the last dimension if its inputs are placed
  // so. `def`: what the op is on a part. Its shape rule is not asked: an op that does not take parts may have no shape
  // for them (half of a group of channels is no group), and says so by its placements.
  bool splits_outputs(const Op& op, const OpDef& def, std::span<const Placement> placements,
                      std::span<const TensorType> inputs) const {
    std::vector<TensorType> outputs;
    for (TensorId id : op.outputs) {
      const TensorType& whole = from_.tensor(id).type;
      if (whole.shape.rank() == 0 || whole.shape.back() % ranks_ != 0) return false;
      outputs.push_back(part_of(whole));
    }
    const OutputPlacements result = def.placements({MeshAxis::tensor, placements, inputs, outputs, {}, {}, {}});
    if (!result.problem.empty()) return false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (result.outputs[i] != last_dimension(outputs[i])) return false;
    }
    return true;
  }

  // Whether the op makes a batch's value for a running statistic that several layers move.
  bool moves_shared(const Op& op) const {
    return std::any_of(from_.statistics.begin(), from_.statistics.end(), [&](const GraphStatistic& statistic) {
      return moved_.at(statistic.moving) > 1 &&
             std::find(op.outputs.begin(), op.outputs.end(), statistic.batch_value) != op.outputs.end();
    });
  }

  // Whether the tensor is a parameter or statistic with a value for each channel of the op's input.
  bool is_of_channels(TensorId id, const Op& op) const {
    const Tensor& tensor = from_.tensor(id);
    if (tensor.role != Role::parameter && tensor.role != Role::statistic) return false;
    return tensor.type.shape == Shape{from_.tensor(op.inputs[0]).type.shape.back()} &&
           forms_[index(id)].readers.size() == 1;
  }

  void keep(const Op& op) {
    std::vector<TensorId> inputs;
    for (TensorId input : op.inputs) inputs.push_back(whole(input));
    const std::vector<TensorId> made = emit(op.def, std::move(inputs), op, "");
    for (std::size_t i = 0; i < made.size(); ++i) forms_[index(op.outputs[i])].whole = made[i];
  }

  // A tensor that all ranks have, gathered where each has a part.
  TensorId whole(TensorId id) {
    Forms& forms = forms_[index(id)];
    if (forms.whole != no_tensor) return forms.whole;
    if (forms.part == no_tensor) return forms.whole = to_.add_tensor(from_.tensor(id));
    groups_[forms.group].exchanged += static_cast<double>(from_.tensor(id).type.shape.count());
    const auto gather = std::make_shared<AllGatherColumns>(MeshAxis::tensor, ranks_, place_);
    forms.whole = emit(gather, {forms.part}, maker_of(id), "/gathered")[0];
    to_.tensors[index(forms.whole)].name = from_.tensor(id).name + "/gathered";
    return forms.whole;
  }

  // An output, in parts where it is split: what follows takes it so, or gathers it, as is assumed here.
  TensorId end_with(TensorId id) {
    if (!is_split(id)) return whole(id);
    Forms& forms = forms_[index(id)];
    groups_[forms.group].exchanged += static_cast<double>(from_.tensor(id).type.shape.count());
    return forms.part;
  }

  // States that the ranks have parts of an activation along its last dimension. Where another stage receives it,
  // nothing else tells.
  TensorId in_parts(TensorId id) {
    Tensor& part = to_.tensors[index(id)];
    part.placements.assign(mesh_axes, replicated);
    part.placements[static_cast<std::size_t>(MeshAxis::tensor)] = last_dimension(part.type);
    return id;
  }

  int stage_of(const Op& op) const {
    const auto stage = stages_.find(op.name);
    return stage == stages_.end() ? 0 : stage->second;
  }

  // The same as the input of layers of which each rank computes a part: the ranks' gradients by it add up. Each stage
  // that has such layers adds up its own, since a whole gradient travels between stages.
  TensorId shared(TensorId id, const Op& reader) {
    const TensorId x = whole(id);
    Forms& forms = forms_[index(id)];
    const int stage = stage_of(reader);
    if (forms.shared == no_tensor || forms.shared_in != stage) {
      forms.shared_in = stage;
      forms.shared = emit(std::make_shared<Identity>(MeshAxis::tensor), {x}, reader, "/input")[0];
      const int joined = std::exchange(forms.group, groups_.add());
      if (joined >= 0) groups_.join(forms.group, joined);
      groups_[forms.group].exchanged += static_cast<double>(from_.tensor(id).type.shape.count());
    }
    return forms.shared;
  }

  TensorId parameter_part(TensorId id, std::int64_t dimension) {
    Forms& forms = forms_[index(id)];
    if (forms.part != no_tensor) return forms.part;
    return forms.part = to_.add_tensor(part_along(from_.tensor(id), dimension, ranks_, place_));
  }

  // Appends an op of a layer. Its outputs are called like those of the layer's op in the graph, with `suffix` behind.
  std::vector<TensorId> emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const Op& like,
                             const std::string& suffix) {
    std::vector<std::string> names(suffix.empty() ? like.outputs.size() : 1, "output");
    const auto made = to_.add_op(std::move(def), std::move(inputs), like.name, like.place, std::move(names));
    for (std::size_t i = 0; i < made.size(); ++i) {
      to_.tensors[index(made[i])].name = from_.tensor(like.outputs[i]).name + suffix;
    }
    return made;
  }

  const Op& maker_of(TensorId id) const {
    const auto makes = [id](const Op& op) {
      return std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
    };
    return *std::find_if(from_.ops.begin(), from_.ops.end(), makes);
  }

  // Multiply-adds, or of an embedding what takes as long as the update of its table.
  double work_of(const Op& op) const {
    if (is_embedding(op)) return work_of_update * static_cast<double>(from_.tensor(op.inputs[1]).type.shape.count());
    return op.def->flops(types_of(op.inputs), types_of(op.outputs)) / 2;
  }
  TensorType part_of(const TensorType& type) const {
    return {type.shape.with_back(type.shape.back() / ranks_), type.dtype};
  }
  std::vector<TensorType> types_of(const std::vector<TensorId>& ids) const {
    std::vector<TensorType> types;
    for (TensorId id : ids) types.push_back(from_.tensor(id).type);
    return types;
  }

  // Everything of the graph but tensors, ops and outputs.
  void finish() {
    to_.batch = from_.batch;
    to_.training = from_.training;
    to_.compute = from_.compute;
    const auto present = [this](TensorId id) { return is_split(id) ? forms_[index(id)].part : whole(id); };
    for (TensorId input : from_.inputs) to_.inputs.push_back(whole(input));
    if (from_.weights != no_tensor) to_.weights = whole(from_.weights);
    if (from_.samples != no_tensor) to_.samples = whole(from_.samples);
    if (from_.step != no_tensor) to_.step = whole(from_.step);
    for (GraphParameter parameter : from_.parameters) {
      parameter.tensor = present(parameter.tensor);
      to_.parameters.push_back(std::move(parameter));
    }
    for (GraphStatistic statistic : from_.statistics) {
      const TensorId batch = statistic.batch_value;
      const bool of_part = batch != no_tensor && is_split(batch);
      statistic.moving = of_part ? parameter_part(statistic.moving, 0) : present(statistic.moving);
      if (batch != no_tensor) statistic.batch_value = present(batch);
      to_.statistics.push_back(statistic);
    }
  }

  const Graph& from_;
  const std::set<std::size_t>& left_;
  const Stages& stages_;
  const int ranks_, place_;  // along the axis
  Graph to_;
  std::vector<Forms> forms_;       // by tensor of the graph
  std::map<TensorId, int> moved_;  // by running statistic: the layers that move it
  SplitGroups groups_;
};

}  // namespace

Graph split_layers(Graph graph, const MeshRank& rank, const Strategy& strategy) {
  if (rank.size(MeshAxis::tensor) == 1) return graph;
  std::set<std::size_t> left;
  for (;;) {
    Cutter cutter(graph, rank, left, strategy.stages);
    cutter.run();
    if (!cutter.splits()) {
      throw Error(ErrorKind::config, strategy.options.tensor.place,
                  format("strategy.tensor is {}, and no layer of this network can be split among {} ranks",
                         rank.size(MeshAxis::tensor), rank.size(MeshAxis::tensor)),
                  format("layers are split where {} divides their units or filters and where they do at least {} "
                         "multiply-adds for each value that the ranks would exchange: use strategy.data",
                         rank.size(MeshAxis::tensor), least_work));
    }
    const std::vector<std::size_t> unpaid = cutter.unpaid();
    if (unpaid.empty()) return cutter.take();
    left.insert(unpaid.begin(), unpaid.end());
  }
}

}  // namespace trainctl
