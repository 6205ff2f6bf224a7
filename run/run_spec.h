// A whole config, typed: what every subcommand that takes CONFIG works with.
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
#include "parallel/launch/options.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"

namespace trainctl {

struct RunSpec {
  std::int64_t version = 1;
  std::string name;  // once read never empty: the file's name without .yaml where the config states none
  std::uint64_t seed = 1;
  DataOptions data;
  ModelOptions model;
  TrainOptions train;
  StrategyOptions strategy;
  CheckpointOptions checkpoint;
  ClusterOptions cluster;
  LogOptions log;
  Node resolved;  // what a run measured or found out; read by nobody

  static Keys<RunSpec> keys();
};

// The document of a config file: variables, includes, settings (PATH=VALUE) and the model's preset in their places.
// `files`, here and below: those of the config's files that were read before; others are added.
Node load_config(const std::string& file, const std::vector<std::string>& settings, Reader& reader,
                 const VariableLookup& variables, ConfigFiles& files);

// The variables of the environment that a config refers to, sorted: ranks on other hosts need them.
std::vector<std::string> variables_of(const std::string& file, const std::vector<std::string>& settings,
                                      ConfigFiles files);

// Reads a document; everything wrong goes to the reader.
RunSpec read_run_spec(const Node& document, Reader& reader);

// Both. Throws ConfigError with every error of the file, its includes, its preset and the settings, and Error{resource}
// where there is no working directory.
RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings, ConfigFiles& files);
// The same of a file alone, or of a `text` that is to be in that file and is not yet.
RunSpec load_run_spec(const std::string& file, const std::vector<std::string>& settings = {},
                      const std::optional<std::string>& text = {});

// What loss and network make of arrays.
DataUse data_use(const RunSpec& spec);

// The resolved config: every key that has a value, absolute paths, `auto` where it depends on the ranks. It loads to an
// equal spec, from any folder.
std::string resolved_yaml(const RunSpec& spec);

}  // namespace trainctl
