// Measures a loader and prints the results.
#include "io/loader/bench.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "io/loader/batches/batch_plan.h"
#include "io/loader/batches/buffer.h"
#include "io/loader/batches/loader.h"
#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

struct StageText {
  const char* name;
  const char* meaning;
  const char* remedy;
};
constexpr std::array<StageText, stage_count> stage_texts{{
    {"read", "read", "a faster disk, `cache`, or files with many samples (webdataset, tfrecord)"},
    {"decode", "decode", "more cores for workers, `cache`, or smaller images"},
    {"transform", "resize and crop", "`cache`, or samples that are stored in their final size"},
    {"cache", "cache", "`cache: memory`, or a faster disk"},
    {"augment", "augment, scale", "more cores for workers, or fewer augmentations"},
    {"target", "targets", "more cores for workers"},
}};

// Measures the seconds per sample of each stage, on this thread.
std::array<double, stage_count> measure_stages(const DataSplit& split, const LoaderOptions& options, double seconds) {
  StageClock clock;
  DataSplit::Scratch scratch = split.scratch(options.targets);
  std::vector<TensorType> inputs, targets;
  for (std::size_t i = 0; i < split.inputs(); ++i) inputs.push_back(split.input_type(i));
  for (std::size_t i = 0; i < split.targets(); ++i) targets.push_back(split.target_type(i, options.targets[i]));
  const BufferPlan plan = plan_buffers(inputs, targets, split.weight_count(), 1, {}, false, {});
  BatchBuffer buffer(plan, 1, nullptr);
  DataSplit::Row row;
  for (const Memory& memory : buffer.inputs) row.inputs.push_back(memory.get());
  for (const Memory& memory : buffer.targets) row.targets.push_back(memory.get());
  row.weights = buffer.weights.data();

  const EpochOrder order(split.size(), options.start.seed, options.start.epoch, options.training && options.shuffle);
  std::int64_t samples = 0;
  // The first samples warm up the buffers of the thread.
  const std::int64_t warm_up = std::min<std::int64_t>(16, split.size() / 2);
  for (const double deadline = seconds_now() + seconds; samples <= warm_up || seconds_now() < deadline; ++samples) {
    if (samples == warm_up) scratch.clock = &clock;
    split.read(split.subset()[order[samples % split.size()]], options.training, options.start.epoch, scratch, row,
               options.targets);
  }
  std::array<double, stage_count> found{};
  for (std::size_t s = 0; s < stage_count; ++s) {
    found[s] = clock.seconds(static_cast<Stage>(s)) / static_cast<double>(samples - warm_up);
  }
  return found;
}

// Measures the samples/s of a loader during the second half of `seconds`; the first half warms it up.
double measure_rate(const std::shared_ptr<const DataSplit>& split, const LoaderOptions& options, double seconds) {
  const auto source = make_loader(split, options);
  const auto read_until = [&](double deadline) {
    std::int64_t samples = 0;
    do {
      samples += source->next().count;
    } while (seconds_now() < deadline);
    return samples;
  };
  read_until(seconds_now() + seconds / 2);
  const double start = seconds_now();
  const std::int64_t samples = read_until(start + seconds / 2);
  return static_cast<double>(samples) / (seconds_now() - start);
}

double sum_of(const std::array<double, stage_count>& stages) {
  return std::accumulate(stages.begin(), stages.end(), 0.0);
}

}  // namespace

double DataBench::rest() const { return std::max(0.0, ranks / worker - sum_of(stages)); }

std::string DataBench::bound() const {
  if (step > 0 && loader >= step) return "step";
  const auto longest = std::max_element(stages.begin(), stages.end());
  return rest() > *longest ? "batch" : stage_texts[static_cast<std::size_t>(longest - stages.begin())].name;
}

DataBench bench_data(const std::shared_ptr<const DataSplit>& split, const LoaderOptions& options, double seconds,
                     const std::function<void()>& together) {
  DataBench bench;
  bench.workers = std::max(1, options.workers);
  together();
  bench.stages = measure_stages(*split, options, seconds / 4);
  LoaderOptions one = options;
  one.workers = 1;
  together();
  bench.worker = measure_rate(split, one, seconds / 4);
  together();
  bench.loader = measure_rate(split, options, seconds / 2);
  return bench;
}

std::string to_json(const DataBench& bench) {
  Json stages;
  for (std::size_t s = 0; s < stage_count; ++s) stages[stage_texts[s].name] = bench.stages[s];
  stages["batch"] = bench.rest();
  return json_line({{"ranks", bench.ranks},
                    {"seconds_of_a_sample", stages},
                    {"worker_samples_per_second", bench.worker},
                    {"workers", bench.workers},
                    {"loader_samples_per_second", bench.loader},
                    {"step_samples_per_second", bench.step},
                    {"bound", bench.bound()}});
}

std::string to_text(const DataBench& bench) {
  using Align = TextTable::Align;
  const auto rate = [](double samples) { return grouped(static_cast<long long>(samples)); };
  const double total = sum_of(bench.stages) + bench.rest();
  TextTable table({{"stage"}, {"a sample", Align::right}, {"share", Align::right}, {"samples/s", Align::right}});
  const auto add = [&](const char* stage, double seconds) {
    if (seconds < 5e-4 * total) return;  // the data does not have this stage
    table.add({stage, seconds_text(seconds), format("{:.1f} %", 100 * seconds / total), rate(1 / seconds)});
  };
  for (std::size_t s = 0; s < stage_count; ++s) add(stage_texts[s].meaning, bench.stages[s]);
  add("order, batches", bench.rest());
  const std::string ranks = bench.ranks > 1 ? format(", {} ranks", bench.ranks) : "";
  table.add({"one worker" + ranks, seconds_text(bench.ranks / bench.worker), "", rate(bench.worker)});
  table.add({format("loader, {} worker{}{}", bench.workers, bench.workers > 1 ? "s at most" : "", ranks),
             seconds_text(bench.ranks / bench.loader), "", rate(bench.loader)});
  table.add({"training step" + ranks, seconds_text(bench.ranks / bench.step), "", rate(bench.step)});
  std::string text = table.text();
  const std::string bound = bench.bound();
  if (bound == "step") {
    return text +
           format("the training step is the bottleneck: the loader delivers {:.1f} times the samples that it needs\n",
                  bench.loader / bench.step);
  }
  text += format("{} is the bottleneck: the loader delivers {:.0f} % of the samples that the training step needs",
                 bound, 100 * bench.loader / bench.step);
  for (const StageText& stage : stage_texts) {
    if (bound == stage.name) text += format("; a remedy is {}", stage.remedy);
  }
  return text + "\n";
}

}  // namespace trainctl
