// Sets the environment variables of callbacks for each event.
#include "io/metrics/callbacks/callbacks.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/base/format.h"

namespace trainctl {
namespace {

// Converts "val_loss" to VAL_LOSS; characters that a variable's name cannot have become _.
std::string variable_of(const std::string& name) {
  std::string variable;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    variable += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return variable;
}

void add_values(const std::map<std::string, double>& values, const std::string& prefix,
                std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : values) variables[variable_of(prefix + name)] = format("{}", value);
}

}  // namespace

Callbacks::Callbacks(std::vector<Choice> callbacks, const std::string& name, const std::string& run_directory)
    : callbacks_(std::move(callbacks)),
      variables_{{"RUN", name}, {"RUN_DIR", std::filesystem::absolute(run_directory).string()}},
      queue_(run_directory + "/callbacks.log") {}

void Callbacks::run(const std::string& event, Variables variables) {
  variables["EVENT"] = event;
  variables.insert(variables_.begin(), variables_.end());
  for (const Choice& callback : callbacks_) {
    if (callback.name != event) continue;
    const auto& options = callback.as<CallbackOptions>();
    CommandQueue::Command command{options.command, {}, options.timeout.value};
    for (const auto& [name, value] : variables) command.environment["TRAINCTL_" + name] = value;
    queue_.add(std::move(command));
  }
}

void Callbacks::epoch(const EpochEvent& event) {
  Variables variables{{"STEP", std::to_string(event.step)}, {"EPOCH", format("{:g}", event.epoch)}};
  add_values(event.train, "", variables);
  add_values(event.validation, "val_", variables);
  run("epoch", std::move(variables));
}

void Callbacks::checkpoint(const CheckpointEvent& event) {
  const std::string path = std::filesystem::absolute(event.path).string();
  run("checkpoint", {{"STEP", std::to_string(event.step)}, {"CHECKPOINT", path}});
}

void Callbacks::end(const EndEvent& event) {
  Variables variables{{"STEP", std::to_string(event.step)},
                      {"EPOCH", format("{:g}", event.epoch)},
                      {"STATUS", event.status},
                      {"SECONDS", format("{:.3f}", event.seconds)}};
  add_values(event.train, "", variables);
  add_values(event.validation, "val_", variables);
  run("end", std::move(variables));
}

}  // namespace trainctl
