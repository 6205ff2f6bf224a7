// The phases of a run, each with its own frozen layers and an optimizer whose state is reset.
//
// A phase is a run of its own that continues from the last checkpoint of the previous phase. A phase begins after the
// last step of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/reference.h"
#include "core/optim/choices.h"
#include "core/spec/values.h"

namespace trainctl {

struct PhaseStart;
struct Snapshot;

struct PhaseOptions {
  Located<std::int64_t> epochs;
  Auto<std::vector<Reference>> freeze;    // auto: model.freeze
  ChoiceOf<optimizer_choices> optimizer;  // not set: the run's optimizer

  static Keys<PhaseOptions> keys();
};

// The total number of epochs of all phases; 0 if there are no phases.
std::int64_t epochs_of(const std::vector<PhaseOptions>& phases);

// The key of a checkpoint's metadata for the phase with which the run continues: the text of a PhaseStart.
inline constexpr const char* phase_key = "phase";
std::string to_text(const PhaseStart& start);

// Returns the phase with which a run continues. If the checkpoint of a run without phases has no `phase_key`, the phase
// is computed from its step, as if every earlier phase had lasted for all of its epochs.
PhaseStart find_phase(const std::vector<PhaseOptions>& phases, std::int64_t steps_per_epoch,
                      const std::optional<Snapshot>& resumed);

}  // namespace trainctl
