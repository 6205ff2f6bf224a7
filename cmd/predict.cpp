// trainctl predict: computes the predictions of a trained network for images, sounds, volumes, arrays, tables or texts,
// and continues texts.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include <unistd.h>

#include "cmd/common_options.h"
#include "cmd/number_checks.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/config_use.h"
#include "run/generation/generate.h"
#include "run/prediction/predict_samples.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string model;  // run directory, checkpoint or config
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

// The files and folders that are read: INPUT, or the path in NAME=PATH, and the file of prompts.
std::vector<std::string> inputs_of(const PredictOptions& options) {
  std::vector<std::string> inputs = options.inputs;
  for (const std::string& input : options.inputs) {
    if (const std::size_t equals = input.find('='); equals != std::string::npos) {
      inputs.push_back(input.substr(equals + 1));
    }
  }
  if (!options.generate.file.empty()) inputs.push_back(options.generate.file);
  return inputs;
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
  for (const std::string& input : options.inputs) {
    const bool may_be_named = input.find('=') != std::string::npos;  // NAME=ARRAY
    if (!may_be_named && !exists(input, {ErrorKind::data, ""}))
      throw Error(ErrorKind::data, input + ": does not exist");
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
  require_not_input("--out", options.out, inputs_of(options));
  const TrainedNetwork network = find_trained(options.model);
  options.common.config = network.config();
  require_not_input("--out", options.out, {network.config()});
  if (!network.is_untrained()) require_not_input("--out", options.out, files_of_run(network.run));
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
  RunSpec spec = load_run_spec(options.common, options.launch, ConfigUse::prediction);
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
                trainctl::format("--format npy writes one array, and the network has {}", counted(outputs, "output")),
                "use csv or jsonl, which hold the predictions of all outputs");
  }
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, false}))
    return *code;
  RankCommand command = rank_command("predict", Value<RunSpec>::write(spec), spec.cluster, options.launch);
  command.ends_start_itself = true;
  const PredictionRequest request{.network = network,
                                  .inputs = options.inputs,
                                  .format = format,
                                  .file = options.writes_file() ? options.out : "",
                                  .folder = options.writes_pictures() ? options.out : ""};
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    if (options.generate.any()) {
      generate(spec, options.generate, network, options.out, options.common.json, context);
    } else {
      predict_samples(spec, request, context);
    }
    return 0;
  });
}

void add_generate_options(CLI::App& app, GenerateOptions& options) {
  const auto group = app.add_option_group("Texts", "For a language model, instead of INPUT");
  group
      ->add_option(
          "--prompt", options.prompts,
          "A text that the language model continues; repeatable. A single text is printed as it grows, several "
          "are printed as a JSON object each")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  group
      ->add_option("--prompts", options.file,
                   "A .txt file with a prompt in each line, or a .jsonl or .csv file with a column `text`")
      ->type_name("FILE")
      ->excludes("--prompt");
  group->add_option("--max-tokens", options.end.max_tokens, "The largest number of new tokens of a text")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
      ->capture_default_str();
  group
      ->add_option("--temperature", options.sampling.temperature,
                   "Divides the logits before tokens are drawn: below 1 likely tokens become likelier; 0 always takes "
                   "the likeliest token")
      ->check(number_between(0, 100))
      ->capture_default_str();
  group
      ->add_option("--top-k", options.sampling.top_k,
                   "Draws only from this number of the likeliest tokens; 0: from all")
      ->check(whole_number_from(0))
      ->capture_default_str();
  group
      ->add_option("--top-p", options.sampling.top_p,
                   "Draws only from the fewest likeliest tokens that together have this probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  group->add_option("--seed", options.sampling.seed, "Chooses among the texts that the network may write")
      ->check(whole_number_from(0))
      ->capture_default_str();
  group->add_option("--stop", options.end.stop, "Ends the new text before this text; repeatable")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return text.empty() ? "the text is empty" : ""; });
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
