// Reads TF_CONFIG, the environment variable of jobs that were written for TensorFlow's MultiWorkerMirroredStrategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/hosts.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// The name of the environment variable.
inline constexpr std::string_view tf_config_variable = "TF_CONFIG";

// A task that trains.
struct TfTask {
  std::string type;  // "chief" or "worker"
  int index = 0;
  std::string host;
  int port = 0;  // port of the task

  std::string name() const { return type + " " + std::to_string(index); }
  bool is(const TfTask& other) const { return type == other.type && index == other.index; }
};

struct TfConfig {
  std::vector<TfTask> tasks;  // the first is the chief: the task of type chief, otherwise worker 0
  std::size_t own = 0;        // index of this process's task

  bool is_chief() const { return own == 0; }
  // Returns the hosts in the order of the tasks, each with `slots` slots for each of its tasks.
  std::vector<Host> hosts(int slots) const;
};

// Reads TF_CONFIG; empty if it is not set, or if it names no cluster, which means a single process in TensorFlow.
// Throws Error{config} with a remedy if it is invalid, and for parameter servers and evaluators, which trainctl does
// not support.
std::optional<TfConfig> find_tf_config(const Variables& variables);

}  // namespace trainctl
