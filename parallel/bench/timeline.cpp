// Timelines in Chrome's trace event format.
#include "parallel/bench/timeline.h"

#include <chrono>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// From this process' forward-going clock to the time of day, which the ranks of several hosts share.
double clock_offset() {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return now - seconds_now();
}

// One rank's events, comma-separated.
std::string events_text(const OpRecorder& recorder, int rank) {
  const double offset = clock_offset();
  std::string text =
      Json{{"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"args", {{"name", format("rank {}", rank)}}}}.dump();
  const auto add = [&](const std::string& name, const char* category, int thread, double start, double end,
                       Json details) {
    text += ",\n" + Json{{"name", name},
                         {"cat", category},
                         {"ph", "X"},
                         {"pid", rank},
                         {"tid", thread},
                         {"ts", (start + offset) * 1e6},
                         {"dur", (end - start) * 1e6},
                         {"args", std::move(details)}}
                        .dump();
  };
  for (const Mark& mark : recorder.marks())
    add(mark.name, "step", 0, mark.start_seconds, mark.end_seconds, Json::object());
  for (const OpRun& run : recorder.runs()) {
    const PlacedSegment& placed = run.program->segment(run.segment);
    const std::string segment(name_of(placed.phase, placed.variant));
    add(format("{} {}", run.what().def->kind(), run.what().name), segment.c_str(), 1, run.start_seconds,
        run.end_seconds,
        {{"segment", segment},
         {"attributes", run.what().def->attributes()},
         {"implementation", run.how().implementation}});
  }
  return text;
}

}  // namespace

std::string gather_timeline(const OpRecorder& recorder, Communicator& world, Stream& stream) {
  const std::vector<std::string> events = gather_texts(events_text(recorder, world.rank()), world, stream);
  if (world.rank() != 0) return "";
  std::string all = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const std::string& of_rank : events) all += (&of_rank == &events.front() ? "\n" : ",\n") + of_rank;
  return all + "\n]}\n";
}

}  // namespace trainctl
