// Computes the norm of each layer's gradient, over all ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/checkpoint/shard_plan.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class Engine;
class MetricsSink;
class Stream;

class GradientNorms final : public TrainingHook {
 public:
  // Computes the norms after each multiple of `every` steps. `sink`: null on all ranks but rank 0. All arguments must
  // outlive the object.
  GradientNorms(std::int64_t every, Engine& engine, Communicator& world, Stream& stream, MetricsSink* sink)
      : every_(every), engine_(engine), world_(world), stream_(stream), sink_(sink) {}

  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, every_); }
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  std::int64_t every_;
  Engine& engine_;
  Communicator& world_;
  Stream& stream_;
  MetricsSink* sink_;
  std::optional<ShardPlan> plan_;  // of the gradients; set by the first call
};

}  // namespace trainctl
