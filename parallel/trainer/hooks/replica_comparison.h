// Compares the weights of replicas, which must be equal, before the first step and then at regular intervals.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/health/replicas.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;

class ReplicaComparison final : public TrainingHook {
 public:
  // Compares after each multiple of `every` steps; 0: only before the first step. `replicas`: the ranks along the data
  // axis; `rank`: this rank's number in the world, for messages. All arguments must outlive the hook. All ranks must
  // call this constructor.
  ReplicaComparison(std::int64_t every, Engine& engine, Communicator& replicas, int rank, Stream& stream);

  void on_train_begin(const TrainingState&) override { compare(); }
  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, every_); }
  // Throws Error{peer}, on all replicas, if they differ (ReplicaCheck::compare).
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  void compare();

  std::int64_t every_;
  Engine& engine_;
  Stream& stream_;
  ReplicaCheck check_;
};

}  // namespace trainctl
