// Compares the weights of replicas, which must be equal, before the first step and then at regular intervals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/health/replicas.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class Engine;
class MetricsSink;
class Stream;

class ReplicaComparison final : public TrainingHook {
 public:
  // All of them must outlive the hook.
  struct Parts {
    Engine& engine;
    Communicator& replicas;  // the ranks along the data axis
    Communicator& world;
    Stream& stream;
    MetricsSink* sink = nullptr;     // null on all ranks but rank 0
    std::vector<std::string> hosts;  // the host of each rank, for messages; empty: hosts are not named
  };

  // Compares after each multiple of `every` steps; 0: only before the first step. All ranks must call this constructor.
  ReplicaComparison(std::int64_t every, OnCorruption on_corruption, Parts parts);

  void on_train_begin(const TrainingState& state) override { compare(state); }
  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, every_); }
  // If replicas differ, throws CollectiveError{peer}. With OnCorruption::repair, the replicas that differ from the
  // majority instead receive all values of a replica that does not.
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  std::optional<ReplicaDifference> find();
  int good_replica(const ReplicaDifference& difference) const;
  void compare(const TrainingState& state);
  void repair(int good);
  void report(const TrainingState& state, const std::string& action, const std::string& text,
              const std::vector<int>& ranks) const;

  std::int64_t every_;
  OnCorruption on_corruption_;
  Parts parts_;
  ReplicaCheck weights_;
  std::unique_ptr<ReplicaCheck> state_;  // null: it is not repaired, or replicas share it
};

}  // namespace trainctl
