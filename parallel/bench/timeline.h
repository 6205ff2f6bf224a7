// Writes timelines in Chrome's trace event format, which Perfetto and chrome://tracing open: single elements, and one
// file with the recorded steps of all ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trainctl {

class Communicator;
class OpRecorder;
class Stream;

// A complete event ("ph": "X") on a thread of a process.
struct TraceEvent {
  std::string name;
  std::string category;
  int process = 0;
  int thread = 0;
  double start = 0, end = 0;                                      // seconds
  std::vector<std::pair<std::string, std::string>> details = {};  // shown with the event
};

// Each of these functions returns the text of one element of a trace.
std::string to_trace(const TraceEvent& event);
std::string trace_process_name(int process, const std::string& name);
std::string trace_thread_name(int process, int thread, const std::string& name);

// Joins elements to a document; each string may contain several elements, comma-separated.
std::string trace_document(const std::vector<std::string>& elements);

// Gathers the records of all ranks on rank 0, as a trace with one process for each rank; "" on the other ranks. All
// ranks must call this function.
std::string gather_timeline(const OpRecorder& recorder, Communicator& world, Stream& stream);

}  // namespace trainctl
