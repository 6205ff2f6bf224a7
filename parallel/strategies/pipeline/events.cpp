// Computes the schedules GPipe (Huang et al., 2019) and 1F1B (Narayanan et al., 2019) and a common order of all
// messages.
#include "parallel/strategies/pipeline/events.h"

#include <algorithm>
#include <tuple>

#include "core/base/error.h"

namespace trainctl {
namespace {

using EventKind = PipelineEvent::Kind;

struct Pass {
  bool forward = true;
  int micro_batch = 0;
};

// Returns the passes of one stage in order.
std::vector<Pass> passes_of(PipelineSchedule schedule, int stages, int stage, int micro_batches, bool training) {
  std::vector<Pass> passes;
  // Number of micro-batches with a forward pass before the first backward pass, without the micro-batch of this
  // backward pass.
  const bool early = training && schedule == PipelineSchedule::one_forward_one_backward;
  const int ahead = early ? std::min(stages - 1 - stage, micro_batches) : micro_batches;
  int begun = 0;
  for (; begun < ahead; ++begun) passes.push_back({true, begun});
  for (int done = 0; training && done < micro_batches; ++done) {
    if (begun < micro_batches) passes.push_back({true, begun++});
    passes.push_back({false, done});
  }
  return passes;
}

// Computes when each pass of each stage begins in a simulated step.
class SimulatedStep {
 public:
  SimulatedStep(PipelineSchedule schedule, int stages, int micro_batches, bool training)
      : forward_(static_cast<std::size_t>(stages), std::vector<int>(static_cast<std::size_t>(micro_batches), -1)),
        backward_(forward_) {
    for (int stage = 0; stage < stages; ++stage) {
      passes_.push_back(passes_of(schedule, stages, stage, micro_batches, training));
    }
    std::vector<std::size_t> next(passes_.size());
    std::vector<int> free(passes_.size());  // time at which the previous pass of each stage ends
    for (bool has_advanced = true; has_advanced;) {
      has_advanced = false;
      for (std::size_t stage = 0; stage < passes_.size(); ++stage) {
        while (next[stage] < passes_[stage].size()) {
          const Pass pass = passes_[stage][next[stage]];
          const int ready = ready_at(stage, pass);
          if (ready < 0) break;
          start(stage, pass) = std::max(free[stage], ready);
          free[stage] = end(stage, pass);
          ++next[stage];
          has_advanced = true;
        }
      }
    }
    for (std::size_t stage = 0; stage < passes_.size(); ++stage) {
      require(next[stage] == passes_[stage].size(), "a pass of a pipeline's stage waits for a pass that never runs");
    }
  }

  const std::vector<Pass>& passes(int stage) const { return passes_[static_cast<std::size_t>(stage)]; }
  int start(int stage, const Pass& pass) const {
    const auto& of = pass.forward ? forward_ : backward_;
    return of[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.micro_batch)];
  }
  int end(int stage, const Pass& pass) const { return start(stage, pass) + (pass.forward ? 1 : 2); }

 private:
  int& start(std::size_t stage, const Pass& pass) {
    return (pass.forward ? forward_ : backward_)[stage][static_cast<std::size_t>(pass.micro_batch)];
  }
  int end(std::size_t stage, const Pass& pass) const { return end(static_cast<int>(stage), pass); }
  // Returns the time at which the previous stage in this direction ends the pass; -1 if it is still unknown.
  int ready_at(std::size_t stage, const Pass& pass) const {
    if (pass.forward && stage == 0) return 0;
    if (!pass.forward && stage + 1 == passes_.size()) {
      const Pass own{true, pass.micro_batch};
      return start(static_cast<int>(stage), own) < 0 ? -1 : end(stage, own);
    }
    const std::size_t before = pass.forward ? stage - 1 : stage + 1;
    return start(static_cast<int>(before), pass) < 0 ? -1 : end(before, pass);
  }

  std::vector<std::vector<Pass>> passes_;             // passes of each stage
  std::vector<std::vector<int>> forward_, backward_;  // start of each stage's micro-batches; -1: still unknown
};

}  // namespace

std::vector<PipelineEvent> pipeline_events(PipelineSchedule schedule, int stages, int own, int micro_batches,
                                           bool training, const std::vector<StageMessage>& messages) {
  const SimulatedStep step(schedule, stages, micro_batches, training);
  // Actions are ordered by time; then gradients, activations, passes; then by sender, receiver and micro-batch.
  using Order = std::tuple<int, int, int, int, int>;
  std::vector<std::pair<Order, PipelineEvent>> ordered;
  for (const Pass& pass : step.passes(own)) {
    ordered.push_back({{step.start(own, pass), 2, 0, 0, 0},
                       {pass.forward ? EventKind::forward : EventKind::backward, pass.micro_batch}});
  }
  for (std::size_t number = 0; number < messages.size(); ++number) {
    const StageMessage& message = messages[number];
    for (int i = 0; i < micro_batches; ++i) {
      const int time = message.forward ? step.start(message.to, {true, i}) : step.end(message.from, {false, i});
      ordered.push_back({{time, message.forward ? 1 : 0, message.from, message.to, i},
                         {EventKind::message, i, static_cast<int>(number)}});
    }
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PipelineEvent> events;
  for (const auto& [order, event] : ordered) events.push_back(event);
  return events;
}

}  // namespace trainctl
