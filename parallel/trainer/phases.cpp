// The options of phases, and which one a run is in.
#include "parallel/trainer/phases.h"

#include <sstream>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "parallel/trainer/loop/loop_plan.h"

namespace trainctl {

Keys<PhaseOptions> PhaseOptions::keys() {
  using O = PhaseOptions;
  return Keys<O>("phase", "A part of the run with frozen layers and an optimizer of its own.")
      .required("epochs", &O::epochs, "Passes over the data.", between(1, 1e9))
      .key("freeze", &O::freeze,
           "Patterns of the names of layers that do not train in this phase, as model.freeze, in whose place they "
           "are: [] lets all train. auto: those of model.freeze.")
      .key("optimizer", &O::optimizer, "The optimizer of this phase; without it train.optimizer, which begins anew.");
}

std::int64_t epochs_of(const std::vector<PhaseOptions>& phases) {
  std::int64_t epochs = 0;
  for (const PhaseOptions& phase : phases) epochs += phase.epochs.value;
  return epochs;
}

std::string to_text(const PhaseStart& start) { return format("{} {}", start.number, start.step); }

PhaseStart find_phase(const std::vector<PhaseOptions>& phases, std::int64_t steps_per_epoch,
                      const std::optional<Snapshot>& resumed) {
  if (!resumed || phases.empty()) return {};
  if (const auto fact = resumed->metadata.find(phase_key); fact != resumed->metadata.end()) {
    std::istringstream text(fact->second);
    PhaseStart start;
    if (text >> start.number >> start.step && start.number < phases.size() && start.step <= resumed->step) return start;
  }
  PhaseStart start;
  for (; start.number + 1 < phases.size(); ++start.number) {
    const std::int64_t steps = saturated_multiply(phases[start.number].epochs.value, steps_per_epoch);
    if (resumed->step - start.step < steps) break;
    start.step += steps;
  }
  return start;
}

}  // namespace trainctl
