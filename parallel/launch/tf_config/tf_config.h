// TF_CONFIG: the environment of a job that was written for TensorFlow's MultiWorkerMirroredStrategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/hosts.h"
#include "parallel/launch/variables.h"

namespace trainctl {

inline constexpr std::string_view tf_config_variable = "TF_CONFIG";

// A task that trains.
struct TfTask {
  std::string type;  // "chief" or "worker"
  int index = 0;
  std::string host;
  int port = 0;  // the task's own

  std::string name() const { return type + " " + std::to_string(index); }
  bool is(const TfTask& other) const { return type == other.type && index == other.index; }
};

struct TfConfig {
  std::vector<TfTask> tasks;  // the first is the chief: the one of that name, else worker 0
  std::size_t own = 0;        // the place of this process among them

  bool is_chief() const { return own == 0; }
  // One host for each name, with `slots` for each of its tasks, in the order of the tasks.
  std::vector<Host> hosts(int slots) const;
};

// Reads TF_CONFIG; nothing where it is not set, or names no cluster (TensorFlow takes that for one process). Throws
// Error{config} where it is damaged, and for parameter servers and evaluators, which have no counterpart, with what to
// do instead.
std::optional<TfConfig> find_tf_config(const Variables& variables);

}  // namespace trainctl
