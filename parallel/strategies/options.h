// The strategy section of the config: how the work is spread over the ranks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/mesh.h"
#include "core/layers/reference.h"
#include "core/spec/values.h"

namespace trainctl {

// What the ranks of the data axis share, each of them holding a part: nothing, the optimizer's states, gradients too,
// parameters too.
enum class Shard { none, optimizer, gradients, parameters };

template <>
struct EnumNames<Shard> {
  static constexpr EnumName<Shard> names[] = {{Shard::none, "none"},
                                              {Shard::optimizer, "optimizer"},
                                              {Shard::gradients, "gradients"},
                                              {Shard::parameters, "parameters"}};
};

// Whether whole gradients stay in memory from one micro-batch to the next.
inline bool keeps_gradients(Shard shard) { return shard <= Shard::optimizer; }

// The order of a pipeline's micro-batches.
enum class PipelineSchedule {
  one_forward_one_backward,  // backward passes as early as possible: few micro-batches are in flight (PipeDream-Flush)
  gpipe,                     // all forward passes, then all backward passes
};

template <>
struct EnumNames<PipelineSchedule> {
  static constexpr EnumName<PipelineSchedule> names[] = {{PipelineSchedule::one_forward_one_backward, "1f1b"},
                                                         {PipelineSchedule::gpipe, "gpipe"}};
};

// A number that knows its line, for errors that come to light when ranks and layers are known.
struct PlacedCount {
  int count = 1;
  Place place;  // unknown where the config states none

  PlacedCount(int c = 1) : count(c) {}  // NOLINT: it is a number
  operator int() const { return count; }
};

template <>
struct Value<PlacedCount> {
  static TypeInfo type() { return Value<int>::type(); }
  static bool read(const Node& node, Reader& reader, PlacedCount& value) {
    value.place = node.place;
    return Value<int>::read(node, reader, value.count);
  }
  static Node write(const PlacedCount& value) { return Value<int>::write(value.count); }
};

struct StrategyOptions {
  Auto<PlacedCount> data;
  PlacedCount pipeline;                                 // stages, where `place` names none
  std::map<std::string, std::vector<Reference>> place;  // by stage: patterns of layer names
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  Auto<PlacedCount> micro_batches;
  Shard shard = Shard::none;
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  std::optional<Duration> verify_every = Duration::steps(100);

  static Keys<StrategyOptions> keys();

  // The stages of the pipeline, and the line that states them.
  int stages() const { return place.empty() ? pipeline.count : static_cast<int>(place.size()); }
  const Place& stages_place() const { return place.empty() ? pipeline.place : place.begin()->second.front().place; }
};

// The options without what asks for several ranks, for what one rank does alone.
StrategyOptions for_one_rank(StrategyOptions options);

// The number that a key of `place` states; -1 where it is none.
int stage_number(const std::string& key);

// The mesh of so many ranks, data x pipeline x tensor. Throws Error{config} with the line where the sizes that the
// config states do not multiply to the ranks.
Mesh mesh_of(const StrategyOptions& options, int ranks);

}  // namespace trainctl
