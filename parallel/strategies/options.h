// The strategy section of the config: how the work is distributed over the ranks.
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

// The values that are sharded over the ranks of the data axis: no values, the optimizer's states, also gradients, also
// parameters.
enum class Shard { none, optimizer, gradients, parameters };

template <>
struct EnumNames<Shard> {
  static constexpr EnumName<Shard> names[] = {{Shard::none, "none"},
                                              {Shard::optimizer, "optimizer"},
                                              {Shard::gradients, "gradients"},
                                              {Shard::parameters, "parameters"}};
};

// Whether each rank keeps whole gradients in memory from one micro-batch to the next.
inline bool keeps_gradients(Shard shard) { return shard <= Shard::optimizer; }

// The element type in which gradients or parameters are communicated between replicas.
enum class CommunicatedDType { float32, bfloat16 };

template <>
struct EnumNames<CommunicatedDType> {
  static constexpr EnumName<CommunicatedDType> names[] = {{CommunicatedDType::float32, "float32"},
                                                          {CommunicatedDType::bfloat16, "bfloat16"}};
};

// The order of a pipeline's micro-batches.
enum class PipelineSchedule {
  one_forward_one_backward,  // backward passes as early as possible: few micro-batches are in memory (PipeDream-Flush)
  gpipe,                     // all forward passes, then all backward passes
};

template <>
struct EnumNames<PipelineSchedule> {
  static constexpr EnumName<PipelineSchedule> names[] = {{PipelineSchedule::one_forward_one_backward, "1f1b"},
                                                         {PipelineSchedule::gpipe, "gpipe"}};
};

// The blocks whose activations are recomputed for the backward pass instead of being kept.
enum class Recompute { none, blocks, automatic };

template <>
struct EnumNames<Recompute> {
  static constexpr EnumName<Recompute> names[] = {
      {Recompute::none, "none"}, {Recompute::blocks, "blocks"}, {Recompute::automatic, "auto"}};
};

// How a batch is divided among the replicas if the config sets no speeds.
enum class ShareMode { equal, automatic };

template <>
struct EnumNames<ShareMode> {
  static constexpr EnumName<ShareMode> names[] = {{ShareMode::equal, "equal"}, {ShareMode::automatic, "auto"}};
};

// What a run does if replicas, which must be equal, differ.
enum class OnCorruption { stop, repair };

template <>
struct EnumNames<OnCorruption> {
  static constexpr EnumName<OnCorruption> names[] = {{OnCorruption::stop, "stop"}, {OnCorruption::repair, "repair"}};
};

// Reproducible mode: the same bits for any number of ranks.
struct ReproducibleOptions {
  Located<int> shards{8, {}};  // logical shards of every batch

  static Keys<ReproducibleOptions> keys();
};

// The value of the key `share`: a word, or the speed of each replica.
using ShareValue = std::variant<ShareMode, std::vector<double>>;

struct StrategyOptions {
  Auto<Located<int>> data;
  Located<int> pipeline{1, {}};                         // number of stages, if `place` is not set
  std::map<std::string, std::vector<Reference>> place;  // patterns of layer names; key: the stage
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  Auto<Located<int>> micro_batches;
  Located<int> tensor{1, {}};      // number of ranks that share each layer
  bool sequence_parallel = false;  // whether the ranks that share layers split the positions between them
  Shard shard = Shard::none;
  CommunicatedDType gradient_dtype = CommunicatedDType::float32;
  CommunicatedDType parameter_dtype = CommunicatedDType::float32;  // of matrices and filters that replicas gather
  Located<int> sync_every{1, {}};  // number of steps that replicas take independently before they are averaged
  Recompute recompute = Recompute::none;
  Size bucket_size = Size::megabytes(25);
  Size first_bucket_size = Size::megabytes(1);
  Auto<bool> overlap;
  Located<ShareValue> share{ShareMode::equal, {}};  // a ShareMode, or the speed of each replica
  std::optional<ReproducibleOptions> reproducible;
  std::optional<Duration> verify_every = Duration::steps(100);
  OnCorruption on_corruption = OnCorruption::stop;
  // `strategy: auto`: the ranks use the best strategy that a plan finds; the other options are defaults.
  bool automatic = false;

  static Keys<StrategyOptions> keys();

  bool shares_by_measuring() const { return share.value == ShareValue(ShareMode::automatic); }
  // Whether a replica holds only its shard of the parameters, so that others must be gathered before a pass.
  bool gathers_parameters() const {
    return shard == Shard::parameters || (shard != Shard::none && parameter_dtype != CommunicatedDType::float32);
  }
  // The number of stages of the pipeline, and the line of the config that sets it.
  int stages() const { return place.empty() ? pipeline.value : static_cast<int>(place.size()); }
  const SourceLocation& stages_location() const {
    return place.empty() ? pipeline.location : place.begin()->second.front().location;
  }
};

// Reads the section, or `auto` instead of it.
template <>
struct Value<StrategyOptions> {
  static TypeInfo type();
  static bool read(const Node& node, Reader& reader, StrategyOptions& value);
  static Node write(const StrategyOptions& value);
};

// Returns the options without those that require several ranks, for work that one rank does alone.
StrategyOptions for_one_rank(StrategyOptions options);

// Returns the stage number of a key of `place`, or -1 if it is not a number.
int stage_number(const std::string& key);

// Returns the mesh of `ranks` ranks, data x pipeline x tensor. Throws Error{config} with the line if the product of the
// sizes in the config is not `ranks`.
Mesh mesh_of(const StrategyOptions& options, int ranks);

// Returns the largest number of ranks that the strategy supports: one replica for each logical shard; empty if it
// supports any number.
std::optional<int> max_ranks(const StrategyOptions& options);

// Returns the speeds of the replicas that the config sets; empty if it sets no speeds. Throws Error{config} with the
// line if their number is not the number of replicas.
std::vector<double> speeds_of(const StrategyOptions& options, const Mesh& mesh);

// Throws CollectiveError{config} if ranks that share layers are on several hosts. `hosts`: the host of each rank of the
// mesh.
void require_layers_within_hosts(const StrategyOptions& options, const Mesh& mesh,
                                 const std::vector<std::string>& hosts);

}  // namespace trainctl
