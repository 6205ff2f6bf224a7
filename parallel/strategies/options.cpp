// The strategy section's keys, and the mesh they describe.
#include "parallel/strategies/options.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {

Keys<StrategyOptions> StrategyOptions::keys() {
  return Keys<StrategyOptions>("strategy", "How the work is spread over the ranks.")
      .key("data", &StrategyOptions::data, "Replicas of the network; auto: as many as the ranks allow.", at_least(1))
      .key("tensor", &StrategyOptions::tensor,
           "Ranks of one host that share each replica's layers: each holds and computes a part of their units or "
           "filters.",
           at_least(1))
      .key("bucket_size", &StrategyOptions::bucket_size,
           "Gradients are reduced in buckets of about this size where reduction overlaps the backward pass.",
           more_than(0))
      .key("first_bucket_size", &StrategyOptions::first_bucket_size,
           "Size of the first bucket, smaller so that reduction starts early.", more_than(0))
      .key("overlap", &StrategyOptions::overlap,
           "Whether buckets are reduced during the backward pass; auto: where communication takes no cores from it.")
      .key("verify_every", &StrategyOptions::verify_every,
           "How often the replicas are compared by hash, in steps or epochs.")
      .check([](const StrategyOptions& options, const Node& node, Reader& reader) {
        if (!options.verify_every) return;
        if (options.verify_every->unit != Duration::Unit::seconds && options.verify_every->amount > 0) return;
        const Node* value = node.find("verify_every");
        reader.error(value ? value->place : node.place,
                     format("verify_every must be none, or a number of steps or epochs, not '{}'",
                            to_string(*options.verify_every)));
      });
}

Mesh mesh_of(const StrategyOptions& options, int ranks) {
  require(ranks >= 1, "a run has ranks");
  const int parts = options.tensor.value;
  const int replicas = options.data.or_else(std::max(ranks / parts, 1));
  if (replicas * parts == ranks) return {replicas, 1, parts};
  if (parts == 1) {
    throw Error(ErrorKind::config, format("strategy.data is {}, but there are {} ranks", replicas, ranks),
                format("start {} ranks, or leave strategy.data at auto", replicas));
  }
  throw Error(ErrorKind::config, options.tensor.place,
              format("strategy.tensor is {}: {} of data parallelism times {} does not make the {} ranks", parts,
                     replicas, parts, ranks),
              format("start {} ranks, or another multiple of {} with strategy.data at auto", replicas * parts, parts));
}

void require_layers_within_hosts(const StrategyOptions& options, const Mesh& mesh,
                                 const std::vector<std::string>& hosts) {
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const int first = mesh.rank(mesh.position(rank).with(MeshAxis::tensor, 0));
    const std::string &here = hosts.at(static_cast<std::size_t>(rank)),
                      &there = hosts.at(static_cast<std::size_t>(first));
    if (here == there) continue;
    throw CollectiveError(
        ErrorKind::config, options.tensor.place,
        format("strategy.tensor is {}: ranks {} and {} would share layers, and lie on the hosts {} and {}", mesh.tensor,
               first, rank, there, here),
        "choose a strategy.tensor that divides the ranks of each host: layers are shared within a host");
  }
}

}  // namespace trainctl
