// Joins the sections of a config, and loads a RunSpec from a file.
#include "run/run_spec.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "core/metrics/loss.h"
#include "core/metrics/monitor.h"
#include "core/metrics/targets.h"
#include "io/yaml/presets.h"
#include "parallel/launch/host/resources.h"
#include "run/config_use.h"

namespace trainctl {
namespace {

constexpr std::int64_t newest_version = 1;

// The name becomes a folder: runs/<name>.
void check_name(const RunSpec& spec, const Node& node, Reader& reader) {
  const Node* name = node.find("name");
  if (!name) return;
  constexpr const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t longest = 200;  // file systems accept 255 bytes, and suffixes such as "-2" are added
  if (!spec.name.empty() && spec.name.front() != '.' && spec.name.size() <= longest &&
      spec.name.find_first_not_of(allowed) == std::string::npos)
    return;
  reader.error(name->location,
               format("name {} cannot name a folder; use up to {} letters, digits, '.', '_' and '-', and do not "
                      "begin with '.'",
                      describe(*name), longest));
}

// The metrics that decide on the best checkpoint, the end of the run and the learning rate must be among those that the
// run reports.
void check_monitors(const RunSpec& spec, const Node& node, Reader& reader) {
  const std::vector<std::string> outputs = output_names(spec.model);
  if (!spec.train.reads_choices_of(outputs)) return;  // what could not be read was reported
  const std::vector<std::string> results = spec.train.result_names(spec.model);
  const GivenModes modes = spec.train.given_modes(outputs);
  const auto check = [&](const std::string& monitor, const Auto<MonitorMode>& mode, const Node* section) {
    std::string problem = why_not_monitored(monitor, results, spec.data.validation.has_value());
    if (problem.empty() && mode.is_auto() && !mode_of(monitor, modes)) {
      problem = why_without_mode(monitor);
    }
    const Node* key = section->find("monitor");
    if (!problem.empty()) reader.error(key != nullptr ? key->location : section->location, problem);
  };
  const Node *checkpoint = node.find("checkpoint"), *train = node.find("train");
  const auto& best = spec.checkpoint.monitor.given;
  const bool restores = spec.train.early_stopping && spec.train.early_stopping->restore_best;
  const bool as_stopping = restores && spec.checkpoint.mode.is_auto();
  if (best) check(*best, as_stopping ? spec.train.early_stopping->mode : spec.checkpoint.mode, checkpoint);
  if (const auto& plateau = spec.train.reduce_on_plateau) {
    check(plateau->monitor.or_else("val_loss"), plateau->mode, train->find("reduce_on_plateau"));
  }
  if (!spec.train.early_stopping) return;
  const EarlyStoppingOptions& early = *spec.train.early_stopping;
  const std::string watched = early.monitor.or_else("val_loss");
  const Node* section = train->find("early_stopping");
  check(watched, early.mode, section);
  if (!early.restore_best || !best || *best == watched) return;
  reader.error(checkpoint->find("monitor")->location,
               format("early_stopping restores checkpoints/best, and watches {}: set `monitor: {}` here, or leave it "
                      "out",
                      watched, watched),
               section->location, "early_stopping");
}

// Whether the loss of an output, or an added loss, reads targets of the output.
bool needs_targets(const RunSpec& spec, const std::string& output) {
  const Choice& loss = spec.train.loss.of(output);
  return !loss || loss.as<LossOptions>().trains() || adds_loss_of_targets(spec.model, output);
}

// Losses, metrics and files must be given by the names of the model's inputs and outputs.
void check_inputs_and_outputs(const RunSpec& spec, const Node& node, Reader& reader) {
  const Node* train = node.find("train");
  if (!train || spec.model.layers.empty()) return;  // the missing section is reported elsewhere
  const auto reported = [&](const Reference& output) { return reader.reported(output.location); };
  if (std::any_of(spec.model.outputs.begin(), spec.model.outputs.end(), reported)) return;
  const std::vector<std::string> outputs = output_names(spec.model);
  spec.train.check_names_of(spec.model, *train, reader);
  std::vector<bool> needed;
  for (const std::string& output : outputs) needed.push_back(needs_targets(spec, output));
  spec.data.check_names_of(input_names(spec.model), outputs, needed, reader);
}

// Loss scales depend on the gradients of all replicas, which sync_every does not add in every step.
void check_sync_every(const RunSpec& spec, const Node&, Reader& reader) {
  if (spec.strategy.sync_every.value == 1 || spec.train.precision != Precision::float16) return;
  reader.error(spec.strategy.sync_every.location,
               "in float16 all replicas scale their losses by the same factor, and with `sync_every` the factors would "
               "differ: use precision bfloat16, or `sync_every: 1`");
}

// Refuses reactions to steps that are not finite which the other options make impossible.
void check_not_finite(const RunSpec& spec, const Node&, Reader& reader) {
  const OnNotFinite action = spec.train.on_not_finite.value;
  if (action == OnNotFinite::stop) return;
  const auto refuse = [&](const std::string& why) {
    reader.error(spec.train.on_not_finite.location,
                 format("on_not_finite: {} cannot be used here: {}", name_of(action), why));
  };
  if (spec.strategy.sync_every.value > 1) {
    refuse(
        "with strategy.sync_every, one replica's step changes its weights before the others know that theirs was "
        "not finite; use `sync_every: 1`, or `on_not_finite: stop`");
  }
  if (action == OnNotFinite::skip && !spec.train.players.empty()) {
    refuse(
        "the players before the one whose loss is not finite have already been updated in the step; use `rollback` "
        "or `stop`");
  }
  if (action == OnNotFinite::rollback && spec.checkpoint.weights_only) {
    refuse(
        "a checkpoint without the optimizer's state is not the state of the run; use `checkpoint.weights_only: "
        "false`");
  }
}

// A run writes all its values into its own config, which is UTF-8. Names of folders and files may be other bytes.
void require_utf8_values(const Node& node, const std::string& path, const SourceLocation& file, Reader& reader) {
  for (const Node& item : node.items) require_utf8_values(item, path, file, reader);
  for (const Node::Entry& entry : node.entries) {
    require_utf8_values(entry.value, path.empty() ? entry.key : path + "." + entry.key, file, reader);
  }
  if (!node.is_scalar() || !find_invalid_utf8(node.text)) return;
  reader.error(file,
               format("{} becomes '{}', which is not UTF-8, and a run could not write it into its config; give the "
                      "folders or the file names in UTF-8 (convmv -f LATIN1 -t UTF-8 --notest NAME)",
                      path, valid_utf8(node.text)));
}

// Refuses a preset as a config: it describes a network alone.
void refuse_preset(const Node& document, Reader& reader) {
  if (!document.find("layers") || document.find("data") || document.find("model") || document.find("train")) return;
  const std::string& file = document.location.file;
  reader.error(document.location,
               format("this is a preset, a network without data and training; a config uses it as `model: {{preset: "
                      "{}}}`, and `trainctl check CONFIG --set 'model={{preset: {}}}'` checks it",
                      file, file));
  reader.throw_if_failed();
}

// Adds the keys of `train` that a config without training leaves out.
void complete_training(Node& document, ConfigUse use) {
  if (document.find("data") == nullptr || document.find("model") == nullptr) return;
  if (document.find("train") == nullptr) append(document, "train", map_node());
  Node& train = std::find_if(document.entries.begin(), document.entries.end(), [](const Node::Entry& entry) {
                  return entry.key == "train";
                })->value;
  if (train.is_null()) train = map_node();
  if (!train.is_map()) return;
  const auto add = [&train](std::initializer_list<const char*> alternatives, const char* value) {
    const bool is_given = std::any_of(alternatives.begin(), alternatives.end(),
                                      [&](const char* key) { return train.find(key) != nullptr; });
    if (!is_given) append(train, *alternatives.begin(), scalar_node(value));
  };
  add({"optimizer"}, "sgd");
  add({"batch_size", "batch_size_per_rank"}, "32");
  add({"epochs", "max_steps", "max_time", "phases"}, "1");
  if (use == ConfigUse::prediction) add({"loss"}, "none");
}

}  // namespace

Keys<RunSpec> RunSpec::keys() {
  return Keys<RunSpec>("", "A training run: data, network, training, and how it is spread over ranks.")
      .key("version", &RunSpec::version, "Version of the config language.", between(1, newest_version))
      .key("name", &RunSpec::name,
           "Name of the run: up to 200 letters, digits, '.', '_' and '-'; its directory is runs/<name>. Default: the "
           "file's name.")
      .key("seed", &RunSpec::seed,
           "Seed of everything random: initial weights, order of the data, augmentation, dropout.")
      .required("data", &RunSpec::data, "The data that the network is trained on.")
      .required("model", &RunSpec::model, "The network.")
      .required("train", &RunSpec::train, "How it is trained.")
      .key("strategy", &RunSpec::strategy, "How the work is spread over the ranks.")
      .key("checkpoint", &RunSpec::checkpoint, "When and what is saved.")
      .key("cluster", &RunSpec::cluster, "How many ranks run, and where.")
      .key("log", &RunSpec::log, "What is written while the run goes on.")
      .key("faults", &RunSpec::faults,
           "Faults that the run rehearses, each of them once in its life: `- kill: {rank: 1, step: 120}`.")
      .key("resolved", &RunSpec::resolved,
           "What a run measured or found out, added to the config in its directory. Never read.")
      .check(check_name)
      .check(check_inputs_and_outputs)
      .check(check_sync_every)
      .check(check_not_finite)
      .check(check_monitors);
}

Node load_config(const std::string& file, const std::vector<std::string>& settings, Reader& reader,
                 const VariableLookup& variables, ConfigFiles& files) {
  Node document = load_yaml(file, variables, reader, files);
  if (document.is_null() && !reader.ok()) return document;  // the file cannot be read
  for (const std::string& setting : settings) apply_setting(document, setting, variables, reader, files.directory());
  const PresetLoader load = preset_loader(variables, files);
  for (Node::Entry& entry : document.entries) {
    if (entry.key == "model") entry.value = expand_preset(entry.value, load, reader);
  }
  return document;
}

std::vector<std::string> variables_of(const std::string& file, const std::vector<std::string>& settings,
                                      ConfigFiles files) {
  std::set<std::string> names;
  Reader ignored;
  const VariableLookup noting = [&names](const std::string& name) {
    names.insert(name);
    return environment()(name);
  };
  load_config(file, settings, ignored, noting, files);
  return {names.begin(), names.end()};
}

RunSpec read_run_spec(const Node& document, Reader& reader) {
  RunSpec spec;
  const Node* version = document.find("version");
  if (version && version->is_scalar()) {
    if (const auto number = parse_integer(version->text); number && *number > newest_version) {
      reader.error(version->location,
                   format("this config is of version {}, and this trainctl reads version {} at most; use a "
                          "newer trainctl",
                          *number, newest_version));
      return spec;
    }
  }
  const ReadingContext context(reader, "the config");
  section_of<RunSpec>().read(document, reader, &spec);
  if (spec.name.empty()) spec.name = std::filesystem::path(document.location.file).stem().string();
  if (!spec.train.phases.empty()) spec.train.epochs = epochs_of(spec.train.phases);
  spec.cluster.max_ranks = max_ranks(spec.strategy);
  spec.cluster.ranks_of_replica = spec.strategy.stages() * spec.strategy.tensor.value;
  if (const auto& replicas = spec.strategy.data.given) {
    spec.cluster.fixed_ranks = replicas->value * spec.cluster.ranks_of_replica;
  }
  return spec;
}

RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings, ConfigFiles& files,
                      ConfigUse use) {
  require_working_directory();  // relative paths begin there
  Reader reader;
  Node document = load_config(file, settings, reader, environment(), files);
  // If there is no document, or it is too large, that error alone is reported, and not the sections that are missing.
  if (reader.refused() || (document.is_null() && !reader.ok())) reader.throw_if_failed();
  refuse_preset(document, reader);
  if (use != ConfigUse::training) complete_training(document, use);
  RunSpec spec = read_run_spec(document, reader);
  reader.throw_if_failed();
  require_utf8_values(section_of<RunSpec>().write(&spec), "", {file, 0, 0}, reader);
  reader.throw_if_failed();
  return spec;
}

RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings, ConfigFiles& files) {
  return load_run_spec(file, settings, files, ConfigUse::training);
}

RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings,
                      const std::optional<std::string>& text) {
  ConfigFiles files = text ? ConfigFiles::of(file, *text) : ConfigFiles();
  return load_run_spec(file, settings, files);
}

DataUse data_use(const RunSpec& spec) {
  DataUse use{{}, {}};
  for (const std::string& name : input_names(spec.model)) use.inputs.push_back({name, token_count(spec.model, name)});
  for (const std::string& name : output_names(spec.model)) {
    const Choice& loss = spec.train.loss.of(name);
    const auto& options = loss.as<LossOptions>();
    use.targets.push_back(
        {name, takes_values(loss), takes_class_numbers(loss), options.ignore_index, !needs_targets(spec, name)});
  }
  use.class_weights = spec.train.class_weights;
  return use;
}

std::string resolved_yaml(const RunSpec& spec) { return to_yaml(section_of<RunSpec>().write(&spec)); }

}  // namespace trainctl
