// What a metrics.jsonl says of a run: its events, read back and folded into one state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/metrics/progress_text.h"
#include "io/metrics/run_record.h"

namespace trainctl {

enum class RunEvent {
  none,
  anew,  // no event: the record that was read before is gone
  start,
  step,
  epoch,
  checkpoint,
  end
};

// Adds a line of metrics.jsonl. `none`: an event that is not known here, or a line that was damaged. Throws
// Error{config}, without a place, where the line cannot be of a run's record: nothing that trainctl writes stands
// before a start, and a version that writes events otherwise is another one.
RunEvent add_line(RunRecord& record, const std::string& line);

// Whether a line of metrics.jsonl holds an event of this name, by its beginning alone.
bool holds_event(std::string_view line, std::string_view name);

// The lines without those of steps before the newest twenty: a long run has millions of them.
std::vector<std::string> without_old_steps(std::vector<std::string> lines);

// The values of the newest step, as the run itself shows them.
ProgressState progress_of(const RunRecord& record);

}  // namespace trainctl
