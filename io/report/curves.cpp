// Selects the curves and collects their points.
#include "io/report/curves.h"

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "io/report/chart.h"

namespace trainctl {
namespace {

constexpr const char* by_epochs = "epochs";

// A value of each step, and the title of its chart.
struct StepValue {
  const char* title;
  std::function<double(const RecordedStep&)> of;
};

const std::vector<StepValue>& step_values() {
  static const std::vector<StepValue> values{
      {"learning rate", [](const RecordedStep& step) { return step.event.learning_rate; }},
      {"gradient norm", [](const RecordedStep& step) { return step.event.gradient_norm; }},
      {"samples per second",
       [](const RecordedStep& step) {
         return step.event.samples_per_second > 0 ? step.event.samples_per_second : NAN;
       }},
      {"wait for data, % of the time", [](const RecordedStep& step) { return 100 * step.event.data_wait_share; }},
      {"wait for other ranks, % of the time",
       [](const RecordedStep& step) { return 100 * step.event.shares.communication; }},
      {"GPU utilization, %", [](const RecordedStep& step) { return 100 * step.gpu_utilization; }},
      {"GPU memory, GB", [](const RecordedStep& step) { return step.gpu_memory_bytes / 1e9; }},
  };
  return values;
}

std::vector<CurvePoint> points_of(const RunHistory& history, const std::function<double(const RecordedStep&)>& value) {
  std::vector<CurvePoint> points;
  for (const RecordedStep& step : history.steps) points.push_back({step.event.epoch, value(step)});
  return points;
}

using Values = std::map<std::string, double> EpochEvent::*;

// Returns the points of a result, for the epochs that have it.
std::vector<CurvePoint> points_of(const RunHistory& history, Values values, const std::string& result) {
  std::vector<CurvePoint> points;
  for (const EpochEvent& epoch : history.epochs) {
    const auto found = (epoch.*values).find(result);
    if (found != (epoch.*values).end()) points.push_back({epoch.epoch, found->second});
  }
  return points;
}

// Returns the names of all results: the loss first, then metrics by name.
std::vector<std::string> results_of(const std::vector<NamedHistory>& runs) {
  std::set<std::string> names;
  for (const NamedHistory& run : runs) {
    for (const EpochEvent& epoch : run.history->epochs) {
      for (const auto* values : {&epoch.train, &epoch.validation}) {
        for (const auto& [name, value] : *values) names.insert(name);
      }
    }
  }
  names.erase("loss");
  std::vector<std::string> results{"loss"};
  results.insert(results.end(), names.begin(), names.end());
  return results;
}

bool is_flat_zero(const std::vector<CurvePoint>& points) {
  for (const CurvePoint& point : points) {
    if (point.y != 0) return false;
  }
  return true;
}

std::string grid(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"grid\">\n" + charts + "</div>\n";
}

}  // namespace

std::string curves_of(const RunHistory& history) {
  std::string charts;
  for (const std::string& result : results_of({{"", &history}})) {
    Chart chart{result, by_epochs, {}};
    if (result == "loss") {
      chart.curves.push_back({"training, by step",
                              points_of(history, [](const RecordedStep& step) { return step.event.loss; }), 5, false});
    }
    chart.curves.push_back({"training", points_of(history, &EpochEvent::train, result), 0, true});
    chart.curves.push_back({"validation", points_of(history, &EpochEvent::validation, result), 1, true});
    charts += to_html(chart);
  }
  for (const StepValue& value : step_values()) {
    std::vector<CurvePoint> points = points_of(history, value.of);
    if (!is_flat_zero(points))
      charts += to_html({value.title, by_epochs, {{value.title, std::move(points), 0, false}}});
  }
  return grid(charts);
}

std::string curves_of(const std::vector<NamedHistory>& runs) {
  std::string charts;
  const auto draw = [&](const std::string& title, bool marked, const auto& points) {
    Chart chart{title, by_epochs, {}};
    bool flat = true;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Curve curve{runs[i].name, points(*runs[i].history), static_cast<int>(i % 8), marked};
      flat = flat && is_flat_zero(curve.points);
      chart.curves.push_back(std::move(curve));
    }
    if (!flat) charts += to_html(chart);
  };
  const std::pair<const char*, Values> splits[] = {{"validation", &EpochEvent::validation},
                                                   {"training", &EpochEvent::train}};
  for (const std::string& result : results_of(runs)) {
    for (const auto& [name, split] : splits) {
      draw(result + ", " + name, true,
           [&, values = split](const RunHistory& history) { return points_of(history, values, result); });
    }
  }
  for (const StepValue& value : step_values()) {
    draw(value.title, false, [&](const RunHistory& history) { return points_of(history, value.of); });
  }
  return grid(charts);
}

}  // namespace trainctl
