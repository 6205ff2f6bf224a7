// Computes histograms of all weights and gradients, over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "parallel/checkpoint/shard_plan.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class DetailSink;
class Engine;
class Stream;

class HistogramPass final : public TrainingHook {
 public:
  // Makes a pass after each multiple of `every` steps. `weights`: the plan of the engine's weights. `sink`: null on all
  // ranks but rank 0. All arguments must outlive the object.
  HistogramPass(std::int64_t every, Engine& engine, const ShardPlan& weights, Communicator& world, Stream& stream,
                DetailSink* sink)
      : every_(every), engine_(engine), weights_(weights), world_(world), stream_(stream), sink_(sink) {}

  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, every_); }
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  // Passes to the sink the histograms of parameters and running statistics ("weights/conv1/kernel"), and of gradients
  // ("gradients/conv1/kernel"). The gradients are from the last step of the training program with index `program`,
  // times `gradient_scale`. Each rank counts the shards that it would write to a checkpoint. All ranks must call this
  // function before a later step begins.
  void run(std::int64_t step, int program, double gradient_scale);
  void count(const std::string& prefix, const ShardPlan& plan, std::span<const NamedTensor> held, double scale,
             std::int64_t step);

  std::int64_t every_;
  Engine& engine_;
  const ShardPlan& weights_;
  Communicator& world_;
  Stream& stream_;
  DetailSink* sink_;
  std::optional<ShardPlan> gradients_;  // set by the first pass
};

}  // namespace trainctl
