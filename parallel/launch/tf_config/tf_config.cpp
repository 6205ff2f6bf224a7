// Reads TF_CONFIG.
#include "parallel/launch/tf_config/tf_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"

namespace trainctl {
namespace {

constexpr const char* expected_format =
    R"(its format is {"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}})";

[[noreturn]] void refuse(const std::string& what, const std::string& remedy = expected_format) {
  throw Error(ErrorKind::config, "TF_CONFIG: " + what, remedy);
}

void refuse_other_tasks(const std::string& own, const Json& cluster) {
  if (own == "evaluator") {
    refuse("this process is an evaluator, but in trainctl the ranks that train also evaluate",
           "start no evaluator: set data.validation in the config; `trainctl eval CONFIG` evaluates a checkpoint");
  }
  if (own == "ps" || (cluster.contains("ps") && !cluster["ps"].empty())) {
    refuse("the cluster has parameter servers (ps), but trainctl trains synchronously without them",
           "leave `ps` out of the cluster, and start its workers alone");
  }
}

// Parses an address such as "host1:2222".
TfTask read_address(const std::string& text, const std::string& type, int index) {
  const std::size_t colon = text.rfind(':');
  TfTask task{type, index, text.substr(0, colon), 0};
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), task.port);
  if (problem != std::errc() || end != digits.data() + digits.size() || task.port < 1 || task.port > 65535 ||
      !is_host_name(task.host) || task.host != without_user(task.host)) {
    refuse(format("'{}' of {} is not an address", text, task.name()), "write addresses as host:port");
  }
  return task;
}

void add_tasks(TfConfig& config, const Json& cluster, const std::string& type) {
  if (!cluster.contains(type)) return;
  if (!cluster[type].is_array()) refuse(format("the tasks '{}' are not a list of addresses", type));
  int index = 0;
  for (const Json& address : cluster[type]) {
    config.tasks.push_back(read_address(address.get<std::string>(), type, index++));
  }
}

void refuse_same_addresses(const TfConfig& config) {
  std::map<std::pair<std::string, int>, const TfTask*> known;
  for (const TfTask& task : config.tasks) {
    const auto [found, is_new] = known.emplace(std::pair(task.host, task.port), &task);
    if (is_new) continue;
    refuse(format("{} and {} have the same address, {}:{}", found->second->name(), task.name(), task.host, task.port),
           "list each task once; tasks on the same host need different ports");
  }
}

// Parses an index from 0, given as a number or a string.
int read_index(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  int index = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (problem == std::errc() && end == text.data() + text.size() && index >= 0) return index;
  refuse(format("the task's index is {}, but must be a whole number from 0", value.dump()));
}

Json parse(const std::string& text) {
  try {
    return parse_json(text, SourceLocation{});
  } catch (const Error&) {
    refuse(format("it has more than {} levels", max_json_levels));
  }
}

TfConfig read(const Json& json) {
  TfConfig config;
  const Json& cluster = json.at("cluster");
  const std::string type = json.at("task").at("type");
  const int index = read_index(json["task"].at("index"));
  refuse_other_tasks(type, cluster);
  for (const char* each : {"chief", "worker"}) add_tasks(config, cluster, each);
  refuse_same_addresses(config);
  const auto own = std::find_if(config.tasks.begin(), config.tasks.end(),
                                [&](const TfTask& task) { return task.type == type && task.index == index; });
  if (own == config.tasks.end())
    refuse(format("the cluster has no {} {}, which is the task of this process", type, index));
  config.own = static_cast<std::size_t>(own - config.tasks.begin());
  return config;
}

}  // namespace

std::vector<Host> TfConfig::hosts(int slots) const {
  std::vector<Host> hosts;
  for (const TfTask& task : tasks) {
    const auto same =
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == task.host; });
    if (same != hosts.end()) {
      same->slots += slots;
    } else {
      hosts.push_back({task.host, slots});
    }
  }
  return hosts;
}

std::optional<TfConfig> find_tf_config(const Variables& variables) {
  const std::string text = variables.text(tf_config_variable);
  if (text.empty()) return {};
  try {
    const Json json = parse(text);
    if (!json.is_object()) refuse("it is not a JSON object");
    if (!json.contains("cluster") || json["cluster"].empty()) return {};
    return read(json);
  } catch (const Json::exception& error) {
    refuse(error.what());
  }
}

}  // namespace trainctl
