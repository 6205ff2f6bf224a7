// Walks over the ops of a forward graph and builds this rank's shard of it.
#include "parallel/strategies/table.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/elementwise/bias.h"
#include "parallel/strategies/tensor/split_graph.h"
#include "parallel/strategies/tensor/ways.h"

namespace trainctl {
namespace {

bool is_parameter(const Tensor& tensor) { return tensor.role == Role::parameter || tensor.role == Role::statistic; }
bool is_integer(DType dtype) { return dtype == DType::int32 || dtype == DType::int64; }

class Walk {
 public:
  // The ops with the numbers in `excluded` do not begin to split.
  Walk(const Graph& graph, const ShardPosition& ranks, const std::set<std::size_t>& excluded, const Strategy& strategy)
      : graph_(graph),
        ranks_(ranks),
        excluded_(excluded),
        readers_(graph.tensors.size()),
        split_(graph, ranks, strategy.stages, strategy.options.sequence_parallel) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      for (TensorId input : graph.ops[i].inputs) readers_[index(input)].push_back(i);
    }
    for (const GraphStatistic& statistic : graph.statistics) ++updated_[statistic.moving];
  }

  // Walks over all ops. Returns the ops that must not begin to split in the next walk: ops of groups that do not save
  // time, and ops that split a parameter which another op needs whole. If the result is empty, the graph is complete.
  std::vector<std::size_t> run() {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (!write(graph_.ops[i], i)) return conflicting(graph_.ops[i]);
    }
    made_ = split_.finish();
    return split_.groups().not_worthwhile();
  }

  bool splits() const { return splits_; }
  Graph take() { return std::move(made_); }

 private:
  // Appends the op to the rank's graph. Returns false if it needs a whole parameter and the rank has only a shard.
  bool write(const Op& op, std::size_t number) {
    Way way = best_way_of(op, Slicing::none);
    const bool reads_split = reads_split_parameters(op);
    if (way.sharing == Sharing::none && reads_positions(op)) way = best_way_of(op, Slicing::positions);
    if (way.sharing == Sharing::none && reads_split) way = best_way_of(op, Slicing::all);
    const bool begins = way.sharing == Sharing::begin || way.sharing == Sharing::begin_sum;
    const bool may_share = begins ? !is_excluded(op) : !updates_shared(op);
    if (way.sharing == Sharing::local && may_share && is_by_positions(op, way)) {
      share_positions(op, way);
    } else if (way.sharing != Sharing::none && may_share) {
      share(op, way, number);
    } else if (reads_split) {
      return false;
    } else {
      keep(op);
    }
    return true;
  }

  bool reads_split_parameters(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(),
                       [this](TensorId id) { return is_parameter(graph_.tensor(id)) && split_.split_of(id); });
  }

  // Whether the op reads a tensor that is split along its positions.
  bool reads_positions(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [this](TensorId id) { return split_.is_by_positions(id); });
  }

  // Whether the ranks share the op along the positions alone: all activations of which it reads shards are split along
  // the positions, or become so.
  bool is_by_positions(const Op& op, const Way& way) const {
    for (std::size_t i = 0; i < way.inputs.size(); ++i) {
      const TensorId input = op.inputs[i];
      if (!way.inputs[i] || is_parameter(graph_.tensor(input)) || !split_.split_of(input)) continue;
      if (!split_.is_by_positions(input)) return false;
    }
    return reads_positions(op);
  }

  // Whether shards of a tensor may have several sizes: those of an output of the network, which a loss can be computed
  // from, or of the output of an op from which such an output follows element by element.
  bool leads_to_output(TensorId id) const {
    const std::vector<TensorId>& outputs = graph_.outputs;
    for (;;) {
      if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return true;
      if (readers_[index(id)].size() != 1) return false;
      const Op& reader = graph_.ops[readers_[index(id)][0]];
      if (reader.inputs.size() != 1 || reader.outputs.size() != 1) return false;
      if (graph_.tensor(reader.outputs[0]).type.shape != graph_.tensor(id).type.shape) return false;
      id = reader.outputs[0];
    }
  }

  // Whether the number of ranks must divide the dimensions along which the op's parameters are split. It need not for a
  // table of tokens, whose look-ups are summands, or for the classes of an output.
  bool requires_equal_shards(const Op& op) const { return !looks_up(op) && !leads_to_output(op.outputs[0]); }

  // Whether the op looks up rows of a table, its second input.
  bool looks_up(const Op& op) const {
    return op.inputs.size() > 1 && is_integer(graph_.tensor(op.inputs[0]).type.dtype) &&
           is_parameter(graph_.tensor(op.inputs[1]));
  }

  // Returns all readers of the split parameters that the op needs whole.
  std::vector<std::size_t> conflicting(const Op& op) const {
    std::vector<std::size_t> ops;
    for (TensorId input : op.inputs) {
      if (!is_parameter(graph_.tensor(input)) || !split_.split_of(input)) continue;
      ops.insert(ops.end(), readers_[index(input)].begin(), readers_[index(input)].end());
    }
    return ops;
  }

  // Which slices of activations that all ranks have an op may use: none, along the positions, or along any dimension.
  enum class Slicing { none, positions, all };

  Way best_way_of(const Op& op, Slicing slicing) const {
    std::vector<Operand> operands;
    const bool by_positions = reads_positions(op), equal = requires_equal_shards(op);
    const bool reads_tokens = looks_up(op);
    for (TensorId input : op.inputs) {
      const Tensor& tensor = graph_.tensor(input);
      Operand operand{tensor.type, is_parameter(tensor), false, false, {}};
      const std::optional<int> split = split_.split_of(input);
      operand.is_reused = operand.is_parameter && !split && readers_[index(input)].size() > 1;
      operand.may_be_whole = by_positions && tensor.role == Role::parameter && tensor.type.shape.rank() == 1 && !split;
      if (!operand.is_parameter || operand.may_be_whole) operand.alternatives.emplace_back();
      if (split) operand.alternatives.push_back(split);
      for (int i = 0; !split && i < tensor.type.shape.rank(); ++i) {
        const bool offered = operand.is_parameter || (!is_integer(tensor.type.dtype) && may_slice(slicing, i));
        const std::int64_t size = tensor.type.shape[i];
        const bool may_differ = operand.is_parameter && !equal && (i == 0 || !reads_tokens);
        const bool divides = size % ranks_.count == 0 || (may_differ && size > ranks_.count);
        if (offered && divides) operand.alternatives.push_back(i);
      }
      operands.push_back(std::move(operand));
    }
    return best_way(op, operands, types_of(op.outputs, graph_.tensors), ranks_);
  }

  static bool may_slice(Slicing slicing, int dimension) {
    return slicing == Slicing::all || (slicing == Slicing::positions && dimension == 1);
  }

  // Emits an op that each rank runs on its positions. Such ops belong to no group, since they would run on whole
  // tensors just as well.
  void share_positions(const Op& op, const Way& way) {
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < way.inputs.size(); ++i) {
      const TensorId input = op.inputs[i];
      const bool parameter = graph_.tensor(input).role == Role::parameter;
      inputs.push_back(way.inputs[i] ? split_.shard(input, *way.inputs[i], op)
                       : parameter   ? split_.shared_parameter(input, op)
                                     : whole_of(input, op));
    }
    const std::vector<TensorId> made = split_.emit(way.def, std::move(inputs), op);
    for (std::size_t i = 0; i < made.size(); ++i) split_.set_shard(op.outputs[i], made[i], *way.outputs[i], true);
  }

  void share(const Op& op, const Way& way, std::size_t number) {
    splits_ = true;
    std::vector<TensorId> inputs;
    int group = -1;
    for (std::size_t i = 0; i < way.inputs.size(); ++i) {
      const TensorId input = op.inputs[i];
      inputs.push_back(way.inputs[i] ? split_.shard(input, *way.inputs[i], op) : whole_of(input, op));
      const int joined = split_.group_of(input);
      if (joined < 0) continue;
      if (group < 0) group = joined;
      split_.groups().join(group, joined);
    }
    if (group < 0) group = split_.groups().add();
    for (TensorId input : op.inputs) {
      if (is_parameter(graph_.tensor(input))) split_.set_group(input, group);
    }
    SplitGroup& of = split_.groups()[group];
    if (way.sharing != Sharing::local) of.work += work_of(op);
    const bool sums = way.sharing == Sharing::sum || way.sharing == Sharing::begin_sum;
    if (way.sharing == Sharing::begin || way.sharing == Sharing::begin_sum) of.begins.push_back(number);
    if (sums) return add_up(op, way, std::move(inputs), of);
    const std::vector<TensorId> made = split_.emit(way.def, std::move(inputs), op);
    for (std::size_t i = 0; i < made.size(); ++i) {
      split_.set_shard(op.outputs[i], made[i], *way.outputs[i]);
      split_.set_group(op.outputs[i], group);
    }
  }

  // Returns the whole tensor as an input of an op that each rank runs on shards. Integers, such as tokens, have no
  // gradient that the ranks would add.
  TensorId whole_of(TensorId id, const Op& op) {
    const Tensor& tensor = graph_.tensor(id);
    return is_integer(tensor.type.dtype) ? split_.whole(id) : split_.shared(id, op);
  }

  // Emits the sum of the ranks' summands, and adds a bias once.
  void add_up(const Op& op, const Way& way, std::vector<TensorId> inputs, SplitGroup& group) {
    group.exchanged += static_cast<double>(graph_.tensor(op.outputs[0]).type.shape.count());
    const bool has_bias = inputs.size() < op.inputs.size(), scatters = split_.scatters(op.outputs[0]);
    const TensorId summand = split_.emit(way.def, std::move(inputs), op, "/summand")[0];
    TensorId sum = split_.sum(summand, op, has_bias ? "/sum" : "");
    if (has_bias) {
      const TensorId bias = op.inputs.back();
      const TensorId read = scatters ? split_.shared_parameter(bias, op) : split_.whole(bias);
      sum = split_.emit(std::make_shared<AddBias>(), {sum, read}, op)[0];
    }
    if (scatters) return split_.set_shard(op.outputs[0], sum, 1, true);
    split_.set_whole(op.outputs[0], sum);
  }

  void keep(const Op& op) {
    std::vector<TensorId> inputs;
    for (TensorId input : op.inputs) inputs.push_back(split_.whole(input));
    const std::vector<TensorId> made = split_.emit(op.def, std::move(inputs), op);
    for (std::size_t i = 0; i < made.size(); ++i) split_.set_whole(op.outputs[i], made[i]);
  }

  // Returns whether the op is excluded. Ops that share a parameter are excluded together, so that either all or no op
  // of them begins to split it.
  bool is_excluded(const Op& op) const {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [this](TensorId input) {
      const std::vector<std::size_t>& readers = readers_[index(input)];
      return is_parameter(graph_.tensor(input)) &&
             std::any_of(readers.begin(), readers.end(), [this](std::size_t i) { return excluded_.contains(i); });
    });
  }

  // Returns whether the op computes a batch's value for a running statistic that several layers update.
  bool updates_shared(const Op& op) const {
    return std::any_of(graph_.statistics.begin(), graph_.statistics.end(), [&](const GraphStatistic& statistic) {
      return updated_.at(statistic.moving) > 1 &&
             std::find(op.outputs.begin(), op.outputs.end(), statistic.batch_value) != op.outputs.end();
    });
  }

  // Returns the multiply-adds of an op; for a lookup in a table, the equivalent of the update of the table, as if steps
  // had `usual_samples` samples. Like what ranks exchange, the work grows with the samples of the graph, so that graphs
  // for batches of all sizes, which share their parameters, are split alike.
  double work_of(const Op& op) const {
    if (!looks_up(op)) {
      return op.def->flops(types_of(op.inputs, graph_.tensors), types_of(op.outputs, graph_.tensors)) / 2;
    }
    constexpr double usual_samples = 4;
    const double steps = static_cast<double>(graph_.batch) / usual_samples;
    return steps * work_of_update * static_cast<double>(graph_.tensor(op.inputs[1]).type.shape.count());
  }

  const Graph& graph_;
  const ShardPosition ranks_;
  const std::set<std::size_t>& excluded_;
  std::vector<std::vector<std::size_t>> readers_;  // numbers of the ops that read each tensor
  std::map<TensorId, int> updated_;  // number of layers that update a running statistic; key: the statistic
  SplitGraph split_;
  bool splits_ = false;
  Graph made_;
};

}  // namespace

Graph split_layers(Graph graph, const MeshRank& rank, const Strategy& strategy) {
  const ShardPosition ranks{rank.size(MeshAxis::tensor), rank.along(MeshAxis::tensor)};
  if (ranks.count == 1) return graph;
  std::set<std::size_t> excluded;
  for (;;) {
    Walk walk(graph, ranks, excluded, strategy);
    const std::vector<std::size_t> unfit = walk.run();
    if (!walk.splits()) {
      throw Error(ErrorKind::config, strategy.options.tensor.location,
                  format("strategy.tensor is {}, but no layer of this network can be split among {} ranks", ranks.count,
                         ranks.count),
                  format("layers are split if {} divides their units or filters (which tables of tokens and last "
                         "layers do not need) and if they do at least {} "
                         "multiply-adds for each value that the ranks would exchange: use strategy.data",
                         ranks.count, least_work));
    }
    if (unfit.empty()) return walk.take();
    excluded.insert(unfit.begin(), unfit.end());
  }
}

}  // namespace trainctl
