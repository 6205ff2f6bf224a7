// Translates `compile_config`. Settings that are not simple are left to the user, since they do not change the
// network's outputs.
#include "io/keras/compiled.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/metrics/choices.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/optim/choices.h"
#include "core/optim/optimizer.h"
#include "io/keras/values.h"

namespace trainctl {
namespace {

// Whether an option is a number, a word, true or false, or lists of such values.
bool is_plain(const Json& value) {
  if (value.is_array()) return std::all_of(value.begin(), value.end(), is_plain);
  return !value.is_object() && !value.is_null();
}

// Translates the object to a choice of the table. Returns null if the table has no such choice, or if the object has an
// option that the choice does not have.
Node as_choice(const ChoiceTable& table, const std::string& name, const Json* config) {
  const Section* section = table.find(name);
  if (section == nullptr) return {};
  Node options = map_node();
  for (const auto& [key, option] : config->items()) {
    const bool neutral = option.is_null() || option == false || key == "name" || key == "dtype" || key == "axis" ||
                         key == "reduction" || key == "ema_momentum" || key == "fn" || key == "steps_per_execution" ||
                         key == "jit_compile";
    if (section->find(key) != nullptr && !option.is_null()) {
      if (!is_plain(option)) return {};  // a schedule of the learning rate
      append(options, key, plain_node(option));
    } else if (!neutral && option != 0) {
      return {};
    }
  }
  // A loss decides by itself whether the network ends in logits.
  std::erase_if(options.entries, [](const Node::Entry& entry) { return entry.key == "from_logits"; });
  Node choice = choice_node(table, section->name, options);
  Choice read;
  Reader reader;
  return read_choice(table, choice, reader, read) ? choice : Node{};
}

Node as_choice(const ChoiceTable& table, const Json& value) {
  const auto [name, config] = keras_object(value);
  return as_choice(table, name, config);
}

// Returns the choice with one more option set to true.
Node with_option(Node choice, const char* key) {
  if (choice.is_scalar()) {
    const Node name = choice;
    choice = map_node();
    append(choice, "name", name);
  }
  append(choice, key, scalar_node("true"));
  return choice;
}

// Keras decouples weight decay from the gradient in all optimizers; in trainctl only adamw, lion and adafactor do.
// Keras' Adam adds epsilon before the bias correction, its RMSprop and Adagrad add it before the root, and its
// Adafactor limits the learning rate regardless of relative_step.
Node as_optimizer(const Json& value) {
  auto [name, config] = keras_object(value);
  const auto decay = config->find("weight_decay");
  const bool decays = decay != config->end() && !decay->is_null() && *decay != 0 && *decay != false;
  if (decays && name == "adam") name = "adamw";
  if (decays && name != "adamw" && name != "lion" && name != "adafactor") return {};
  Json options = *config;
  options.erase("relative_step");
  Node choice = as_choice(optimizer_choices(), name, &options);
  if (choice.is_null()) return choice;
  const Section& section = *optimizer_choices().find(name);
  for (const char* key : {"epsilon_hat", "epsilon_in_root"}) {
    if (section.find(key) != nullptr) choice = with_option(std::move(choice), key);
  }
  return choice;
}

bool is_set(const Json& config, const char* key) { return config.contains(key) && !config[key].is_null(); }

std::string shown(const Json& value) {
  const std::string text = json_text(value);
  return text.size() > 80 ? text.substr(0, 80) + "..." : text;
}

// Adds the metrics of all lists that Keras nests for several outputs; returns false if a metric has no counterpart.
bool add_metrics(const Json& value, Node& metrics) {
  if (value.is_array()) {
    bool good = true;
    for (const Json& item : value) good &= add_metrics(item, metrics);
    return good;
  }
  Node metric = as_choice(metric_choices(), value);
  if (metric.is_null()) return false;
  metrics.items.push_back(std::move(metric));
  return true;
}

}  // namespace

CompiledWith compiled_with(const Json& config) {
  CompiledWith result{map_node(), {}};
  if (!config.is_object()) return result;
  const auto leave_out = [&](const char* key, const Json& value) {
    result.other.push_back(format("{}: {}", key, shown(value)));
  };
  if (is_set(config, "loss")) {
    Node loss = as_choice(loss_choices(), config["loss"]);
    if (loss.is_null()) {
      leave_out("loss", config["loss"]);
    } else {
      append(result.train, "loss", std::move(loss));
    }
  }
  if (is_set(config, "metrics")) {
    Node metrics = sequence_node();
    if (!add_metrics(config["metrics"], metrics)) {
      leave_out("metrics", config["metrics"]);
    } else if (!metrics.items.empty()) {
      append(result.train, "metrics", std::move(metrics));
    }
  }
  const char* key = config.contains("optimizer_config") ? "optimizer_config" : "optimizer";  // .h5, .keras
  if (is_set(config, key)) {
    Node optimizer = as_optimizer(config[key]);
    if (optimizer.is_null()) {
      leave_out("optimizer", config[key]);
    } else {
      append(result.train, "optimizer", std::move(optimizer));
    }
  }
  for (const char* further : {"loss_weights", "weighted_metrics"}) {
    if (is_set(config, further)) leave_out(further, config[further]);
  }
  return result;
}

}  // namespace trainctl
