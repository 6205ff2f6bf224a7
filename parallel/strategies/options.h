// The strategy section of the config: how the work is spread over the ranks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/mesh.h"
#include "core/layers/model/reference.h"
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

// The element type in which gradients travel between replicas.
enum class GradientDType { float32, bfloat16 };

template <>
struct EnumNames<GradientDType> {
  static constexpr EnumName<GradientDType> names[] = {{GradientDType::float32, "float32"},
                                                      {GradientDType::bfloat16, "bfloat16"}};
};

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

// The blocks whose activations are computed again for the backward pass instead of being kept.
enum class Recompute { none, blocks, automatic };

template <>
struct EnumNames<Recompute> {
  static constexpr EnumName<Recompute> names[] = {
      {Recompute::none, "none"}, {Recompute::blocks, "blocks"}, {Recompute::automatic, "auto"}};
};

// How a batch is shared among the replicas, where the config states no speeds.
enum class ShareMode { equal, automatic };

template <>
struct EnumNames<ShareMode> {
  static constexpr EnumName<ShareMode> names[] = {{ShareMode::equal, "equal"}, {ShareMode::automatic, "auto"}};
};

// Reproducible mode: the same bits for any number of ranks.
struct ReproducibleOptions {
  Located<int> shards{8, {}};  // parts of every batch that are computed alike, whichever rank holds them

  static Keys<ReproducibleOptions> keys();
};

using ShareValue = std::variant<ShareMode, std::vector<double>>;

struct StrategyOptions {
  Auto<Located<int>> data;
  Located<int> pipeline{1, {}};                         // stages, where `place` names none
  std::map<std::string, std::vector<Reference>> place;  // by stage: patterns of layer names
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  Auto<Located<int>> micro_batches;
  Located<int> tensor{1, {}};  // ranks that share each layer
  Shard shard = Shard::none;
  GradientDType gradient_dtype = GradientDType::float32;
  Located<int> sync_every{1, {}};  // steps that replicas take alone before they are averaged
  Recompute recompute = Recompute::none;
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  Located<ShareValue> share{ShareMode::equal, {}};  // or speeds, by replica
  std::optional<ReproducibleOptions> reproducible;
  std::optional<Duration> verify_every = Duration::steps(100);
  bool automatic =
      false;  // `strategy: auto`: the ranks take the best of what a plan finds; the other options are defaults

  static Keys<StrategyOptions> keys();

  bool shares_by_measuring() const { return share.value == ShareValue(ShareMode::automatic); }
  // The stages of the pipeline, and the line that states them.
  int stages() const { return place.empty() ? pipeline.value : static_cast<int>(place.size()); }
  const SourceLocation& stages_location() const {
    return place.empty() ? pipeline.location : place.begin()->second.front().location;
  }
};

// The section, or `auto` in its place.
template <>
struct Value<StrategyOptions> {
  static TypeInfo type();
  static bool read(const Node& node, Reader& reader, StrategyOptions& value);
  static Node write(const StrategyOptions& value);
};

// The options without what asks for several ranks, for what one rank does alone.
StrategyOptions for_one_rank(StrategyOptions options);

// The number that a key of `place` states; -1 where it is none.
int stage_number(const std::string& key);

// The mesh of so many ranks, data x pipeline x tensor. Throws Error{config} with the line where the sizes that the
// config states do not multiply to the ranks.
Mesh mesh_of(const StrategyOptions& options, int ranks);

// The most ranks that the strategy goes with, one replica for each logical shard; nothing: any number.
std::optional<int> most_ranks(const StrategyOptions& options);

// The speeds of the replicas that the config states; empty where it states none. Throws Error{config} with the line
// where it states another number of them than there are replicas.
std::vector<double> speeds_of(const StrategyOptions& options, const Mesh& mesh);

// Throws CollectiveError{config} where ranks that share layers lie on several hosts. `hosts`: of each rank of the mesh.
void require_layers_within_hosts(const StrategyOptions& options, const Mesh& mesh,
                                 const std::vector<std::string>& hosts);

}  // namespace trainctl
