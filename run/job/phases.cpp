// Takes a phase out of a run.
#include "run/job/phases.h"

#include <algorithm>

#include "core/base/format.h"
#include "run/run_spec.h"

namespace trainctl {

std::size_t phase_count(const RunSpec& run) { return std::max<std::size_t>(run.train.phases.size(), 1); }

RunSpec in_phase(const RunSpec& run, std::size_t number) {
  RunSpec spec = run;
  if (run.train.phases.empty()) return spec;
  const PhaseOptions& phase = run.train.phases.at(number);
  spec.model.freeze = phase.freeze.or_else(run.model.freeze);
  if (phase.optimizer) spec.train.optimizer = phase.optimizer;
  spec.train.epochs = phase.epochs.value;
  spec.train.phases.clear();
  spec.seed += number * 0x9E3779B97F4A7C15;
  return spec;
}

RunSpec chosen_phase(const RunSpec& run, int option) {
  const auto count = static_cast<int>(phase_count(run));
  if (option > count) {
    throw Error(ErrorKind::config, format("there is no phase {}: the run has {}", option, count),
                "phases are numbered from 1");
  }
  return in_phase(run, static_cast<std::size_t>((option == 0 ? count : option) - 1));
}

std::string phase_text(const RunSpec& run, std::size_t number) {
  if (run.train.phases.empty()) return "";
  const RunSpec spec = in_phase(run, number);
  return format("phase {} of {}: {} epoch{} with {}", number + 1, phase_count(run), *spec.train.epochs,
                *spec.train.epochs == 1 ? "" : "s", spec.train.optimizer.name);
}

}  // namespace trainctl
