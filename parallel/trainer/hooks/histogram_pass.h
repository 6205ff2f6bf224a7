// Counts the values of all weights and gradients, wherever they lie.
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
  // A pass after each multiple of `every` steps. `weights` plans those of the engine; `sink` is null on other ranks
  // than 0. All outlive the pass.
  HistogramPass(std::int64_t every, Engine& engine, const ShardPlan& weights, Communicator& world, Stream& stream,
                DetailSink* sink)
      : every_(every), engine_(engine), weights_(weights), world_(world), stream_(stream), sink_(sink) {}

  std::int64_t next_pause(std::int64_t step) const override { return next_multiple(step, every_); }
  void on_pause(const TrainingState& state, std::int64_t before) override;

 private:
  // Tells the sink the histograms "weights/conv1/kernel" and "gradients/conv1/kernel", of parameters and running
  // statistics, and of the gradients that a training program's step left, times `gradient_scale`. Each rank counts the
  // parts that it would write to a checkpoint. No later step may have begun. Collective.
  void run(std::int64_t step, int program, double gradient_scale);
  void count(const std::string& prefix, const ShardPlan& plan, std::span<const NamedTensor> held, double scale,
             std::int64_t step);

  std::int64_t every_;
  Engine& engine_;
  const ShardPlan& weights_;
  Communicator& world_;
  Stream& stream_;
  DetailSink* sink_;
  std::optional<ShardPlan> gradients_;  // from the first pass on
};

}  // namespace trainctl
