// Traces as JSON.
#include "parallel/bench/trace_events.h"

#include "core/base/json.h"

namespace trainctl {
namespace {

std::string name_element(const char* what, int process, int thread, const std::string& name) {
  return Json{{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}}.dump();
}

}  // namespace

std::string to_trace(const TraceEvent& event) {
  Json details = Json::object();
  for (const auto& [key, value] : event.details) details[key] = value;
  return Json{{"name", event.name},
              {"cat", event.category},
              {"ph", "X"},
              {"pid", event.process},
              {"tid", event.thread},
              {"ts", event.start * 1e6},
              {"dur", (event.end - event.start) * 1e6},
              {"args", std::move(details)}}
      .dump();
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

}  // namespace trainctl
