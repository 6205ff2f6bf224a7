// Reads the keys of the strategy section and computes the mesh.
#include "parallel/strategies/options.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/graph/ops/training/tree_sum.h"

namespace trainctl {
namespace {

// The largest number of stages, since a network has no more layers.
constexpr int max_stages = 5000;
// The largest number of ranks that share a layer, since no host has more.
constexpr int max_tensor_ranks = 1024;

void check_verification(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (!options.verify_every) return;
  if (options.verify_every->unit != Duration::Unit::seconds && options.verify_every->amount > 0) return;
  const Node* value = node.find("verify_every");
  reader.error(
      value ? value->location : node.location,
      format("verify_every must be none, or a number of steps or epochs, not '{}'", to_string(*options.verify_every)));
}

// Checks that stages are numbered from 0 without a gap, and that each has layers.
void check_place(const StrategyOptions& options, const Node& node, Reader& reader) {
  const Node* place = node.find("place");
  if (place == nullptr) return;
  const auto count = static_cast<int>(options.place.size());
  for (const Node::Entry& entry : place->entries) {
    const int stage = stage_number(entry.key);
    if (stage < 0 || stage >= count) {
      reader.error(entry.key_location,
                   format("'{}' is not a stage: {} stages are numbered from 0 to {}", entry.key, count, count - 1));
    } else if (options.place.at(entry.key).empty()) {
      reader.error(entry.value.location, format("stage {} has no layers", stage));
    }
  }
  if (options.pipeline.value > 1 && count > 0 && options.pipeline.value != count) {
    reader.error(options.pipeline.location,
                 format("pipeline is {}, but place names {}", options.pipeline.value, counted(count, "stage")),
                 place->location, "place");
  }
}

void check_micro_batches(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (options.micro_batches.is_auto() || options.stages() > 1) return;
  reader.error(node.find("micro_batches")->location,
               "micro_batches divides the batch for a pipeline, but there is no pipeline: set `pipeline` too, or use "
               "train.gradient_accumulation instead");
}

void check_parameter_dtype(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (options.parameter_dtype == CommunicatedDType::float32 || options.shard != Shard::none) return;
  reader.error(node.find("parameter_dtype")->location,
               "parameter_dtype is for parameters that replicas gather: set `shard` too");
}

void check_sequence_parallel(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (!options.sequence_parallel || options.tensor.value > 1) return;
  reader.error(node.find("sequence_parallel")->location,
               "sequence_parallel divides positions among the ranks that share layers, but no ranks do: set `tensor` "
               "too");
}

void check_share(const StrategyOptions& options, const Node& node, Reader& reader) {
  const auto* speeds = std::get_if<std::vector<double>>(&options.share.value);
  if (speeds == nullptr) return;
  const Node& list = *node.find("share");
  if (speeds->empty()) reader.error(list.location, "share has no speeds: give one for each replica");
  for (std::size_t i = 0; i < speeds->size(); ++i) {
    if ((*speeds)[i] > 0 && std::isfinite((*speeds)[i])) continue;
    reader.error(list.items[i].location, format("the speed of replica {} must be more than 0", i));
  }
}

// Refuses options with which the order of sums would depend on the ranks or differ from the order of the logical
// shards.
void check_reproducible(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (!options.reproducible) return;
  const SourceLocation& mode = node.find("reproducible")->location;
  const auto refuse = [&](bool is_set, const std::string& key, std::string_view why) {
    if (!is_set) return;
    const Node* other = node.find(key);
    reader.error(other == nullptr ? mode : other->location,
                 format("`{}` cannot be combined with `reproducible`: {}", key, why), mode, "reproducible");
  };
  refuse(options.tensor.value > 1, "tensor", "the sums within a layer depend on its ranks");
  refuse(options.sync_every.value > 1, "sync_every",
         "replicas that step independently use only their own shares of the batch");
  refuse(options.share.value != ShareValue(ShareMode::equal), "share",
         "the logical shards are divided equally among the replicas");
  refuse(options.gradient_dtype != CommunicatedDType::float32, "gradient_dtype",
         "each replica would round the sum of its own shards");
  refuse(options.parameter_dtype != CommunicatedDType::float32, "parameter_dtype",
         "a replica alone gathers and rounds nothing");
  refuse(!options.micro_batches.is_auto(), "micro_batches", "the logical shards are the micro-batches");
}

// Refuses options that require communication between the averages, when replicas do not communicate and differ.
void check_sync_every(const StrategyOptions& options, const Node& node, Reader& reader) {
  if (options.sync_every.value == 1) return;
  if (options.shard != Shard::none) {
    reader.error(node.find("shard")->location,
                 format("`shard: {}` divides states among the replicas, but with `sync_every` each replica needs all "
                        "states between averages; set only one of the two",
                        name_of(options.shard)),
                 options.sync_every.location, "sync_every");
  }
  if (options.gradient_dtype != CommunicatedDType::float32) {
    reader.error(node.find("gradient_dtype")->location,
                 "with `sync_every` replicas are averaged and no gradients are communicated: set only one of the two",
                 options.sync_every.location, "sync_every");
  }
}

}  // namespace

Keys<ReproducibleOptions> ReproducibleOptions::keys() {
  return Keys<ReproducibleOptions>("reproducible", "The same bits in the weights for any number of ranks.")
      .key("shards", &ReproducibleOptions::shards,
           "Number of equal logical shards of every batch, at least one for each replica: `ranks: auto` starts no more "
           "ranks. Results depend on this number, not on the number of ranks, threads or workers.",
           between(1, max_summands));
}

Keys<StrategyOptions> StrategyOptions::keys() {
  return Keys<StrategyOptions>("strategy", "How the work is distributed over the ranks.")
      .key("data", &StrategyOptions::data,
           "Number of replicas of the network, each with its share of every batch; auto: the number of ranks divided "
           "by pipeline and tensor.",
           at_least(1))
      .key(
          "pipeline", &StrategyOptions::pipeline,
          "Number of stages: groups of consecutive layers, each on its own rank, chosen so that all take equally long.",
          between(1, max_stages))
      .key("place", &StrategyOptions::place,
           "Stages set by hand: for each stage, from 0, patterns of layer names (`conv*`; a block's name means its "
           "layers that are not named themselves; `c1@2` is the second use of c1). Every layer must be in one stage.")
      .key("schedule", &StrategyOptions::schedule,
           "Order of a pipeline's micro-batches: 1f1b keeps few in memory, gpipe runs all forward passes first.")
      .key("micro_batches", &StrategyOptions::micro_batches,
           "Number of equal micro-batches of a replica's share of the batch, which follow each other through the "
           "pipeline; auto: about four for each stage.",
           between(1, 65536))
      .key("tensor", &StrategyOptions::tensor,
           "Number of ranks of one host that share each layer: each holds and computes some of its units, filters or "
           "token vectors.",
           between(1, max_tensor_ranks))
      .key("sequence_parallel", &StrategyOptions::sequence_parallel,
           "Whether the ranks that share layers (`tensor`) also divide the positions of sequences among them, in the "
           "norms, dropout and sums between the layers that they share: less memory for activations, and the same "
           "results. Where the number of ranks does not divide the positions, the ranks work as without this key.")
      .key("shard", &StrategyOptions::shard,
           "What is sharded over the replicas: optimizer (its states), gradients (and states), parameters (and both; "
           "PyTorch's full shard): stages 1, 2 and 3 of ZeRO. Each rank needs less memory; the results are the same.")
      .key("gradient_dtype", &StrategyOptions::gradient_dtype,
           "Element type in which gradients are communicated between replicas; bfloat16 halves the bytes: each "
           "replica's gradient is rounded, sums are computed in float32 and rounded again.")
      .key("parameter_dtype", &StrategyOptions::parameter_dtype,
           "Element type in which `shard` gathers matrices and filters; bfloat16 halves the bytes. With `shard: "
           "optimizer` or `gradients` each rank then also keeps its shard of the parameters in float32, and all gather "
           "the parameters before each step and each batch of an evaluation. Layers that compute in bfloat16 "
           "(`train.precision`) round them to it in any case, except learned positions, weights of expressions and "
           "penalties, which read float32. Vectors, such as biases and the weights of norms, are gathered as float32.")
      .key("sync_every", &StrategyOptions::sync_every,
           "Number of steps that replicas take independently, with their own gradients, before parameters, running "
           "statistics and the optimizer's states are averaged, weighted by samples seen (local SGD): for slow "
           "networks. Replicas are also averaged at the end of an epoch and of the run; checkpoints, log lines and "
           "stops that are due wait for the next average. 1: gradients are summed in every step.",
           between(1, 1000000))
      .key("recompute", &StrategyOptions::recompute,
           "Activations that are recomputed for the backward pass instead of being kept, with less memory and the same "
           "results: blocks: those inside residual blocks, bodies of `repeat`, and groups of other consecutive layers; "
           "auto: only as many of these as a rank's memory (cluster.memory) requires, chosen for the least time.")
      .key("bucket_size", &StrategyOptions::bucket_size,
           "Gradients are reduced in buckets of about this size if reduction overlaps the backward pass.", more_than(0))
      .key("first_bucket_size", &StrategyOptions::first_bucket_size,
           "Size of the first bucket, which is smaller so that reduction starts early.", more_than(0))
      .key("overlap", &StrategyOptions::overlap,
           "Whether buckets are reduced during the backward pass; auto: if communication does not need its cores.")
      .key("share", &StrategyOptions::share,
           "Each replica's share of a batch: equal; auto: in proportion to its speed, which is measured before "
           "training begins; or a list of relative speeds, one for each replica.")
      .key("reproducible", &StrategyOptions::reproducible,
           "Computes the same bits for any number of ranks: batches are divided into logical shards, whose gradients, "
           "losses and metrics are added in a fixed order. none: the order of the ranks, which is faster.")
      .key("verify_every", &StrategyOptions::verify_every,
           "How often the replicas are compared by hash, in steps or epochs. A comparison takes less time than a step, "
           "so that every 100 steps it costs less than 1%.")
      .key("on_corruption", &StrategyOptions::on_corruption,
           "What happens when a comparison finds replicas that differ, as after an error of memory. stop: the run ends "
           "with exit code 5, and the replica that differs from the majority is named. repair: that replica receives "
           "the parameters, and the optimizer's state unless it is sharded, from another replica, and the run goes on; "
           "without a majority, as with two replicas, the run ends. Gradients that were computed with the wrong values "
           "since the last comparison have reached all replicas: `verify_every: 1 steps` excludes that.")
      .check(check_place)
      .check(check_sequence_parallel)
      .check(check_parameter_dtype)
      .check(check_micro_batches)
      .check(check_sync_every)
      .check(check_reproducible)
      .check(check_share)
      .check(check_verification);
}

TypeInfo Value<StrategyOptions>::type() {
  return with_words({.kind = TypeInfo::Kind::section, .section = &section_of<StrategyOptions>}, {"auto"});
}

bool Value<StrategyOptions>::read(const Node& node, Reader& reader, StrategyOptions& value) {
  value.automatic = is_word(node, "auto");
  const ReadingContext context(reader, std::vector<std::string>{"auto"});
  return value.automatic || section_of<StrategyOptions>().read(node, reader, &value);
}

Node Value<StrategyOptions>::write(const StrategyOptions& value) {
  return value.automatic ? scalar_node("auto") : section_of<StrategyOptions>().write(&value);
}

StrategyOptions for_one_rank(StrategyOptions options) {
  options.automatic = false;
  options.data = {};
  options.pipeline.value = options.tensor.value = 1;
  options.place.clear();
  options.sequence_parallel = false;
  options.shard = Shard::none;
  options.parameter_dtype = CommunicatedDType::float32;
  options.sync_every.value = 1;
  options.micro_batches = {};
  options.share = ShareValue(ShareMode::equal);
  options.reproducible.reset();
  return options;
}

int stage_number(const std::string& key) {
  constexpr std::size_t max_digits = 4;
  const bool is_number = !key.empty() && key.size() <= max_digits &&
                         key.find_first_not_of("0123456789") == std::string::npos && (key == "0" || key.front() != '0');
  return is_number ? std::stoi(key) : -1;
}

Mesh mesh_of(const StrategyOptions& options, int ranks) {
  require(ranks >= 1, "a run has no ranks");
  const int stages = options.stages(), tensor = options.tensor.value;
  const int ranks_of_replica = stages * tensor;
  const auto refuse = [&](const SourceLocation& location, const std::string& problem, int replicas) {
    const int below = std::max(replicas, 1) * ranks_of_replica, above = (replicas + 1) * ranks_of_replica;
    const std::string numbers =
        options.data.is_auto() && replicas > 0 ? format("{} or {}", below, above) : std::to_string(below);
    throw Error(ErrorKind::config, location, problem, format("start {} ranks, or change the mesh", numbers));
  };
  const std::string divisor = tensor == 1   ? format("the {} stages of a pipeline", stages)
                              : stages == 1 ? format("the {} ranks that share each layer", tensor)
                                            : format("the {} stages times {} ranks of a replica", stages, tensor);
  if (options.data.is_auto()) {
    if (ranks % ranks_of_replica != 0) {
      refuse(tensor == 1 ? options.stages_location() : options.tensor.location,
             format("{} ranks are not a multiple of {}", ranks, divisor), ranks / ranks_of_replica);
    }
    return {.data = ranks / ranks_of_replica, .pipeline = stages, .tensor = tensor};
  }
  const Located<int>& replicas = *options.data.given;
  if (static_cast<std::int64_t>(replicas.value) * ranks_of_replica != ranks) {
    refuse(replicas.location,
           ranks_of_replica == 1
               ? format("strategy.data is {}, but there are {} ranks", replicas.value, ranks)
               : format("{} replicas of {} are {} ranks, but there are {}", replicas.value,
                        tensor == 1 ? format("{} stages", stages) : format("{} ranks", ranks_of_replica),
                        static_cast<std::int64_t>(replicas.value) * ranks_of_replica, ranks),
           replicas.value);
  }
  return {.data = replicas.value, .pipeline = stages, .tensor = tensor};
}

std::optional<int> max_ranks(const StrategyOptions& options) {
  if (!options.reproducible) return {};
  return options.reproducible->shards.value * options.stages() * options.tensor.value;
}

std::vector<double> speeds_of(const StrategyOptions& options, const Mesh& mesh) {
  const auto* speeds = std::get_if<std::vector<double>>(&options.share.value);
  if (speeds == nullptr) return {};
  if (std::ssize(*speeds) == mesh.data) return *speeds;
  throw Error(ErrorKind::config, options.share.location,
              format("strategy.share has {}, but there are {}", counted(speeds->size(), "speed"),
                     counted(mesh.data, "replica")),
              "give one for each replica, or auto");
}

void require_layers_within_hosts(const StrategyOptions& options, const Mesh& mesh,
                                 const std::vector<std::string>& hosts) {
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const int first = mesh.rank(mesh.position(rank).with(MeshAxis::tensor, 0));
    const std::string &host = hosts.at(static_cast<std::size_t>(rank)),
                      &first_host = hosts.at(static_cast<std::size_t>(first));
    if (host == first_host) continue;
    throw CollectiveError(
        ErrorKind::config, options.tensor.location,
        format("strategy.tensor is {}: ranks {} and {} would share layers, but are on the hosts {} and {}", mesh.tensor,
               first, rank, first_host, host),
        "choose a strategy.tensor that divides the ranks of each host: layers are shared within a host");
  }
}

}  // namespace trainctl
