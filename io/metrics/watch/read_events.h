// Reads the events in a metrics.jsonl and collects them in one record of the run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/metrics/progress_text.h"
#include "io/metrics/run_record.h"

namespace trainctl {

// The event that a line adds to a record.
enum class RunEvent {
  none,
  anew,  // no event: the record that was read before is no longer valid
  start,
  step,
  epoch,
  checkpoint,
  end
};

// Adds a line of metrics.jsonl. Returns `none` for an unknown event or a damaged line. Throws Error{config} without a
// location if the line is not from a run's record: it is before the first start event, or was written by a version with
// another format.
RunEvent add_line(RunRecord& record, const std::string& line);

// Whether a line of metrics.jsonl is an event of this name; only the line's beginning is checked.
bool holds_event(std::string_view line, std::string_view name);

// Removes all steps except the newest twenty, since a long run has millions of them.
std::vector<std::string> without_old_steps(std::vector<std::string> lines);

// Returns the values of the newest step, for the progress line that the run itself shows; after the end of the run, its
// last step and epoch and the loss of its last epoch.
ProgressState progress_of(const RunRecord& record);

}  // namespace trainctl
