// Writes the page of one run: status, curves, results, memory, ranks, and commands to continue.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/metrics/progress_text.h"
#include "io/report/confusion.h"
#include "io/report/curves.h"
#include "io/report/html.h"
#include "io/report/run_report.h"

namespace trainctl {
namespace {

using namespace html;

std::string tile(std::string_view what, const std::string& value, std::string_view more = "") {
  return format(
      "<div class=\"card tile\"><span class=\"soft\">{}</span><b>{}</b><span class=\"soft\">{}</span></div>\n",
      escaped(what), escaped(value), escaped(more));
}

std::string value_text(double value) { return format("{:.5g}", value); }

// Returns a time as "2026-11-26 04:12:05 UTC".
std::string moment_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[64];
  gmtime_r(&whole, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

// Returns the mean rate of the last 20 recorded steps, without the slower start of a run.
double rate_of(const RunHistory& history) {
  double sum = 0;
  int count = 0;
  for (auto step = history.steps.rbegin(); step != history.steps.rend() && count < 20; ++step) {
    if (step->event.samples_per_second > 0) sum += step->event.samples_per_second, ++count;
  }
  return count == 0 ? 0 : sum / count;
}

std::string status_line(const RunHistory& history) {
  const std::string status = history.status();
  const char* mood = status == "completed" ? "good" : status == "diverged" || status == "failed" ? "bad" : "soft";
  const bool early = history.end && !history.end->reason.empty();
  const std::string meaning = early                   ? "the run is complete; " + history.end->reason
                              : status == "completed" ? "the run is complete"
                              : status == "stopped"  ? "the run was stopped and can be resumed from its last checkpoint"
                              : status == "diverged" ? "the loss was no longer finite"
                              : status == "failed"   ? "the run ended with an error; see the warnings below"
                                                   : "the run is still training, or was killed: there is no end event";
  return format("<p><b class=\"{}\">{}</b> <span class=\"soft\">{}; last event at {}</span></p>\n", mood,
                escaped(status), escaped(meaning), moment_text(history.last_time));
}

std::string tiles(const RunHistory& history) {
  const StartEvent& start = history.starts.back().event;
  std::string all = tile("epochs", format("{:.4g}", history.epochs_done()),
                         format("{} of {}", grouped(history.steps_done()), counted(start.total_steps, "step")));
  if (const auto best = history.best()) {
    all += tile("best " + best->monitor, value_text(best->value), format("at step {}", grouped(best->step)));
  }
  if (!history.steps.empty())
    all += tile("last loss", value_text(history.steps.back().event.loss), "of a training step");
  if (const double rate = rate_of(history); rate > 0) all += tile("samples/s", count_text(rate), "of the last steps");
  const std::size_t starts = history.starts.size();
  all += tile("time", time_text(history.seconds()), starts == 1 ? "of training" : format("in {} starts", starts));
  all += tile("ranks", std::to_string(start.ranks),
              start.hosts.size() == 1 ? "on one host" : format("on {} hosts", start.hosts.size()));
  all += tile("parameters", grouped(start.parameters));
  return "<div class=\"tiles\">\n" + all + "</div>\n";
}

std::string results(const RunHistory& history) {
  if (history.epochs.empty()) return paragraph("No epoch has ended.");
  const EpochEvent& last = history.epochs.back();
  const auto best = history.best();
  const EpochEvent* best_epoch = best ? history.epoch_at(best->step) : nullptr;
  std::vector<std::pair<std::string, const std::map<std::string, double>*>> columns;
  const auto add = [&](const char* which, const EpochEvent& epoch) {
    columns.emplace_back(format("{} epoch ({:.4g}), training", which, epoch.epoch), &epoch.train);
    if (!epoch.validation.empty()) {
      columns.emplace_back(format("{} epoch ({:.4g}), validation", which, epoch.epoch), &epoch.validation);
    }
  };
  if (best_epoch != nullptr) add("best", *best_epoch);
  add("last", last);
  std::vector<Cell> titles{{"result"}};
  std::map<std::string, std::vector<Cell>> rows;
  for (const auto& [title, values] : columns) {
    titles.push_back(number_cell(title));
    for (const auto& [name, value] : *values) rows[name];
  }
  for (auto& [name, row] : rows) {
    row.push_back(text_cell(name));
    for (const auto& [title, values] : columns) {
      const auto found = values->find(name);
      row.push_back(number_cell(found == values->end() ? "" : value_text(found->second)));
    }
  }
  std::vector<std::vector<Cell>> cells;
  for (auto& [name, row] : rows) cells.push_back(std::move(row));
  return table(titles, cells);
}

// Returns the confusion matrix of the best weights if it was computed; otherwise the confusion matrices of the best
// epoch or, if there is no best epoch, of the last epoch.
std::string confusion(const RunReport& run) {
  if (!run.confusion.empty()) {
    return confusion_of(run.confusion, run.class_names) + confused_cards(run.confused, run.class_names);
  }
  if (run.history.epochs.empty()) return "";
  const auto best = run.history.best();
  const EpochEvent* epoch = best ? run.history.epoch_at(best->step) : nullptr;
  if (epoch == nullptr) epoch = &run.history.epochs.back();
  std::string text;
  for (const auto& [name, matrix] : epoch->validation_tables) {
    text += format("<h3>{}, epoch {:.4g}</h3>\n", escaped(name), epoch->epoch) + confusion_of(matrix, run.class_names);
  }
  return text;
}

// Returns the mean time shares of the recorded steps; "" if the record is of an earlier version, which did not write
// them.
std::string step_time(const RunHistory& history) {
  constexpr std::pair<const char*, double StepShares::*> phases[] = {
      {"forward pass", &StepShares::forward},
      {"backward pass", &StepShares::backward},
      {"waiting for other ranks", &StepShares::communication},
      {"update of the weights", &StepShares::update},
      {"copies of batches to the device", &StepShares::upload}};
  const auto mean = [&](const auto& share) {
    double sum = 0;
    for (const RecordedStep& recorded : history.steps) sum += share(recorded.event);
    return sum / static_cast<double>(std::max<std::size_t>(history.steps.size(), 1));
  };
  std::vector<std::vector<Cell>> rows;
  double left = 1;
  const auto add = [&](const char* phase, double share) {
    left -= share;
    if (share >= 0.0005) rows.push_back({text_cell(phase), number_cell(format("{:.1f} %", 100 * share))});
  };
  for (const auto& [name, share] : phases) {
    add(name, mean([share = share](const StepEvent& step) { return step.shares.*share; }));
  }
  if (rows.empty()) return "";
  add("waiting for data", mean([](const StepEvent& step) { return step.data_wait_share; }));
  add("the rest", left);
  return table({{"phase, on rank 0"}, {"share of the time", true}}, rows);
}

std::string memory(const RunHistory& history) {
  const auto& memory = history.starts.back().event.memory;
  std::int64_t sum = 0;
  for (const auto& [region, bytes] : memory) sum += bytes;
  if (sum == 0) return "";
  std::vector<std::vector<Cell>> rows;
  for (const auto& [region, bytes] : memory) {
    if (bytes == 0) continue;
    Cell share = number_cell(format("{:.1f} %", 100.0 * static_cast<double>(bytes) / static_cast<double>(sum)));
    rows.push_back({text_cell(region), number_cell(byte_text(bytes)), std::move(share)});
  }
  rows.push_back({text_cell("all"), number_cell(byte_text(sum)), text_cell("")});
  return table({{"region of rank 0"}, {"bytes", true}, {"share", true}}, rows);
}

std::string starts(const RunHistory& history) {
  std::vector<std::vector<Cell>> rows;
  for (const RecordedStart& recorded : history.starts) {
    const StartEvent& start = recorded.event;
    std::string hosts, mesh;
    for (const std::string& host : start.hosts) hosts += (hosts.empty() ? "" : ", ") + host;
    for (const int size : start.mesh) mesh += (mesh.empty() ? "" : " x ") + std::to_string(size);
    rows.push_back({text_cell(moment_text(recorded.time)), number_cell(grouped(start.first_step)),
                    number_cell(std::to_string(start.ranks)), text_cell(mesh), text_cell(hosts),
                    text_cell(start.device), text_cell(start.version),
                    text_cell(start.resumed_from.empty() ? "new run" : start.resumed_from)});
  }
  return table({{"time"},
                {"from step", true},
                {"ranks", true},
                {"data x pipeline x tensor"},
                {"hosts"},
                {"device"},
                {"version"},
                {"resumed from"}},
               rows);
}

std::string checkpoints(const RunHistory& history) {
  if (history.checkpoints.empty()) return "";
  double seconds = 0;
  for (const CheckpointEvent& checkpoint : history.checkpoints) seconds += checkpoint.seconds;
  const CheckpointEvent& last = history.checkpoints.back();
  return paragraph(format("{} were written, {} each, in {} on average. The last is {} (step {}).",
                          history.checkpoints.size(), byte_text(last.bytes),
                          seconds_text(seconds / static_cast<double>(history.checkpoints.size())), last.path,
                          grouped(last.step)));
}

std::string warnings(const RunReport& run) {
  if (run.warnings.empty()) return "";
  std::string lines;
  for (const std::string& line : run.warnings) lines += escaped(line) + "\n";
  return "<pre>" + lines + "</pre>\n";
}

std::string next_steps(const RunReport& run) {
  const std::string config = run.directory + "/config.yaml";
  std::string lines;
  if (run.history.status() != "completed") {
    lines += format("trainctl run {} --run-dir {}    # resumes from the last checkpoint\n", config, run.directory);
  }
  lines += format("trainctl eval {} --run {}\ntrainctl predict {} INPUT...\ntrainctl inspect {}\n", config,
                  run.directory, run.directory, run.directory);
  return "<pre>" + escaped(lines) + "</pre>\n";
}

}  // namespace

std::string run_page(const RunReport& run) {
  const RunHistory& history = run.history;
  std::string body = format("<h1>{}</h1>\n<p class=\"soft\">{}</p>\n", escaped(run.name()), escaped(run.directory));
  body += status_line(history) + tiles(history);
  body += section("Curves", curves_of(history));
  body += section("Results", results(history));
  body += section("Confusion", confusion(run));
  body += section("Where a step's time went", step_time(history));
  body += section("Memory", memory(history));
  body += section("Starts, ranks and hosts", starts(history));
  body += section("Checkpoints", checkpoints(history));
  body += section("Warnings", warnings(run));
  body += section("Next commands", next_steps(run));
  body += section("Config", "<details><summary>config.yaml, as it was resolved</summary><pre>" +
                                escaped(run.config_text) + "</pre></details>\n");
  return page(run.name() + " - trainctl", body);
}

}  // namespace trainctl
