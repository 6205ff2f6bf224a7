// RunSpec: the typed values of a whole config, with which every subcommand that accepts CONFIG works.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/model_options.h"
#include "io/checkpoint/options.h"
#include "io/loader/options.h"
#include "io/metrics/options.h"
#include "io/yaml/yaml.h"
#include "parallel/health/faults/fault.h"
#include "parallel/launch/options.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"

namespace trainctl {

struct RunSpec {
  std::int64_t version = 1;
  std::string name;  // never empty once read: the file's name without .yaml if the config has no name
  std::uint64_t seed = 1;
  DataOptions data;
  ModelOptions model;
  TrainOptions train;
  StrategyOptions strategy;
  CheckpointOptions checkpoint;
  ClusterOptions cluster;
  LogOptions log;
  FaultList faults;
  Node resolved;  // what a run measured or found out; never read

  static Keys<RunSpec> keys();
};

// Loads the document of a config file, with variables, includes, settings (PATH=VALUE) and the model's preset resolved.
// `files`, here and below: the config's files that were read before, to which those that are read are added.
Node load_config(const std::string& file, const std::vector<std::string>& settings, Reader& reader,
                 const VariableLookup& variables, ConfigFiles& files);

// Returns the sorted names of the environment variables that a config refers to: ranks on other hosts need them.
std::vector<std::string> variables_of(const std::string& file, const std::vector<std::string>& settings,
                                      ConfigFiles files);

// Reads a document; errors go to the reader.
RunSpec read_run_spec(const Node& document, Reader& reader);

// Loads and reads a config. Throws ConfigError with every error of the file, its includes, its preset and the settings,
// and Error{resource} if there is no working directory.
RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings, ConfigFiles& files);
// As above, for a file, or for a `text` that is to be written to that file later.
RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings = {},
                      const std::optional<std::string>& text = {});

// How the network and its losses use the data: the inputs, the targets and the class weights.
DataUse data_use(const RunSpec& spec);

// The resolved config: every key that has a value, absolute paths, `auto` where it depends on the ranks. It loads to an
// equal spec, from any folder.
std::string resolved_yaml(const RunSpec& spec);

}  // namespace trainctl
