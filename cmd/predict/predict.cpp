// trainctl predict: what a trained network says of images, arrays or tables.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>

#include <unistd.h>

#include "cmd/predict/meaning.h"
#include "cmd/predict/predictor.h"
#include "cmd/predict/writer.h"
#include "cmd/run/trained_network.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/load.h"
#include "io/loader/prediction_data.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string model;       // run directory, checkpoint or config
  TrainedNetwork network;  // what it names
  std::vector<std::string> inputs;
  std::string out;     // empty: standard output
  std::string format;  // empty: as the file's name ends
};

PredictionFormat format_of(const PredictOptions& options, const Situation& situation) {
  if (options.common.json && !(options.out.empty() && options.format.empty())) {
    throw Error(ErrorKind::config,
                "--json is one document on standard output, and goes with neither --out nor --format",
                "leave it out; --format jsonl writes an object a line");
  }
  if (options.common.json) return PredictionFormat::json;
  if (!options.format.empty()) return *format_named(options.format);
  if (options.out.empty()) {
    const bool is_read = !situation.is_rank() && isatty(STDOUT_FILENO) != 0;  // mpirun gives its ranks a terminal
    return is_read ? PredictionFormat::table : PredictionFormat::csv;
  }
  const std::string ending = fs::path(options.out).extension().string();
  const auto found = format_named(ending.empty() ? "" : ending.substr(1));
  if (found) return *found;
  throw Error(ErrorKind::config, format("--out {}: the name ends in none of .csv, .jsonl and .npy", options.out),
              "name the file so, or state --format");
}

// Where predictions go, piece by piece; false where nobody takes them any more.
using Put = std::function<bool(const std::string& text)>;

// What rank 0 knows of the checkpoint, and what all ranks must know of it.
struct Trained {
  std::optional<LoadedCheckpoint> checkpoint;  // on rank 0
  KeptInput input;
};

Trained load_trained(const PredictOptions& options, RankContext& context, Stream& host) {
  Trained trained;
  std::string kept;
  if (context.world.rank() == 0) {
    trained.checkpoint = load_named_checkpoint(options.network.checkpoint());
    log::info(format("predicts by {} (step {})", trained.checkpoint->path, trained.checkpoint->manifest.step));
    const auto& facts = trained.checkpoint->manifest.facts;
    if (const auto found = facts.find(kept_input_fact); found != facts.end()) kept = found->second;
  }
  kept = broadcast_text(kept, 0, context.world.communicator(), host);
  if (kept.empty()) {
    throw CollectiveError(
        ErrorKind::data,
        format("{} does not say how its samples were read: an older trainctl wrote it", options.network.path),
        "train on from it for a step, which writes a checkpoint that does");
  }
  trained.input = read_kept_input(kept);
  return trained;
}

// Writes the answers to standard output or into the file.
void write_answers(const PredictOptions& options, std::int64_t samples,
                   const std::function<void(const Put& put)>& write) {
  if (options.out.empty()) return write(write_output);
  write_file(options.out, 0, [&](OutputFile& file) {
    write([&](const std::string& text) {
      file.write(text.data(), std::ssize(text));
      return true;
    });
  });
  log::info(trainctl::format("{}: {} samples", options.out, samples));
}

int predict_by_checkpoint(const RunSpec& spec, const PredictOptions& options, PredictionFormat format,
                          RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  const Trained trained = load_trained(options, context, device.host);
  const PredictionData data(spec.data, trained.input, data_use(spec).inputs[0], options.inputs);
  const Sharer rank(MeshRank(Mesh{world.size(), 1, 1}, world.rank()));
  Backend& backend = *device.backend;
  const std::int64_t batch = std::min(spec.train.global_batch(world.size()), data.samples());
  const auto source =
      data.batches(batch, rank, context.threads, [&](std::int64_t bytes) { return backend.allocate_host(bytes); });
  RestoreSource stored;
  if (trained.checkpoint) stored = {&trained.checkpoint->snapshot, trained.checkpoint->path, options.common.config};
  Predictor predictor(spec, data.input(), *source, rank, device, stored, world);
  if (world.rank() != 0) {
    predictor.run(*source, {});
    return 0;
  }
  const std::int64_t outputs = predictor.outputs();
  const OutputMeaning meaning = meaning_of(spec, outputs, read_class_names(trained.checkpoint->manifest.facts));
  const auto writer = make_writer(format, meaning, data.samples(), trained.checkpoint->path);
  write_answers(options, data.samples(), [&](const Put& put) {
    bool taken = put(writer->head());
    predictor.run(*source, [&](const Predictions& found) {
      std::string text;
      for (std::int64_t i = 0; i < found.count; ++i) {
        const std::span<const float> row(found.values.data() + i * outputs, static_cast<std::size_t>(outputs));
        const bool read = found.weights[static_cast<std::size_t>(i)] > 0;
        text += writer->sample(data.name_of(found.first + i), read ? meaning.values_of(row) : std::vector<float>());
      }
      taken = taken && put(text);
      return taken;
    });
    if (taken) put(writer->tail());
  });
  return 0;
}

int run_predict(PredictOptions& options) {
  options.network = find_trained(options.model);
  options.common.config = options.network.run + "/config.yaml";
  RunSpec spec = load_run_spec(options.common, options.launch);
  if (input_names(spec.model).size() > 1 || output_names(spec.model).size() > 1) {
    throw Error(ErrorKind::config, "predict is for networks of one input and one output");
  }
  const Situation situation = find_situation(Variables::of_process());
  // One rank on this host, unless the command line asks for more: most questions are short.
  if (!situation.is_rank() && options.launch.ranks.empty() && options.launch.hosts.empty()) {
    spec.cluster.ranks = {1};
    spec.cluster.hosts.clear();
    spec.cluster.hostfile = {};
  }
  spec.strategy = for_one_rank(spec.strategy);
  const PredictionFormat format = format_of(options, situation);
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, false}))
    return *code;
  const RankCommand command = rank_command("predict", Value<RunSpec>::write(spec), spec.cluster, options.launch);
  return run_as_rank(situation, options.common.json, command,
                     [&](RankContext& context) { return predict_by_checkpoint(spec, options, format, context); });
}

}  // namespace

Subcommand predict_subcommand() {
  return {"predict", "Asks a trained network about images, arrays or tables",
          "trainctl predict runs/flowers photo.jpg\n  trainctl predict runs/flowers photos --out photos.csv",
          [](CLI::App& app) {
            auto options = std::make_shared<PredictOptions>();
            app.add_option("RUN", options->model,
                           "A run directory or a config, for its newest run, and the best checkpoint there; or a "
                           "checkpoint's folder")
                ->required()
                ->type_name("");
            app.add_option("INPUT", options->inputs,
                           "Images and folders of them; or an array (.npy, .npz, IDX); or, of a network trained on a "
                           "table, tables with its columns")
                ->required()
                ->type_name("");
            app.add_option("-o,--out", options->out, "A file ending in .csv, .jsonl or .npy; default: standard output")
                ->type_name("FILE");
            app.add_option("--format", options->format,
                           "table: the five likeliest classes, for people; csv; jsonl: an object a line; npy: an "
                           "array. Default: as "
                           "FILE ends; without it table where standard output is a terminal, else csv")
                ->check(CLI::IsMember({"table", "csv", "jsonl", "npy"}));
            add_launch_options(app, options->launch);
            add_output_options(app, options->common);
            return [options] { return run_predict(*options); };
          }};
}

}  // namespace trainctl
