// Writes the page that compares runs: a table of the runs, the differences of their configs, and charts with the curves
// of all runs.
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/metrics/progress_text.h"
#include "io/report/curves.h"
#include "io/report/html.h"
#include "io/report/run_report.h"

namespace trainctl {
namespace {

using namespace html;

// A cell with the run's name and its colour in the charts.
Cell run_cell(const RunReport& run, std::size_t number) {
  return {format("<span class=\"legend\"><i style=\"background: var(--c{})\"></i></span>{}", number % 8,
                 escaped(run.name()))};
}

std::string table_of_runs(const std::vector<RunReport>& runs) {
  std::vector<std::vector<Cell>> rows;
  for (const std::size_t i : best_first(runs)) {
    const RunHistory& history = runs[i].history;
    const auto best = history.best();
    const StartEvent& start = history.starts.back().event;
    const double rate = history.steps.empty() ? 0 : history.steps.back().event.samples_per_second;
    rows.push_back({run_cell(runs[i], i), text_cell(history.status()), text_cell(best ? best->monitor : ""),
                    number_cell(best ? format("{:.5g}", best->value) : ""),
                    number_cell(best ? grouped(best->step) : ""), number_cell(grouped(history.steps_done())),
                    number_cell(time_text(history.seconds())), number_cell(rate > 0 ? count_text(rate) : ""),
                    number_cell(std::to_string(start.ranks)), number_cell(grouped(start.parameters))});
  }
  return table({{"run"},
                {"status"},
                {"monitors"},
                {"best", true},
                {"at step", true},
                {"steps", true},
                {"time", true},
                {"samples/s", true},
                {"ranks", true},
                {"parameters", true}},
               rows);
}

std::string table_of_differences(const std::vector<RunReport>& runs) {
  std::vector<Cell> titles{{"key"}};
  for (std::size_t i = 0; i < runs.size(); ++i) titles.push_back(run_cell(runs[i], i));
  std::vector<std::vector<Cell>> rows;
  for (const ConfigDifference& difference : config_differences(runs)) {
    std::vector<Cell> row{text_cell(difference.key)};
    for (const std::string& value : difference.values) row.push_back(text_cell(value));
    rows.push_back(std::move(row));
  }
  return rows.empty() ? paragraph("The configs are the same.") : table(titles, rows);
}

}  // namespace

std::string comparison_page(const std::vector<RunReport>& runs) {
  std::vector<NamedHistory> histories;
  for (const RunReport& run : runs) histories.push_back({run.name(), &run.history});
  std::string body = format("<h1>{} runs compared</h1>\n", runs.size());
  body += section("Runs, the best first", table_of_runs(runs));
  body += section("Differences of their configs", table_of_differences(runs));
  body += section("Curves", curves_of(histories));
  return page("runs compared - trainctl", body);
}

}  // namespace trainctl
