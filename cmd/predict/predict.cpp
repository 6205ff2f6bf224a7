// trainctl predict: computes the predictions of a trained network for images, sounds, volumes, arrays, tables or texts,
// and continues texts.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>

#include <unistd.h>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/predict/generate.h"
#include "cmd/subcommands.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/load.h"
#include "io/loader/prediction_data.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/comm/text.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/device.h"
#include "run/job/trained_network.h"
#include "run/prediction/meaning.h"
#include "run/prediction/pictures.h"
#include "run/prediction/predictor.h"
#include "run/prediction/writer.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string model;       // run directory, checkpoint or config
  TrainedNetwork network;  // the network that `model` names
  std::vector<std::string> inputs;
  std::string out;     // a file, or a folder for PNG files; empty: standard output
  std::string format;  // empty: by the file's ending
  GenerateOptions generate;

  // Whether `out` names a folder: one that exists, or a name without a file's ending.
  bool writes_pictures() const {
    if (out.empty()) return false;
    return out.ends_with('/') || is_folder(out, {ErrorKind::config}) ||
           (format.empty() && fs::path(out).extension().empty());
  }
  bool writes_file() const { return !out.empty() && !writes_pictures(); }
};

PredictionFormat format_of(const PredictOptions& options, const Situation& situation) {
  if (options.common.json && (options.writes_file() || !options.format.empty())) {
    throw Error(ErrorKind::config,
                "--json prints one document to standard output, and cannot be combined with --out FILE or --format",
                "leave it out; --format jsonl writes one object per line");
  }
  if (options.common.json) return PredictionFormat::json;
  if (!options.format.empty()) return *format_named(options.format);
  if (!options.writes_file()) {
    // A rank cannot call isatty(): mpirun gives it a terminal wherever its output goes.
    const bool on_terminal = situation.is_rank() ? situation.output_on_terminal : isatty(STDOUT_FILENO) != 0;
    return on_terminal ? PredictionFormat::table : PredictionFormat::csv;
  }
  const std::string ending = fs::path(options.out).extension().string();
  const auto found = format_named(ending.empty() ? "" : ending.substr(1));
  if (found) return *found;
  throw Error(ErrorKind::config, format("--out {}: the name ends in none of .csv, .jsonl and .npy", options.out),
              "use one of these endings, or add --format; a name without an ending is a folder for PNG files");
}

// Writes a piece of the predictions. Returns false if the reader of the output has closed it.
using Put = std::function<bool(const std::string& text)>;

// The checkpoint, and how the samples that it was trained on were read.
struct Trained {
  std::optional<LoadedCheckpoint> checkpoint;  // on rank 0
  std::vector<KeptInput> inputs;               // on all ranks
};

Trained load_trained(const PredictOptions& options, std::size_t inputs, RankContext& context, Stream& host) {
  Trained trained;
  std::string kept;
  if (context.world.rank() == 0) {
    trained.checkpoint = load_named_checkpoint(options.network.checkpoint());
    log::info(format("predicts with the weights of {} (step {})", trained.checkpoint->path,
                     trained.checkpoint->manifest.step));
    const auto& metadata = trained.checkpoint->manifest.metadata;
    if (const auto found = metadata.find(kept_input_key); found != metadata.end()) kept = found->second;
  }
  kept = broadcast_text(kept, 0, context.world.communicator(), host);
  if (!kept.empty()) trained.inputs = read_kept_inputs(kept);
  if (trained.inputs.size() != inputs) {
    throw CollectiveError(
        ErrorKind::data,
        format("{} does not record how its samples were read: an older trainctl wrote it", options.network.path),
        "continue its training for a step, which writes a checkpoint that does");
  }
  return trained;
}

// Writes the answers to standard output or into the file.
void write_answers(const PredictOptions& options, PredictionFormat format, std::int64_t samples,
                   const std::function<void(const Put& put)>& write) {
  if (!options.writes_file()) return write(format == PredictionFormat::npy ? write_output_bytes : write_output);
  write_file(options.out, 0, [&](OutputFile& file) {
    write([&](const std::string& text) {
      file.write(text.data(), std::ssize(text));
      return true;
    });
  });
  log::info(trainctl::format("{}: {}", options.out, counted(samples, "sample")));
}

OutputMeanings meanings_of(const RunSpec& spec, const std::vector<Shape>& outputs,
                           const std::vector<std::string>& class_names) {
  OutputMeanings meanings;
  for (std::size_t i = 0; i < outputs.size(); ++i) {  // the names are those of the first output's classes
    meanings.push_back(meaning_of(spec, i, outputs[i], i == 0 ? class_names : std::vector<std::string>()));
  }
  return meanings;
}

// The answers of the outputs for sample i of `found`; empty if it could not be read.
Answers answers_of(const OutputMeanings& outputs, const Predictions& found, std::int64_t i) {
  Answers answers;
  if (found.weights[static_cast<std::size_t>(i)] == 0) return answers;
  for (std::size_t k = 0; k < outputs.size(); ++k) answers.push_back(outputs[k].values_of(found.of(k, i)));
  return answers;
}

// Throws CollectiveError where PictureWriter() throws Error. Predicted images of a network whose target is its input
// are written in the value range of the input's files.
PictureWriter picture_writer(const RunSpec& spec, const std::string& folder, const OutputMeanings& outputs,
                             const PredictionData& data) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < data.samples(); ++i) names.push_back(data.short_name_of(i));
  try {
    return {folder, outputs, std::move(names), spec.data.target_is_input() ? data.scaling() : std::nullopt};
  } catch (const Error& error) {
    throw CollectiveError(error.kind(), error.what());
  }
}

int predict_by_checkpoint(const RunSpec& spec, const PredictOptions& options, PredictionFormat format,
                          RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(spec.cluster, spec.train, spec.strategy, context);
  const std::vector<DataUse::Input> inputs = data_use(spec).inputs;
  const Trained trained = load_trained(options, inputs.size(), context, device.host);
  const PredictionData data(spec.data, trained.inputs, inputs, options.inputs);
  if (context.world.rank() == 0) {
    for (const std::string& warning : data.warnings()) log::warning(warning);
  }
  const BatchDivision rank(MeshRank(Mesh{.data = world.size()}, world.rank()));
  Backend& backend = *device.backend;
  const std::int64_t batch = std::min(spec.train.global_batch(world.size()), data.samples());
  const auto source =
      data.batches(batch, rank, context.threads, [&](std::int64_t bytes) { return backend.allocate_host(bytes); });
  RestoreSource stored;
  if (trained.checkpoint) stored = {&trained.checkpoint->snapshot, trained.checkpoint->path, options.common.config};
  Predictor predictor(spec, data.inputs(), *source, rank, device, stored, world);
  std::vector<std::string> names;  // names of the first output's classes, on rank 0
  if (trained.checkpoint) names = read_class_names(trained.checkpoint->manifest.metadata);
  const OutputMeanings outputs = meanings_of(spec, predictor.outputs(), names);
  const auto pictures = options.writes_pictures()
                            ? std::optional<PictureWriter>(picture_writer(spec, options.out, outputs, data))
                            : std::nullopt;
  if (world.rank() != 0) {
    predictor.run(*source, {});
    return 0;
  }
  const auto writer = make_writer(format, outputs, data.samples(), trained.checkpoint->path);
  write_answers(options, format, data.samples(), [&](const Put& put) {
    bool taken = put(writer->head());
    predictor.run(*source, [&](const Predictions& found) {
      std::string text;
      for (std::int64_t i = 0; i < found.count; ++i) {
        const Answers answers = answers_of(outputs, found, i);
        if (pictures) pictures->write(found.first + i, answers);
        text += writer->sample(data.name_of(found.first + i), answers);
      }
      taken = taken && put(text);
      return taken || pictures;
    });
    if (taken) put(writer->tail());
  });
  if (pictures) log::info(trainctl::format("{}: {}", options.out, counted(data.samples(), "sample")));
  return 0;
}

// Checks options that do not go together, as CLI11 cannot.
void check_inputs(const PredictOptions& options) {
  const bool generates = options.generate.any();
  if (generates && !options.inputs.empty()) {
    throw Error(ErrorKind::config, trainctl::format("{} and --prompt cannot be combined", options.inputs[0]),
                "give a language model prompts, and any other network files");
  }
  if (!generates && options.generate.changed()) {
    throw Error(ErrorKind::config, "the options for texts need a prompt", "add --prompt TEXT or --prompts FILE");
  }
  if (!generates && options.inputs.empty()) {
    throw Error(ErrorKind::config, "predict needs an input",
                "name files or folders, or give a language model a text: --prompt TEXT");
  }
  if (!generates) return;
  const bool other_file = options.writes_pictures() || (options.writes_file() && !options.out.ends_with(".jsonl"));
  if (!options.format.empty() || other_file || (options.common.json && !options.out.empty())) {
    throw Error(ErrorKind::config, "texts are printed, or written as JSON lines",
                "use either --json, or --out FILE.jsonl");
  }
}

int run_predict(PredictOptions& options) {
  check_inputs(options);
  options.network = find_trained(options.model);
  options.common.config = options.network.run + "/config.yaml";
  for (const std::string& set : options.common.sets) {
    if (!set.starts_with("data.")) {
      throw Error(
          ErrorKind::config,
          trainctl::format(
              "--set {}: predict reads samples as the run's config describes, and only its data section can be set",
              set),
          "set data.transform or another key of data; the network and its training are those of the run");
    }
  }
  RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  // Uses one rank on this host, unless the command line asks for more: most predictions are short.
  if (!situation.is_rank() && options.launch.ranks.empty() && options.launch.hosts.empty()) {
    spec.cluster.ranks = {1};
    spec.cluster.hosts.clear();
    spec.cluster.hostfile = {};
  }
  spec.strategy = for_one_rank(spec.strategy);
  const PredictionFormat format = options.generate.any() ? PredictionFormat::json : format_of(options, situation);
  if (const std::size_t outputs = output_names(spec.model).size(); outputs > 1 && format == PredictionFormat::npy) {
    throw Error(ErrorKind::config,
                trainctl::format("--format npy writes one array, and the network has {} outputs", outputs),
                "use csv or jsonl, which hold the predictions of all outputs");
  }
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, false}))
    return *code;
  const RankCommand command = rank_command("predict", Value<RunSpec>::write(spec), spec.cluster, options.launch);
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    return options.generate.any()
               ? generate(spec, options.generate, options.network, options.out, options.common.json, context)
               : predict_by_checkpoint(spec, options, format, context);
  });
}

}  // namespace

Subcommand predict_subcommand() {
  return {"predict",
          "Computes the predictions of a trained network for images, sounds, volumes, arrays, tables or texts, or "
          "continues texts",
          "trainctl predict runs/flowers photo.jpg\n  trainctl predict runs/flowers photos --out photos.csv\n"
          "  trainctl predict runs/streets photos --out masks\n"
          "  trainctl predict runs/shakespeare-gpt --prompt 'ROMEO:' --temperature 0.8",
          [](CLI::App& app) {
            auto options = std::make_shared<PredictOptions>();
            app.add_option("RUN", options->model,
                           "A run directory, or a config for its newest run, whose best checkpoint is used; or a "
                           "checkpoint's folder")
                ->required()
                ->type_name("");
            app.add_option(
                   "INPUT", options->inputs,
                   "Images and folders of images; WAV or NIfTI files, folders of them, and .csv files that name them; "
                   "an array (.npy, .npz, IDX); for a network trained on a table, tables with its columns; for a "
                   "classifier of texts, a .txt file with a text in each line, a .jsonl or .csv file with the texts, "
                   "or a folder of such files. For a network of several inputs: NAME=ARRAY for each, or a folder or "
                   "an .npz file with arrays of these names")
                ->type_name("");
            app.add_option("-o,--out", options->out,
                           "A file ending in .csv, .jsonl or .npy; default: standard output. For a network that "
                           "predicts pixels also a folder, for a PNG file of each image: the numbers of the pixels' "
                           "classes, or an image of the values")
                ->type_name("PATH");
            app.add_option("--format", options->format,
                           "table: the five likeliest classes, for people; csv; jsonl: an object per line; npy: an "
                           "array, also of all pixels. Default: by the ending of --out; without --out, table on a "
                           "terminal and csv elsewhere")
                ->check(one_of({"table", "csv", "jsonl", "npy"}));
            app.add_option("--set", options->common.sets,
                           "Replaces a value of the run's data section: data.transform='[{resize: 64}, {center_crop: "
                           "64}, {rescale: 1/255}]' (repeatable)")
                ->type_name("PATH=VALUE")
                ->allow_extra_args(false);
            add_generate_options(app, options->generate);
            add_launch_options(app, options->launch);
            add_output_options(app, options->common);
            return [options] { return run_predict(*options); };
          }};
}

}  // namespace trainctl
