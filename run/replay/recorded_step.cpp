// Looks for a step that was not finite in the record of a run.
#include "run/replay/recorded_step.h"

#include <fstream>

#include "core/base/format.h"
#include "core/base/json.h"
#include "io/metrics/watch/read_events.h"
#include "parallel/health/faults/fault.h"

namespace trainctl {

std::optional<RecordedNotFinite> recorded_not_finite(const std::string& run, std::int64_t step) {
  std::optional<RecordedNotFinite> found;
  bool started_again = false;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (holds_event(line, "start")) started_again = true;
    const bool is_not_finite = holds_event(line, "not_finite");
    if (!is_not_finite && (!started_again || !found || !holds_event(line, "step"))) continue;
    const Json json = try_parse_json(line);
    if (json.is_discarded() || json.value("step", std::int64_t{-1}) != step) continue;
    found.reset();
    if (!is_not_finite) continue;
    found = RecordedNotFinite{json.value("cause", ""), fault_before_step(run, "nan", step)};
    started_again = false;
  }
  return found;
}

Json to_json(const RecordedNotFinite& recorded) {
  return {{"cause", recorded.cause}, {"fault", recorded.fault.empty() ? Json() : Json(recorded.fault)}};
}

std::string recorded_text(const Json& recorded, bool repeated_is_finite) {
  const std::string cause = recorded.at("cause").get<std::string>();
  if (!recorded.at("fault").is_null()) {
    return format("not finite ({}), made by the rehearsed fault \"{}\"{}", cause,
                  recorded.at("fault").get<std::string>(),
                  repeated_is_finite ? "; the repeated step, without the fault, is finite" : "");
  }
  if (!repeated_is_finite) return format("not finite ({}), as the repeated step", cause);
  return format(
      "not finite ({}), but the repeated step is finite: look for a fault of the hardware, and for data that has "
      "changed",
      cause);
}

}  // namespace trainctl
