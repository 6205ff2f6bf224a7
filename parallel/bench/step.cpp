// Measures steps and formats the results.
#include "parallel/bench/step.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/median.h"
#include "core/base/table.h"
#include "parallel/comm/text.h"
#include "parallel/strategies/programs.h"

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

using NamedPhases = std::vector<std::pair<std::string, double>>;

NamedPhases phases_of(const StepFigures& figures) {
  return {{"forward", figures.phases.forward},
          {"backward", figures.phases.backward},
          {"communication", figures.phases.communication},
          {"update", figures.phases.update},
          {"data", figures.data},
          {"other", figures.other}};
}

// Returns the fraction of the time of forward and backward passes that the ranks spend waiting for other stages and
// exchanging tensors with them. All ranks must call this function.
double measured_bubble(const BenchedRun& run, const Engine::Phases& phases) {
  double seconds[] = {phases.communication, phases.communication + phases.forward + phases.backward};
  run.world.all_reduce({seconds, DType::float64, 2}, Reduction::sum, run.host);
  run.host.synchronize();
  return seconds[1] > 0 ? seconds[0] / seconds[1] : 0;
}

}  // namespace

void run_steps_until(double deadline, const BenchedRun& run, const std::function<void()>& step) {
  do {
    for (int i = 0; i < 8; ++i) step();
  } while (any_rank(run.world.rank() == 0 && seconds_now() < deadline, run.world, run.host));
}

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
  for (double Engine::Phases::*part :
       {&Engine::Phases::forward, &Engine::Phases::backward, &Engine::Phases::communication, &Engine::Phases::update,
        &Engine::Phases::upload}) {
    work += figures.phases.*part = mean([part](const StepTime& step) { return step.phases.*part; });
  }
  figures.idle = std::max(0.0, figures.mean - work);
  const double starved = std::min(figures.waited, figures.idle);
  figures.data = figures.phases.upload + starved;
  figures.other = figures.idle - starved;
  return figures;
}

StepBench bench_step(const BenchedRun& run, bool asynchronous, double seconds) {
  Engine& engine = run.engine;
  StepResult result;
  double last_end = seconds_now();
  std::deque<StepTime> started;  // the steps in progress, with the values that are known so far
  std::int64_t number = 0;
  const auto steps_until = [&](double deadline, std::vector<StepTime>* counted) {
    run_steps_until(deadline, run, [&] {
      const Batch& samples = run.source.next();
      engine.start(run.programs.training(samples.global_count), samples, {1e-6, number++, false});
      started.push_back({0, samples.global_count, samples.waited_seconds, {}});
      if (engine.under_way() < engine.steps_at_once()) return;
      engine.finish(result);
      const double end = seconds_now();
      started.front().seconds = end - last_end;
      started.front().phases = engine.phases();
      if (counted != nullptr) counted->push_back(started.front());
      started.pop_front();
      last_end = end;
    });
  };
  const auto end_steps = [&] {
    while (engine.under_way() > 0) engine.finish(result);
    started.clear();
    last_end = seconds_now();
  };
  // The timing marks for the phases on a device cost time. The rate is measured without them, since training does not
  // use them.
  engine.set_timing(!asynchronous);
  steps_until(seconds_now() + std::min(1.0, seconds / 4), nullptr);
  std::vector<StepTime> steps, marked;
  steps_until(seconds_now() + (asynchronous ? 0.75 : 1.0) * seconds, &steps);
  end_steps();
  if (asynchronous) {
    engine.set_timing(true);
    steps_until(seconds_now(), nullptr);
    steps_until(seconds_now() + 0.25 * seconds, &marked);
    end_steps();
  }
  StepFigures figures = figures_of(asynchronous ? marked : steps);
  const StepFigures unmarked = figures_of(steps);
  figures.median = unmarked.median;
  figures.samples_per_second = unmarked.samples_per_second;
  StepBench bench{figures,     steps.size(), run.world.size(), run.source.batch_size(), engine.memory().total(),
                  asynchronous};
  bench.stages = run.programs.rank().size(MeshAxis::pipeline);
  bench.micro_batches = run.programs.programs().front().micro_batches;
  if (bench.stages > 1) bench.bubble = measured_bubble(run, figures.phases);
  return bench;
}

std::string to_json(const StepBench& bench) {
  const StepFigures& figures = bench.figures;
  Json parts;
  for (const auto& [name, seconds] : phases_of(figures)) parts[name] = seconds;
  Json pipeline;
  if (bench.stages > 1) {
    pipeline = {{"stages", bench.stages},
                {"micro_batches", bench.micro_batches},
                {"bubble", bench.bubble},
                {"ideal_bubble", bench.ideal_bubble()}};
  }
  return json_line({{"ranks", bench.ranks},
                    {"median_seconds", figures.median},
                    {"mean_seconds", figures.mean},
                    {"samples_per_second", figures.samples_per_second},
                    {"steps", bench.steps},
                    {"memory_bytes", bench.memory},
                    {"parts", parts},
                    {"upload_seconds", figures.phases.upload},
                    {"waited_seconds", figures.waited},
                    {"gpu_idle_seconds", bench.own_clock ? Json(figures.idle) : Json()},
                    {"pipeline", pipeline}});
}

std::string to_text(const StepBench& bench) {
  const StepFigures& figures = bench.figures;
  const auto share = [&figures](double seconds) { return format("{:.1f} %", 100 * seconds / figures.mean); };
  TextTable table({{"phase"}, {"mean", TextTable::Align::right}, {"share", TextTable::Align::right}});
  for (const auto& [name, seconds] : phases_of(figures)) table.add({name, seconds_text(seconds), share(seconds)});
  table.add({"step", seconds_text(figures.mean), "100.0 %"});
  std::string text = table.text();
  text += format("{}, {} per step, {:.0f} samples/s ({}, median {})\n", counted(bench.ranks, "rank"),
                 counted(bench.batch, "sample"), figures.samples_per_second, counted(bench.steps, "step"),
                 seconds_text(figures.median));
  if (bench.stages > 1) {
    text += format("bubble {:.1f} % of the passes; ideal: (stages - 1) / (micro-batches + stages - 1) = {:.1f} %\n",
                   100 * bench.bubble, 100 * bench.ideal_bubble());
  }
  if (bench.own_clock) {
    text +=
        format("GPU idle {} per step ({}), without gaps inside a replayed graph, which are not measured; upload {}\n",
               seconds_text(figures.idle), share(figures.idle), seconds_text(figures.phases.upload));
  }
  return text + format("the host waited {} per step for the loader\n", seconds_text(figures.waited));
}

}  // namespace trainctl
