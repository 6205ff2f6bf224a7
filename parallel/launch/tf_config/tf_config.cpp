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
    if (!address.is_string()) refuse(format("an address of '{}' must be a text, but is {}", type, json_kind(address)));
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
  JsonFault fault;
  Json json = parse_json(text, fault);
  if (json.is_object()) return json;
  if (!json.is_discarded()) refuse("it must be a JSON object, but is " + json_kind(json));
  if (fault.line == 0) refuse(fault.problem);
  refuse(format("it is not JSON at line {}, column {}: {}", fault.line, fault.column, fault.problem));
}

// The object of a key. `key` is its path in errors, such as "task".
const Json& object_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) refuse(format("the key '{}' is missing", key));
  if (!found->is_object()) refuse(format("'{}' must be an object, but is {}", key, json_kind(*found)));
  return *found;
}

TfConfig read(const Json& json) {
  TfConfig config;
  const Json &cluster = object_at(json, "cluster"), &task = object_at(json, "task");
  const auto type = task.find("type"), number = task.find("index");
  if (type == task.end() || !type->is_string()) refuse("'task' must have the key 'type' with a text");
  if (number == task.end()) refuse("'task' must have the key 'index' with a whole number");
  const std::string kind = *type;
  const int index = read_index(*number);
  refuse_other_tasks(kind, cluster);
  for (const char* each : {"chief", "worker"}) add_tasks(config, cluster, each);
  refuse_same_addresses(config);
  if (cluster.contains("chief") && cluster["chief"].size() > 1) {
    refuse(format("the cluster has {} chiefs, but can have one", cluster["chief"].size()),
           "list one of them as `chief`, and the others as `worker`");
  }
  const auto own = std::find_if(config.tasks.begin(), config.tasks.end(),
                                [&](const TfTask& task) { return task.type == kind && task.index == index; });
  if (own == config.tasks.end())
    refuse(format("the cluster has no {} {}, which is the task of this process", kind, index));
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
    if (!json.contains("cluster") || json["cluster"].empty()) return {};
    return read(json);
  } catch (const Json::exception& error) {
    refuse(json_problem(error));
  }
}

}  // namespace trainctl
