// Converts whole tensors to shards and shards to whole tensors.
#include "parallel/strategies/tensor/split_graph.h"

#include <algorithm>
#include <utility>

#include "core/graph/ops/reshaping/columns.h"
#include "core/graph/ops/reshaping/shaping.h"

namespace trainctl {
namespace {

// Merges all dimensions from `dimension` on into one, so that the shards along the dimension become columns.
Shape as_columns(const Shape& shape, int dimension) {
  std::vector<std::int64_t> sizes(shape.sizes().begin(), shape.sizes().begin() + dimension + 1);
  for (std::int64_t i = dimension + 1; i < shape.rank(); ++i) sizes.back() *= shape[i];
  return Shape(std::move(sizes));
}

constexpr int positions = 1;  // the dimension of the positions of [N, positions, channels]

bool is_last(int dimension, const TensorType& type) { return dimension == type.shape.rank() - 1; }

}  // namespace

SplitGraph::SplitGraph(const Graph& graph, const ShardPosition& ranks, const Stages& stages, bool by_positions)
    : from_(graph), ranks_(ranks), stages_(stages), by_positions_(by_positions), versions_(graph.tensors.size()) {}

Shape SplitGraph::divided(Shape shape, int dimension) const {
  shape[dimension] = ranks_.size_of(shape[dimension]);
  return shape;
}

TensorShard SplitGraph::shard_of(const Shape& whole, int dimension) const {
  std::vector<std::int64_t> offsets(whole.sizes().size(), 0);
  offsets[static_cast<std::size_t>(dimension)] = ranks_.first_of(whole[dimension]);
  return {whole, TensorExtent::box(whole, std::move(offsets), divided(whole, dimension).sizes())};
}

void SplitGraph::count_exchange(TensorId id) {
  groups_[versions(id).group].exchanged += static_cast<double>(from_.tensor(id).type.shape.count());
}

TensorId SplitGraph::whole(TensorId id) {
  if (versions(id).whole != no_tensor) return versions(id).whole;
  const Tensor& tensor = from_.tensor(id);
  if (!versions(id).dimension) return versions(id).whole = to_.add_tensor(tensor);
  if (versions(id).group >= 0) count_exchange(id);
  const TensorId made = gathered(id, GatheredUse::same, maker_of(id));
  to_.tensors[static_cast<std::size_t>(made)].name = tensor.name + "/gathered";
  return versions(id).whole = made;
}

TensorId SplitGraph::gathered(TensorId id, GatheredUse use, const Op& reader) {
  const Shape& whole = from_.tensor(id).type.shape;
  const int dimension = *versions(id).dimension;
  const bool columns = is_last(dimension, from_.tensor(id).type);
  require(columns || whole[dimension] % ranks_.count == 0, "shards of several sizes are gathered along a dimension");
  TensorId made = versions(id).shard;
  if (!columns) made = reshaped(made, as_columns(to_.tensor(made).type.shape, dimension), dimension, reader);
  const std::int64_t width = as_columns(whole, dimension).back();
  const auto gather = std::make_shared<AllGatherColumns>(MeshAxis::tensor, ranks_, width, use);
  made = emit(gather, {made}, reader, columns ? "/gathered" : "/columns")[0];
  return columns ? made : reshaped(made, whole, dimension, reader);
}

// Each stage of a pipeline with ops that read the shared tensor adds the gradients itself, since stages exchange whole
// gradients.
TensorId SplitGraph::shared(TensorId id, const Op& reader) {
  const bool by_positions = is_by_positions(id);
  const TensorId x = by_positions ? no_tensor : whole(id);
  Versions& of = versions(id);
  const int stage = stage_of(reader);
  if (of.shared == no_tensor || of.shared_in != stage) {
    of.shared_in = stage;
    of.shared = by_positions ? gathered(id, GatheredUse::summands, reader)
                             : emit(std::make_shared<Identity>(MeshAxis::tensor), {x}, reader, "/input")[0];
    const int joined = std::exchange(of.group, groups_.add());
    if (joined >= 0) groups_.join(of.group, joined);
    count_exchange(id);
  }
  return of.shared;
}

TensorId SplitGraph::shared_parameter(TensorId id, const Op& reader) {
  const TensorId made = emit(std::make_shared<Identity>(MeshAxis::tensor), {whole(id)}, reader, "/parameter")[0];
  to_.tensors[static_cast<std::size_t>(made)].name = from_.tensor(id).name + "/" + reader.name;
  return made;
}

bool SplitGraph::scatters(TensorId id) const {
  const Shape& shape = from_.tensor(id).type.shape;
  return by_positions_ && shape.rank() == 3 && shape[positions] % ranks_.count == 0;
}

TensorId SplitGraph::sum(TensorId summand, const Op& like, const std::string& suffix) {
  if (!scatters(like.outputs[0]))
    return emit(std::make_shared<AllReduce>(MeshAxis::tensor), {summand}, like, suffix)[0];
  const Shape whole = to_.tensor(summand).type.shape;
  TensorId made = reshaped(summand, as_columns(whole, positions), positions, like);
  made = emit(std::make_shared<ReduceScatterColumns>(MeshAxis::tensor, ranks_), {made}, like, "/columns")[0];
  made = reshaped(made, divided(whole, positions), positions, like);
  to_.tensors[static_cast<std::size_t>(made)].name = from_.tensor(like.outputs[0]).name + suffix;
  return made;
}

TensorId SplitGraph::shard(TensorId id, int dimension, const Op& reader) {
  const Tensor& tensor = from_.tensor(id);
  if (versions(id).dimension == dimension) return versions(id).shard;
  if (tensor.role == Role::parameter || tensor.role == Role::statistic) return parameter_shard(id, dimension);
  TensorId x = whole(id);
  if (!by_positions_) {
    if (versions(id).group < 0) versions(id).group = groups_.add();
    count_exchange(id);  // exchange of the gradient
  }
  const bool columns = is_last(dimension, tensor.type);
  if (!columns) x = reshaped(x, as_columns(tensor.type.shape, dimension), dimension, reader);
  x = emit(std::make_shared<TakeColumns>(MeshAxis::tensor, ranks_), {x}, reader, "/part")[0];
  if (!columns) x = reshaped(x, divided(tensor.type.shape, dimension), dimension, reader);
  return x;
}

TensorId SplitGraph::parameter_shard(TensorId id, int dimension) {
  require(!versions(id).dimension && versions(id).whole == no_tensor,
          "a parameter is needed in two different ways: whole, or split along a dimension");
  Tensor shard = from_.tensor(id);
  shard.shard = shard_of(shard.type.shape, dimension);
  shard.type.shape = divided(shard.type.shape, dimension);
  shard.placements = placed(split_along(dimension), {MeshAxis::tensor});
  versions(id).dimension = dimension;
  return versions(id).shard = to_.add_tensor(std::move(shard));
}

TensorId SplitGraph::reshaped(TensorId made, Shape shape, int dimension, const Op& like) {
  const std::string name = to_.tensor(made).name;
  auto def = std::make_shared<Reshape>(std::move(shape), Reshape::Kept{dimension, dimension});
  const TensorId other = to_.add_op(std::move(def), {made}, like.name, like.location)[0];
  to_.tensors[static_cast<std::size_t>(other)].name = name + "/reshaped";
  return other;
}

std::vector<TensorId> SplitGraph::emit(std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const Op& like,
                                       const std::string& suffix) {
  std::vector<std::string> names(suffix.empty() ? like.outputs.size() : 1, "output");
  const auto made = to_.add_op(std::move(def), std::move(inputs), like.name, like.location, std::move(names));
  for (std::size_t i = 0; i < made.size(); ++i) {
    to_.tensors[static_cast<std::size_t>(made[i])].name = from_.tensor(like.outputs[i]).name + suffix;
  }
  return made;
}

// The placement is set explicitly, since a pipeline stage that receives the shard cannot derive it.
void SplitGraph::set_shard(TensorId id, TensorId made, int dimension, bool by_positions) {
  Tensor& tensor = to_.tensors[static_cast<std::size_t>(made)];
  tensor.placements = placed(split_along(dimension), {MeshAxis::tensor});
  tensor.shard = shard_of(from_.tensor(id).type.shape, dimension);
  versions(id).shard = made;
  versions(id).dimension = dimension;
  versions(id).by_positions = by_positions;
}

int SplitGraph::stage_of(const Op& op) const {
  const auto stage = stages_.find(op.name);
  return stage == stages_.end() ? 0 : stage->second;
}

const Op& SplitGraph::maker_of(TensorId id) const {
  const auto makes = [id](const Op& op) {
    return std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
  };
  return *std::find_if(from_.ops.begin(), from_.ops.end(), makes);
}

TensorId SplitGraph::output(TensorId id) {
  const std::optional<int> dimension = versions(id).dimension;
  if (!dimension || versions(id).by_positions || !is_last(*dimension, from_.tensor(id).type)) return whole(id);
  count_exchange(id);
  return versions(id).shard;
}

Graph SplitGraph::finish() {
  to_.batch = from_.batch;
  to_.training = from_.training;
  to_.compute = from_.compute;
  for (TensorId id : from_.outputs) to_.outputs.push_back(output(id));
  for (TensorId mask : from_.masks) to_.masks.push_back(mask == no_tensor ? mask : whole(mask));
  for (TensorId id : from_.targets) to_.targets.push_back(id == no_tensor ? id : whole(id));
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
    const bool is_split = batch != no_tensor && versions(batch).dimension;
    const bool is_new = is_split && !versions(statistic.moving).dimension;
    statistic.moving =
        is_new ? parameter_shard(statistic.moving, *versions(batch).dimension) : present(statistic.moving);
    if (batch != no_tensor) statistic.batch_value = present(batch);
    to_.statistics.push_back(statistic);
  }
  for (const GraphSpectralNorm& norm : from_.spectral_norms) {
    to_.spectral_norms.push_back({present(norm.kernel), present(norm.vector), norm.iterations});
  }
  return std::move(to_);
}

}  // namespace trainctl
