// trainctl bench step: the median step of a config, and its parts.
#include <deque>

#include "cmd/bench.h"
#include "cmd/job.h"
#include "cmd/table.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/median.h"
#include "io/loader/data.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

// What is measured of every step, in seconds.
struct StepTimes {
  std::vector<double> total, forward, backward, communication, update, data;

  void add(double seconds, const Engine::Parts& parts, double waited) {
    total.push_back(seconds);
    forward.push_back(parts.forward);
    backward.push_back(parts.backward);
    communication.push_back(parts.communication);
    update.push_back(parts.update);
    data.push_back(waited + parts.upload);
  }
};

void print(const StepTimes& times, int ranks, std::int64_t batch, std::int64_t memory, bool as_json, std::string& out) {
  const double step = median(times.total);
  const std::vector<std::pair<std::string, double>> named = {{"forward", median(times.forward)},
                                                             {"backward", median(times.backward)},
                                                             {"communication", median(times.communication)},
                                                             {"update", median(times.update)},
                                                             {"data", median(times.data)}};
  double other = step;
  for (const auto& part : named) other -= part.second;
  if (as_json) {
    Json parts;
    for (const auto& [name, seconds] : named) parts[name] = seconds;
    parts["other"] = other;
    out = Json{{"ranks", ranks},
               {"median_seconds", step},
               {"samples_per_second", static_cast<double>(batch) / step},
               {"steps", times.total.size()},
               {"memory_bytes", memory},
               {"parts", parts}}
              .dump() +
          "\n";
    return;
  }
  Table table({{"part"}, {"median", Table::Align::right}, {"share", Table::Align::right}});
  for (const auto& [name, seconds] : named)
    table.add({name, seconds_text(seconds), format("{:.1f} %", 100 * seconds / step)});
  table.add({"other", seconds_text(other), format("{:.1f} %", 100 * other / step)});
  table.add({"step", seconds_text(step), "100.0 %"});
  out = table.text() + format("{} ranks, {} samples a step, {:.0f} samples/s (median of {} steps)\n", ranks, batch,
                              static_cast<double>(batch) / step, times.total.size());
}

}  // namespace

int bench_step(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const Data data(spec.data, spec.seed);
  Job job(spec, data.info(), device, context.world, {}, "");
  initialize_engine(spec, job);
  const std::int64_t batch = spec.train.global_batch(context.world.size());
  const auto source = data.training(batch, job.share(), {spec.seed, 0, 0}, context.threads);

  Engine& engine = job.engine();
  engine.set_timing(true);
  StepTimes times;
  StepResult result;
  double last_end = seconds_now();
  std::deque<std::pair<bool, double>> started;  // of steps under way: whether of a full batch, and the wait for it
  const auto step = [&](std::int64_t number, bool counted) {
    const Batch& samples = source->next();
    engine.start(job.programs().training(samples.count), samples, {1e-6, number, false});
    started.emplace_back(samples.global_count == std::min(batch, data.info().training_samples), samples.waited_seconds);
    if (engine.under_way() < engine.steps_at_once()) return;
    engine.finish(result);
    const double end = seconds_now();
    if (counted && started.front().first) times.add(end - last_end, engine.parts(), started.front().second);
    started.pop_front();
    last_end = end;
  };
  std::int64_t number = 0;
  const double warm_until = seconds_now() + std::min(1.0, request.seconds / 4);
  // All ranks take the same number of steps: rank 0's clock decides, every 8 steps.
  const auto until = [&](double deadline, bool counted) {
    do {
      for (int i = 0; i < 8; ++i) step(number++, counted);
    } while (
        any_rank(context.world.rank() == 0 && seconds_now() < deadline, context.world.communicator(), device.host));
  };
  until(warm_until, false);
  until(seconds_now() + request.seconds, true);
  while (engine.under_way() > 0) engine.finish(result);
  if (context.world.rank() != 0) return 0;
  std::string out;
  print(times, context.world.size(), batch, engine.memory().total(), request.json, out);
  std::fputs(out.c_str(), stdout);
  return 0;
}

}  // namespace trainctl
