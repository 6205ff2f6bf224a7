// The hooks of a run's loop, as its plan has them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class DetailSink;
class Engine;
class ShardPlan;
class ResultWarnings;
class RunPrograms;
class StepReports;
class Stream;
struct TrainingPlan;

// What the hooks work with; all of it outlives them.
struct HookParts {
  Engine& engine;
  const RunPrograms& programs;
  const ShardPlan& weights;  // of the engine
  Communicator& world;
  Communicator* replicas = nullptr;  // along the data axis: the ranks with the same weights; null: there are none
  Stream& stream;
  DetailSink* details = nullptr;  // of histograms; null on other ranks than 0
  ResultWarnings& warnings;
  StepReports& reports;
  // Gives the engine the weights of the best checkpoint. Collective.
  std::function<void()> restore_best;
};

// In the order in which the loop calls them; without `warnings`, which the loop calls after them. Collective.
std::vector<std::unique_ptr<TrainingHook>> run_hooks(const TrainingPlan& plan, const HookParts& parts);

}  // namespace trainctl
