// The strategy section's keys, and the mesh they describe.
#include "parallel/strategies/options.h"

#include "core/base/format.h"

namespace trainctl {

Keys<StrategyOptions> StrategyOptions::keys() {
  return Keys<StrategyOptions>("strategy", "How the work is spread over the ranks.")
      .key("data", &StrategyOptions::data, "Replicas of the network; auto: as many as there are ranks.", at_least(1))
      .key("shard", &StrategyOptions::shard,
           "What replicas share, each holding a part: optimizer (its states), gradients (and states), parameters (and "
           "both; "
           "PyTorch's full shard): stages 1, 2 and 3 of ZeRO. Less memory for each rank, the same results.")
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
  const int replicas = options.data.or_else(ranks);
  if (replicas != ranks) {
    throw Error(ErrorKind::config, format("strategy.data is {}, but there are {} ranks", replicas, ranks),
                format("start {} ranks, or leave strategy.data at auto", replicas));
  }
  return {replicas, 1, 1};
}

}  // namespace trainctl
