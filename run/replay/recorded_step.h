// What the record of a run says about a step that was not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

struct RecordedNotFinite {
  std::string cause;  // such as "a loss is not finite"
  std::string fault;  // the rehearsed fault that made it so; "": none
};

// Reads metrics.jsonl and the marks of rehearsed faults in the directory of a run. Empty if the step was finite, or if
// a later start of the run has done it again and it was finite. `step`: its number, counted from 1.
std::optional<RecordedNotFinite> recorded_not_finite(const std::string& run, std::int64_t step);

// Returns the finding as a JSON object with the members as keys; `fault` is null if there was none.
Json to_json(const RecordedNotFinite& recorded);

// Compares such an object with the repeated step: "not finite, since ...". `repeated_is_finite`: whether the repeated
// step has only finite values.
std::string recorded_text(const Json& recorded, bool repeated_is_finite);

}  // namespace trainctl
