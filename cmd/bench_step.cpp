// trainctl bench step: the steps of a config, their parts and their rate.
#include <deque>

#include "cmd/bench.h"
#include "cmd/job.h"
#include "cmd/step_times.h"
#include "cmd/table.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "io/loader/data.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

struct Measured {
  StepFigures figures;
  std::size_t steps = 0;
  int ranks = 1;
  std::int64_t batch = 0;
  std::int64_t memory = 0;
  bool own_clock = false;  // the device's parts are in its own time, beside the host's
};

using NamedParts = std::vector<std::pair<std::string, double>>;

NamedParts parts_of(const StepFigures& figures) {
  return {{"forward", figures.parts.forward},
          {"backward", figures.parts.backward},
          {"communication", figures.parts.communication},
          {"update", figures.parts.update},
          {"data", figures.data},
          {"other", figures.other}};
}

std::string to_json(const Measured& measured) {
  const StepFigures& figures = measured.figures;
  Json parts;
  for (const auto& [name, seconds] : parts_of(figures)) parts[name] = seconds;
  return json_line({{"ranks", measured.ranks},
                    {"median_seconds", figures.median},
                    {"mean_seconds", figures.mean},
                    {"samples_per_second", figures.samples_per_second},
                    {"steps", measured.steps},
                    {"memory_bytes", measured.memory},
                    {"parts", parts},
                    {"upload_seconds", figures.parts.upload},
                    {"waited_seconds", figures.waited},
                    {"gpu_idle_seconds", measured.own_clock ? Json(figures.idle) : Json()}});
}

std::string to_text(const Measured& measured) {
  const StepFigures& figures = measured.figures;
  const auto share = [&figures](double seconds) { return format("{:.1f} %", 100 * seconds / figures.mean); };
  Table table({{"part"}, {"mean", Table::Align::right}, {"share", Table::Align::right}});
  for (const auto& [name, seconds] : parts_of(figures)) table.add({name, seconds_text(seconds), share(seconds)});
  table.add({"step", seconds_text(figures.mean), "100.0 %"});
  std::string text = table.text();
  text +=
      format("{} ranks, {} samples a step, {:.0f} samples/s ({} steps, of which the median took {})\n", measured.ranks,
             measured.batch, figures.samples_per_second, measured.steps, seconds_text(figures.median));
  if (measured.own_clock) {
    text += format("GPU idle {} a step ({}), gaps inside a replayed graph not seen; upload {}\n",
                   seconds_text(figures.idle), share(figures.idle), seconds_text(figures.parts.upload));
  }
  return text + format("the host waited {} a step for the loader\n", seconds_text(figures.waited));
}

}  // namespace

int bench_step(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const Data data(spec.data, spec.seed, data_use(spec));
  Job job(spec, data.info(), device, context.world, {}, "");
  initialize_engine(spec, job);
  const std::int64_t batch = spec.train.global_batch(context.world.size());
  const auto source =
      data.training(batch, job.rank(), {spec.seed, 0, 0}, context.threads, job.target_form(), job.batch_memory());

  Engine& engine = job.engine();
  const bool own_clock = device.backend->asynchronous();
  StepResult result;
  double last_end = seconds_now();
  std::deque<StepTime> started;  // of the steps under way, as far as it is known
  const auto step = [&](std::int64_t number, std::vector<StepTime>* counted) {
    const Batch& samples = source->next();
    engine.start(job.programs().training(samples.count), samples, {1e-6, number, false});
    started.push_back({0, samples.global_count, samples.waited_seconds, {}});
    if (engine.under_way() < engine.steps_at_once()) return;
    engine.finish(result);
    const double end = seconds_now();
    started.front().seconds = end - last_end;
    started.front().parts = engine.parts();
    if (counted != nullptr) counted->push_back(started.front());
    started.pop_front();
    last_end = end;
  };
  std::int64_t number = 0;
  const double warm_until = seconds_now() + std::min(1.0, request.seconds / 4);
  // All ranks take the same number of steps: rank 0's clock decides, every 8 steps.
  const auto until = [&](double deadline, std::vector<StepTime>* counted) {
    do {
      for (int i = 0; i < 8; ++i) step(number++, counted);
    } while (
        any_rank(context.world.rank() == 0 && seconds_now() < deadline, context.world.communicator(), device.host));
  };
  const auto end_steps = [&] {
    while (engine.under_way() > 0) engine.finish(result);
    started.clear();
    last_end = seconds_now();
  };
  // The marks that a GPU's parts are taken from cost time, which the rate is free of, as training is.
  engine.set_timing(!own_clock);
  until(warm_until, nullptr);
  std::vector<StepTime> steps, marked;
  until(seconds_now() + (own_clock ? 0.75 : 1.0) * request.seconds, &steps);
  end_steps();
  if (own_clock) {
    engine.set_timing(true);
    until(seconds_now(), nullptr);
    until(seconds_now() + 0.25 * request.seconds, &marked);
    end_steps();
  }
  if (context.world.rank() != 0) return 0;
  StepFigures figures = figures_of(own_clock ? marked : steps);
  const StepFigures unmarked = figures_of(steps);
  figures.median = unmarked.median;
  figures.samples_per_second = unmarked.samples_per_second;
  const Measured measured{figures, steps.size(), context.world.size(), batch, engine.memory().total(), own_clock};
  answer(request.json ? to_json(measured) : to_text(measured));
  return 0;
}

}  // namespace trainctl
