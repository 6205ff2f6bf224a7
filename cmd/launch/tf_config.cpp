// trainctl launch tf-config: shows the tasks that TF_CONFIG names, and what each does in a run.
#include <optional>

#include "cmd/launch/launch.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/tf_config/tf_config.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Returns the config key that lists hosts (`trainctl run` then ignores TF_CONFIG); "" if the config lists no hosts.
std::string named_elsewhere(LaunchOptions& options) {
  if (options.common.config.empty()) return "";
  const ClusterOptions cluster = load_run_spec(options.common, {}).cluster;
  if (!cluster.hosts.empty()) return "cluster.hosts";
  return cluster.hostfile.empty() ? "" : "cluster.hostfile";
}

// Returns a text: whether the secret is set with which the chief and its agents authenticate each other.
std::string secret_text(const TfConfig& config, const Variables& variables) {
  try {
    secret_for(config, variables);
    return given_secret(variables) ? "the secret is set" : "all tasks are on this host: no secret is required";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

int launch_tf_config(LaunchOptions& options) {
  const Variables variables = Variables::of_process();
  const std::optional<TfConfig> config = find_tf_config(variables);
  const std::string elsewhere = named_elsewhere(options);
  Json json{{"ok", true}, {"tasks", Json::array()}};
  TextTable table({{"task"}, {"address"}, {"does"}});
  for (std::size_t i = 0; config && i < config->tasks.size(); ++i) {
    const TfTask& task = config->tasks[i];
    const std::string address = format("{}:{}", task.host, task.port);
    const std::string does =
        i == 0 ? "starts the run, and has rank 0" : "launch agent: runs its ranks for " + config->tasks[0].name();
    table.add({task.name(), address, does + (i == config->own ? "  <- this process" : "")});
    json["tasks"].push_back(
        {{"task", task.name()}, {"address", address}, {"chief", i == 0}, {"self", i == config->own}});
  }
  std::string text = config ? table.text() + secret_text(*config, variables) + "\n"
                            : "TF_CONFIG names no cluster: `trainctl run` trains on this host alone\n";
  if (config && !elsewhere.empty())
    text += format("the config names hosts ({}): `trainctl run` does not read TF_CONFIG\n", elsewhere);
  if (config) json["secret"] = secret_text(*config, variables);
  json["read_by_run"] = config && elsewhere.empty();
  answer(options.common.json ? json_line(json) : text);
  return 0;
}

}  // namespace trainctl
