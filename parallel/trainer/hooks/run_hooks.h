// Creates the hooks of a run's training loop from its plan.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class DetailSink;
class Engine;
class MetricsSink;
class ShardPlan;
class ResultWarnings;
class RunPrograms;
class StepReports;
class Stream;
struct TrainingPlan;

// The objects that the hooks use; all of them must outlive the hooks.
struct HookContext {
  Engine& engine;
  const RunPrograms& programs;
  const ShardPlan& weights;  // plan of the engine's weights
  Communicator& world;
  Communicator* replicas = nullptr;  // the ranks along the data axis, which have the same weights; null: no such ranks
  Stream& stream;
  std::vector<std::string> hosts;  // the host of each rank
  DetailSink* details = nullptr;   // receives histograms; null on all ranks but rank 0
  MetricsSink* sink = nullptr;     // receives norms of gradients and repairs; null on all ranks but rank 0
  ResultWarnings& warnings;
  StepReports& reports;
  // Loads the weights of the best checkpoint into the engine; all ranks call it.
  std::function<void()> restore_best;
};

// Returns the hooks in the order in which the loop calls them. The hook `warnings` is not included, since the loop
// calls it after all others. All ranks must call this function.
std::vector<std::unique_ptr<TrainingHook>> run_hooks(const TrainingPlan& plan, const HookContext& parts);

}  // namespace trainctl
