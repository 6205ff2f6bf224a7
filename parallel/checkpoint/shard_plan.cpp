// Computes the plan from the tensors and shards that every rank holds.
#include "parallel/checkpoint/shard_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/tensor/extent_json.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// Encodes the tensors and shards that a rank holds, to send them to the other ranks.
std::string to_text(std::span<const NamedTensor> tensors) {
  Json json = Json::array();
  for (const NamedTensor& tensor : tensors) {
    json.push_back({{"name", tensor.name}, {"shape", tensor.shape.sizes()}, {"extent", to_json(tensor.extent)}});
  }
  return json_text(json);
}

std::vector<NamedTensor> parse_tensors(const std::string& text) {
  std::vector<NamedTensor> tensors;
  for (const Json& json : parse_json(text)) {
    const Shape shape(json.at("shape").get<std::vector<std::int64_t>>());
    const auto extent = extent_from_json(json.at("extent"), shape);
    require(extent.has_value(), "an extent is not within its tensor");
    tensors.push_back({json.at("name"), shape, {}, *extent});
  }
  return tensors;
}

}  // namespace

ShardPlan::ShardPlan(std::span<const std::vector<NamedTensor>> of_ranks) {
  std::map<std::string, PlannedTensor> planned;
  std::set<int> writers;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const NamedTensor& held : of_ranks[rank]) {
      PlannedTensor& tensor = planned[held.name];
      require(tensor.shards.empty() || tensor.shape == held.shape,
              format("'{}' is {} on one rank and {} on another", held.name, to_string(tensor.shape),
                     to_string(held.shape)));
      tensor.name = held.name;
      tensor.shape = held.shape;
      if (held.extent.count(held.shape) == 0 && held.shape.count() > 0) continue;
      const auto is_equal = [&](const PlannedShard& shard) { return shard.extent == held.extent; };
      if (std::any_of(tensor.shards.begin(), tensor.shards.end(), is_equal)) continue;
      tensor.shards.push_back({held.extent, static_cast<int>(rank)});
    }
  }
  for (auto& [name, tensor] : planned) {
    std::vector<TensorExtent> extents;
    for (const PlannedShard& shard : tensor.shards) extents.push_back(shard.extent);
    // With tensor parallelism, ranks may have parts of different sizes. Their other parameters then lie at different
    // places of the flat layouts, which data parallelism cuts into shards: such a parameter has several sets of shards.
    std::vector<bool> chosen;
    const auto problem = choose_cover(tensor.shape, extents, chosen);
    require(!problem, format("element {} of '{}' is held by no rank, or in two shards of one replica",
                             problem ? problem->element : 0, name));
    std::vector<PlannedShard> kept;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i]) kept.push_back(std::move(tensor.shards[i]));
    }
    tensor.shards = std::move(kept);
    for (const PlannedShard& shard : tensor.shards) writers.insert(shard.writer);
    tensors_.push_back(std::move(tensor));
  }
  writers_.assign(writers.begin(), writers.end());
  if (writers_.empty()) writers_ = {0};
}

std::vector<NamedTensor> ShardPlan::shards_of(int rank) const {
  std::vector<NamedTensor> shards;
  for (const PlannedTensor& tensor : tensors_) {
    for (const PlannedShard& shard : tensor.shards) {
      if (shard.writer == rank) shards.push_back({tensor.name, tensor.shape, {}, shard.extent});
    }
  }
  return shards;
}

std::int64_t ShardPlan::bytes() const {
  std::int64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors_) bytes += tensor.shape.count() * size_of(DType::float32);
  return bytes;
}

std::int64_t ShardPlan::bytes_of(int rank) const {
  std::int64_t bytes = 0;
  for (const NamedTensor& shard : shards_of(rank)) bytes += shard.extent.count(shard.shape) * size_of(DType::float32);
  return bytes;
}

// Ranks first compare their text with rank 0's. If all texts are equal, rank 0 writes all tensors, and the texts are
// not gathered.
ShardPlan plan_shards(std::span<const NamedTensor> mine, Communicator& world, Stream& stream) {
  const std::string text = to_text(mine);
  const bool differs = broadcast_text(text, 0, world, stream) != text;
  if (!any_rank(differs, world, stream)) {
    const std::vector<NamedTensor> of_all(mine.begin(), mine.end());
    return ShardPlan({&of_all, 1});
  }
  const std::vector<std::string> texts = gather_texts(text, world, stream);
  std::vector<std::vector<NamedTensor>> of_ranks;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string theirs = world.rank() == 0 ? texts[static_cast<std::size_t>(rank)] : "";
    of_ranks.push_back(parse_tensors(broadcast_text(theirs, 0, world, stream)));
  }
  return ShardPlan(of_ranks);
}

SnapshotPlan plan_snapshot(std::span<const NamedTensor> weights, std::span<const NamedTensor> state,
                           Communicator& world, Stream& stream) {
  ShardPlan of_weights = plan_shards(weights, world, stream);
  return {std::move(of_weights), plan_shards(state, world, stream)};
}

}  // namespace trainctl
