// Writes trace events and gathers the events of all ranks.
#include "parallel/bench/timeline.h"

#include <chrono>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/exec/observe/op_recorder.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

std::string name_element(const char* what, int process, int thread, const std::string& name) {
  return json_text({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
}

// Returns the offset from this process's monotonic clock to the time of day, which is common to the ranks of all hosts.
double clock_offset() {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return now - seconds_now();
}

// Returns one rank's events, comma-separated.
std::string events_text(const OpRecorder& recorder, int rank) {
  const double offset = clock_offset();
  std::string text = trace_process_name(rank, format("rank {}", rank));
  for (const Mark& mark : recorder.marks()) {
    text += ",\n" + to_trace({mark.name, "step", rank, 0, mark.start_seconds + offset, mark.end_seconds + offset});
  }
  for (const OpRun& run : recorder.runs()) {
    const PlacedSegment& placed = run.program->segment(run.segment);
    const std::string segment(name_of(placed.phase, placed.variant));
    text += ",\n" + to_trace({format("{} {}", run.what().def->kind(), run.what().name),
                              segment,
                              rank,
                              1,
                              run.start_seconds + offset,
                              run.end_seconds + offset,
                              {{"segment", segment},
                               {"attributes", run.what().def->attributes()},
                               {"implementation", run.how().implementation}}});
  }
  return text;
}

}  // namespace

std::string to_trace(const TraceEvent& event) {
  Json details = Json::object();
  for (const auto& [key, value] : event.details) details[key] = value;
  return json_text({{"name", event.name},
                    {"cat", event.category},
                    {"ph", "X"},
                    {"pid", event.process},
                    {"tid", event.thread},
                    {"ts", event.start * 1e6},
                    {"dur", (event.end - event.start) * 1e6},
                    {"args", std::move(details)}});
}

std::string trace_process_name(int process, const std::string& name) {
  return name_element("process_name", process, 0, name);
}

std::string trace_thread_name(int process, int thread, const std::string& name) {
  return name_element("thread_name", process, thread, name);
}

std::string trace_document(const std::vector<std::string>& elements) {
  std::string all = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (const std::string& element : elements) all += (&element == &elements.front() ? "\n" : ",\n") + element;
  return all + "\n]}\n";
}

std::string gather_timeline(const OpRecorder& recorder, Communicator& world, Stream& stream) {
  const std::vector<std::string> events = gather_texts(events_text(recorder, world.rank()), world, stream);
  if (world.rank() != 0) return "";
  return trace_document(events);
}

}  // namespace trainctl
