// trainctl check: every error of a config at once, then its layers and the exact memory of a rank. Starts nothing.
#include <CLI/CLI.hpp>

#include "cmd/device.h"
#include "cmd/job.h"
#include "cmd/kernel_cache.h"
#include "cmd/launching.h"
#include "cmd/subcommands.h"
#include "cmd/table.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "core/exec/memory_plan.h"
#include "core/program/dump.h"
#include "io/loader/data.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

struct CheckOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string dump;
};

// What a config comes to, on the last of so many ranks: none has more samples.
struct Checked {
  int ranks = 1;
  std::int64_t batch = 0;
  std::vector<Program> programs;
  MemoryPlan memory;
  double flops_per_sample = 0;  // forward
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
};

// The data as it is; where it is not at hand, as far as the config states it, and one full batch stands for the
// samples.
DataInfo data_info(const RunSpec& spec, std::int64_t batch) {
  try {
    return Data(spec.data, spec.seed, takes_values(spec.train.loss)).info();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
  }
  DataInfo info = describe(spec.data, spec.seed, takes_values(spec.train.loss));
  if (info.training_samples == 0) info.training_samples = batch;
  if (info.validation_samples == 0 && (spec.data.validation || spec.data.test)) info.validation_samples = batch;
  return info;
}

Checked check(const RunSpec& spec, const LaunchFlags& flags) {
  Checked checked;
  const LaunchPlan plan = plan_launch(launch_request(spec.cluster, flags));
  checked.ranks = plan.ranks;
  checked.batch = spec.train.global_batch(plan.ranks);
  const DataInfo info = data_info(spec, checked.batch);
  const auto backend = make_backend(spec, plan.threads, 0);
  KernelChoices choices = load_kernel_choices(backend->fingerprint());
  const KernelChoices known = choices;
  for (const std::string& warning : info.warnings) log::warning(warning);
  const RunPrograms programs = build_programs(spec, info, strategy_for(spec, plan.ranks, *backend),
                                              batch_sizes(spec, info, plan.ranks), {plan.ranks - 1, plan.ranks});
  checked.memory = plan_memory(lower_all(programs.programs(), *backend, choices), *backend);
  if (!(choices == known)) keep_kernel_choices(backend->fingerprint(), choices);
  checked.programs = programs.programs();
  for (const Program::LayerLine& layer : checked.programs.front().layers) {
    checked.flops_per_sample += layer.flops;
    checked.parameters += layer.parameters;
    checked.trainable += layer.trainable;
  }
  return checked;
}

void print_json(const Checked& checked) {
  Json layers = Json::array();
  for (const Program::LayerLine& layer : checked.programs.front().layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"output", layer.output.sizes()},
                      {"parameters", layer.parameters}});
  }
  Json memory;
  for (int region = 0; region < region_count; ++region) {
    memory[std::string(name_of(static_cast<Region>(region)))] = checked.memory.bytes[static_cast<std::size_t>(region)];
  }
  const Json json = {{"ok", true},
                     {"errors", Json::array()},
                     {"ranks", checked.ranks},
                     {"parameters", checked.parameters},
                     {"trainable_parameters", checked.trainable},
                     {"flops_per_sample", checked.flops_per_sample},
                     {"arena_bytes", checked.memory.of(Region::slot)},
                     {"memory_bytes", memory},
                     {"layers", layers}};
  answer(json_line(json));
}

void print_text(const RunSpec& spec, const Checked& checked) {
  using Align = Table::Align;
  Table layers({{"layer"},
                {"kind"},
                {"output"},
                {"parameters", Align::right},
                {"FLOPs/sample", Align::right},
                {"ops", Align::right}});
  for (const Program::LayerLine& layer : checked.programs.front().layers) {
    layers.add({layer.name, layer.kind, to_string(layer.output), grouped(layer.parameters), flops_text(layer.flops),
                std::to_string(layer.ops)});
  }
  std::string text = layers.text();
  text += format("\n{} parameters, {} of them train; {} a sample forward\n", grouped(checked.parameters),
                 grouped(checked.trainable), flops_text(checked.flops_per_sample));
  text += format("{} ranks, {} samples a step, {}\n\n", checked.ranks, checked.batch, name_of(spec.train.compute()));
  Table memory({{"memory of a rank"}, {"bytes", Align::right}, {""}});
  for (int region = 0; region < region_count; ++region) {
    const std::int64_t bytes = checked.memory.bytes[static_cast<std::size_t>(region)];
    memory.add(
        {std::string(name_of(static_cast<Region>(region))), grouped(bytes), bytes_text(static_cast<double>(bytes))});
  }
  memory.add({"total", grouped(checked.memory.total()), bytes_text(static_cast<double>(checked.memory.total()))});
  answer(text + memory.text());
}

int run_check(CheckOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Checked checked = check(spec, options.launch);
  if (options.common.json) {
    print_json(checked);
  } else if (options.dump == "program") {
    std::string text;
    for (const Program& program : checked.programs) text += dump(program) + "\n";
    answer(text);
  } else if (!options.common.quiet) {
    print_text(spec, checked);
  }
  return 0;
}

}  // namespace

Subcommand check_subcommand() {
  return {"check", "Checks a config and shows its layers, parameters and memory, without starting anything",
          "trainctl check configs/mnist-cnn.yaml --ranks 4 --set train.batch_size=256", [](CLI::App& app) {
            auto options = std::make_shared<CheckOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--dump", options->dump, "Shows what the last rank executes, op by op")
                ->check(CLI::IsMember({"program"}));
            return [options] { return run_check(*options); };
          }};
}

}  // namespace trainctl
