// The keys of the `checkpoint` section.
#include "io/checkpoint/options.h"

#include "core/base/format.h"

namespace trainctl {

Keys<CheckpointOptions> CheckpointOptions::keys() {
  return Keys<CheckpointOptions>("checkpoint", "When checkpoints of the run are written, and which of them are kept.")
      .key("every", &CheckpointOptions::every,
           "How often a checkpoint is written; one more is written at the end. auto: so that a run loses the least "
           "time by saves and failures, by the formula of Young and Daly, from the time for which a save stops "
           "training and from "
           "`cluster.mean_time_between_failures`; at least 10 s and twice the time of writing lie between two saves.",
           more_than(0))
      .key("monitor", &CheckpointOptions::monitor,
           "The metric whose best value `checkpoints/best` points at, such as val_accuracy. auto: val_loss where there "
           "is validation data, otherwise none.")
      .key("mode", &CheckpointOptions::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network gets better "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("keep", &CheckpointOptions::keep,
           "How many of the newest checkpoints are kept, in addition to the best one.", at_least(1))
      .key("weights_only", &CheckpointOptions::weights_only,
           "Leave out the optimizer's state: checkpoints are smaller, but a resumed run starts with a new optimizer "
           "state.")
      .key("background", &CheckpointOptions::background,
           "Continue training while a checkpoint is written from copies of its tensors. The copies need host memory on "
           "each rank: twice the size of the rank's shard of the checkpoint. false: training waits, and no copies are "
           "made.")
      .key("memory_every", &CheckpointOptions::memory_every,
           "How often a copy of the run's state is written to the shared memory (/dev/shm) of rank 0's host, and of a "
           "second host if there is one; none: never. When the ranks start again after a failure (cluster.restarts), "
           "they go on from the newest copy if it is newer than the newest checkpoint, so that a killed rank or a lost "
           "host costs about this number of steps. The copies need twice the size of a checkpoint on each of the two "
           "hosts. They are removed at the end of the run.",
           more_than(0))
      .check([](const CheckpointOptions& options, const Node& node, Reader& reader) {
        const auto require_steps = [&](const char* key, const std::optional<Duration>& given, const char* word) {
          if (!given || given->unit != Duration::Unit::seconds) return;
          const Node* value = node.find(key);
          reader.error(value ? value->location : node.location,
                       format("{} must be {} or a number of steps or epochs, not '{}'", key, word, to_string(*given)));
        };
        require_steps("every", options.every.given, "auto");
        require_steps("memory_every", options.memory_every, "none");
      });
}

}  // namespace trainctl
