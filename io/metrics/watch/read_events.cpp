// Adds events to the record of a run.
#include "io/metrics/watch/read_events.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_parse.h"
#include "core/base/version.h"
#include "io/metrics/read_event.h"

namespace trainctl {
namespace {

constexpr int kept_steps = 20;

// Returns "0.1" for "0.1.3" and "2" for "2.0.1". Versions of the same series write the same files.
std::string series_of(std::string_view version) {
  const std::size_t major = std::min(version.size(), version.find('.'));
  const std::size_t minor = std::min(version.size(), version.find('.', major + 1));
  return std::string(version.substr(0, version.starts_with("0.") ? minor : major));
}

void require_same_series(const Json& json) {
  const std::string run_version = json.at("version");
  if (series_of(run_version) == series_of(version())) return;
  throw Error(ErrorKind::config,
              format("the run was started by trainctl {}, and this trainctl {} may not understand its record",
                     run_version, version()),
              "watch it with the trainctl that trains it");
}

void begin(RunRecord& record, StartEvent start) {
  const std::int64_t first = start.first_step;
  if (record.epoch && record.epoch->step > first) record.epoch.reset();
  if (record.checkpoint && record.checkpoint->step > first) record.checkpoint.reset();
  record.start = std::move(start);
  record.step.reset();
  record.end.reset();
  record.gpus.clear();
  record.longest_gap = record.seconds_per_step = 0;
}

void add_step(RunRecord& record, StepEvent step, double time) {
  if (record.ends_with_a_step && record.step && step.step > record.step->step) {
    constexpr double newest = 0.2;  // weight of the newest interval
    const double found = (time - record.time) / static_cast<double>(step.step - record.step->step);
    const double before = record.seconds_per_step;
    record.seconds_per_step = before > 0 ? (1 - newest) * before + newest * found : found;
  }
  record.step = step;
}

RunEvent add_event(RunRecord& record, const Json& json) {
  const std::string name = json.at("event");
  const double time = json.at("time");
  RunEvent event = RunEvent::none;
  if (name == "start") {
    require_same_series(json);
    begin(record, read_start(json));
    event = RunEvent::start;
  } else if (!record.start) {
    throw Error(ErrorKind::config, "this is not the record of a run: it does not begin with a start event",
                "name the directory of a run, as trainctl run leaves it");
  } else if (name == "step") {
    add_step(record, read_step(json), time);
    if (const auto gpus = json.find("gpu"); gpus != json.end()) record.gpus = read_gpus(*gpus);
    event = RunEvent::step;
  } else if (name == "epoch") {
    record.epoch = read_epoch(json);
    event = RunEvent::epoch;
  } else if (name == "checkpoint") {
    record.checkpoint = read_checkpoint(json);
    record.checkpoint_time = time;
    event = RunEvent::checkpoint;
  } else if (name == "end") {
    record.end = read_end(json);
    event = RunEvent::end;
  }
  if (event != RunEvent::start) record.longest_gap = std::max(record.longest_gap, time - record.time);
  record.time = time;
  record.ends_with_a_step = event == RunEvent::step;
  return event;
}

// Sets the values of a run that has ended, whose last steps may have no event of their own.
void set_end(ProgressState& state, const EndEvent& end) {
  state.seconds_left = end.status == "completed" ? 0 : -1;
  if (end.step < state.step) return;  // a failed run may not know the step that it has reached
  state.step = end.step;
  state.epoch = end.epoch;
  if (const auto loss = end.train.find("loss"); loss != end.train.end()) state.loss = loss->second;
}

}  // namespace

RunEvent add_line(RunRecord& record, const std::string& line) {
  const bool is_json = Json::accept(line);
  const Json json = is_json ? parse_json(line, SourceLocation{}) : Json();
  const bool is_event = json.is_object() && json.contains("event");
  if (!is_event && record.start) return RunEvent::none;
  try {
    return add_event(record, is_event ? json : Json{{"event", ""}, {"time", 0}});
  } catch (const Json::exception&) {
    throw Error(ErrorKind::config, "an event is not as this version of trainctl writes it",
                "watch the run with the trainctl that trains it");
  }
}

bool holds_event(std::string_view line, std::string_view name) {
  constexpr std::string_view before = R"({"event":")";  // as MetricsJsonl writes it
  return line.starts_with(before) && line.substr(before.size()).starts_with(name) &&
         line.substr(before.size() + name.size()).starts_with('"');
}

std::vector<std::string> without_old_steps(std::vector<std::string> lines) {
  const auto is_step = [](const std::string& line) { return holds_event(line, "step"); };
  auto surplus = std::count_if(lines.begin(), lines.end(), is_step) - kept_steps;
  std::erase_if(lines, [&](const std::string& line) { return surplus > 0 && is_step(line) && surplus-- > 0; });
  return lines;
}

ProgressState progress_of(const RunRecord& record) {
  ProgressState state;
  if (record.start) {
    state.step = record.start->first_step;
    state.total_steps = record.start->total_steps;
    state.steps_per_epoch = record.start->steps_per_epoch;
    if (state.steps_per_epoch > 0) {
      state.epoch = static_cast<double>(state.step) / static_cast<double>(state.steps_per_epoch);
    }
  }
  state.loss = std::nan("");
  if (record.step) {
    state.step = record.step->step;
    state.epoch = record.step->epoch;
    state.loss = record.step->loss;
    state.learning_rate = record.step->learning_rate;
    state.samples_per_second = record.step->samples_per_second;
    state.data_wait_share = record.step->data_wait_share;
  }
  if (state.total_steps > 0 && record.seconds_per_step > 0) {
    state.seconds_left = static_cast<double>(state.total_steps - state.step) * record.seconds_per_step;
  }
  if (record.end) set_end(state, *record.end);
  set_gpus(state, record.gpus);
  return state;
}

}  // namespace trainctl
