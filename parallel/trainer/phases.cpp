// Declares the keys of phases, and finds the phase in which a resumed run continues.
#include "parallel/trainer/phases.h"

#include <sstream>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/exec/interfaces/snapshot.h"
#include "parallel/trainer/loop/loop_plan.h"

namespace trainctl {

Keys<PhaseOptions> PhaseOptions::keys() {
  using O = PhaseOptions;
  return Keys<O>("phase", "A phase of the run with its own frozen layers and optimizer.")
      .required("epochs", &O::epochs, "Number of passes over the data.", between(1, 1e9))
      .key("freeze", &O::freeze,
           "Patterns of the names of layers that are frozen in this phase, instead of model.freeze. []: all layers are "
           "trained; auto: the patterns of model.freeze.")
      .key("optimizer", &O::optimizer, "The optimizer of this phase; if not set, train.optimizer with a new state.");
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
  if (const auto entry = resumed->metadata.find(phase_key); entry != resumed->metadata.end()) {
    std::istringstream text(entry->second);
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
