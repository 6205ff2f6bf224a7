// From the times of single steps to figures.
#include "parallel/bench/step_times.h"

#include <algorithm>

#include "core/base/median.h"

namespace trainctl {
namespace {

constexpr std::size_t windows = 5;

double windowed_rate(const std::vector<StepTime>& steps) {
  const std::size_t count = std::min(windows, steps.size());
  std::vector<double> rates;
  for (std::size_t window = 0; window < count; ++window) {
    double seconds = 0, samples = 0;
    for (std::size_t i = window * steps.size() / count; i < (window + 1) * steps.size() / count; ++i) {
      seconds += steps[i].seconds;
      samples += static_cast<double>(steps[i].samples);
    }
    rates.push_back(samples / seconds);
  }
  return median(rates);
}

}  // namespace

StepFigures figures_of(const std::vector<StepTime>& steps) {
  const auto most = std::max_element(steps.begin(), steps.end(),
                                     [](const StepTime& a, const StepTime& b) { return a.samples < b.samples; });
  std::vector<StepTime> full;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(full),
               [most](const StepTime& step) { return step.samples == most->samples; });
  const auto mean = [&full](auto value) {
    double sum = 0;
    for (const StepTime& step : full) sum += value(step);
    return sum / static_cast<double>(full.size());
  };
  std::vector<double> seconds;
  for (const StepTime& step : full) seconds.push_back(step.seconds);

  StepFigures figures;
  figures.samples_per_second = windowed_rate(steps);
  figures.median = median(seconds);
  figures.mean = mean([](const StepTime& step) { return step.seconds; });
  figures.waited = mean([](const StepTime& step) { return step.waited; });
  double work = 0;
  for (double Engine::Parts::*part : {&Engine::Parts::forward, &Engine::Parts::backward, &Engine::Parts::communication,
                                      &Engine::Parts::update, &Engine::Parts::upload}) {
    work += figures.parts.*part = mean([part](const StepTime& step) { return step.parts.*part; });
  }
  figures.idle = std::max(0.0, figures.mean - work);
  const double starved = std::min(figures.waited, figures.idle);
  figures.data = figures.parts.upload + starved;
  figures.other = figures.idle - starved;
  return figures;
}

}  // namespace trainctl
