// Formats lines, a table and JSON of watched runs.
#include "io/metrics/watch/watch_text.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/metrics/progress_text.h"

namespace trainctl {
namespace {

constexpr double shown_silence = 30;  // seconds without an event from which on they are shown

std::string count_of(std::int64_t count, const std::string& one) {
  return format("{} {}{}", count_text(static_cast<double>(count)), one, count == 1 ? "" : "s");
}

std::string count_of_total(const std::string& done, std::int64_t total) {
  return total > 0 ? format("{}/{}", done, total) : done;
}

std::string checkpoint_text(const RunRecord& record, double now) {
  if (!record.checkpoint) return "";
  return format("step {}, {} ago", record.checkpoint->step, time_text(std::max(0.0, now - record.checkpoint_time)));
}

std::string loss_text(double loss) { return std::isnan(loss) ? "" : format("{:.4g}", loss); }

std::string value_text(const std::map<std::string, double>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : format("{:.4g}", found->second);
}

Json values_of(const RunRecord& record, std::map<std::string, double> EpochEvent::*values) {
  return record.epoch ? json_numbers((*record.epoch).*values) : Json::object();
}

Json known_number(double value, bool is_known) { return is_known ? json_number(value) : Json(); }

}  // namespace

std::string head_line(const WatchedRun& run) {
  const RunRecord& record = run.record();
  if (!record.start) return format("{}: {} has not begun to train", run.directory(), run.process());
  const StartEvent& start = *record.start;
  std::string line = format("{}: {}", run.directory(), count_of(start.ranks, "rank"));
  for (std::size_t i = 0; i < start.hosts.size(); ++i) line += (i == 0 ? " on " : ", ") + start.hosts[i];
  line += format(", {}, {}", count_of(start.parameters, "parameter"), start.device);
  return start.first_step > 0 ? line + format(", from step {}", start.first_step) : line;
}

std::string state_text(const WatchedRun& run) {
  const std::string silence = time_text(run.silent_seconds());
  switch (run.state()) {
    case RunState::ended:
      return run.record().end->status;
    case RunState::gone:
      return format("{} has ended without recording how the run ended", run.process());
    case RunState::silent:
      return format("no event{} for {}", run.process().empty() ? "" : " of " + run.process(), silence);
    default:
      break;
  }
  const std::string state(name_of(run.state()));
  return run.silent_seconds() < shown_silence ? state : format("{}, no event for {}", state, silence);
}

std::vector<std::string> live_lines(const WatchedRun& run, int width, double now) {
  const RunRecord& record = run.record();
  std::string status_line = state_text(run);
  if (record.epoch) {
    for (const auto& [name, value] : record.epoch->validation) status_line += format("  val_{} {:.4g}", name, value);
  }
  if (record.checkpoint) status_line += "  checkpoint of " + checkpoint_text(record, now);
  std::vector<std::string> lines;
  if (record.step) lines.push_back(bar_line(progress_of(record), width));
  lines.push_back(status_line.substr(0, static_cast<std::size_t>(std::max(width, 0))));
  return lines;
}

std::string runs_table(std::span<const WatchedRun* const> runs, double now) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"run"},
                   {"epoch", right},
                   {"step", right},
                   {"loss", right},
                   {"val_loss", right},
                   {"samples/s", right},
                   {"ETA", right},
                   {"checkpoint"},
                   {"state"}});
  for (const WatchedRun* run : runs) {
    const RunRecord& record = run->record();
    const ProgressState state = progress_of(record);
    const std::int64_t epochs = epoch_count(state.total_steps, state.steps_per_epoch);
    table.add({run->directory(), count_of_total(format("{:.4g}", state.epoch), epochs),
               count_of_total(std::to_string(state.step), state.total_steps), loss_text(state.loss),
               record.epoch ? value_text(record.epoch->validation, "loss") : "",
               state.samples_per_second > 0 ? count_text(state.samples_per_second) : "",
               state.seconds_left >= 0 ? time_text(state.seconds_left) : "", checkpoint_text(record, now),
               state_text(*run)});
  }
  return table.text();
}

Json to_json(const WatchedRun& run) {
  const RunRecord& record = run.record();
  const ProgressState state = progress_of(record);
  Json json = {{"run", run.directory()}, {"state", name_of(run.state())}};
  json["status"] = record.end && run.state() == RunState::ended ? Json(record.end->status) : Json();
  json["process"] = run.process();
  json["silent_seconds"] = run.silent_seconds();
  json["ranks"] = record.start ? Json(record.start->ranks) : Json();
  json["device"] = record.start ? Json(record.start->device) : Json();
  json["step"] = state.step;
  json["total_steps"] = state.total_steps;
  json["epoch"] = state.epoch;
  json["epochs"] = epoch_count(state.total_steps, state.steps_per_epoch);
  json["loss"] = known_number(state.loss, record.step || record.end);
  json["learning_rate"] = known_number(state.learning_rate, record.step.has_value());
  json["samples_per_second"] = known_number(state.samples_per_second, state.samples_per_second > 0);
  json["seconds_left"] = known_number(state.seconds_left, state.seconds_left >= 0);
  json["train"] = values_of(record, &EpochEvent::train);
  json["validation"] = values_of(record, &EpochEvent::validation);
  json["checkpoint"] = Json();
  if (record.checkpoint) {
    json["checkpoint"] = {
        {"step", record.checkpoint->step}, {"path", record.checkpoint->path}, {"time", record.checkpoint_time}};
  }
  json["time"] = known_number(record.time, record.time > 0);
  return json;
}

}  // namespace trainctl
