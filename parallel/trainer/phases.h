// The phases of a run: one after the other, each with its own frozen layers and with an optimizer that begins anew.
//
// A phase is a run of its own that goes on from the checkpoint that the phase before has left. Phases follow one
// another after the last step of an epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/reference.h"
#include "core/optim/optimizer.h"
#include "core/spec/values.h"

namespace trainctl {

struct PhaseStart;
struct Snapshot;

struct PhaseOptions {
  Located<std::int64_t> epochs;
  Auto<std::vector<Reference>> freeze;    // auto: those of the model
  ChoiceOf<optimizer_choices> optimizer;  // none stated: that of the run

  static Keys<PhaseOptions> keys();
};

// The epochs of all phases; 0 where there are no phases.
std::int64_t epochs_of(const std::vector<PhaseOptions>& phases);

// The fact by which a checkpoint says which phase its run goes on with: the text of a PhaseStart.
inline constexpr const char* phase_key = "phase";
std::string to_text(const PhaseStart& start);

// The phase that a run goes on with. A checkpoint without the fact, of a run without phases, is taken for one whose
// phases had all of their epochs.
PhaseStart find_phase(const std::vector<PhaseOptions>& phases, std::int64_t steps_per_epoch,
                      const std::optional<Snapshot>& resumed);

}  // namespace trainctl
