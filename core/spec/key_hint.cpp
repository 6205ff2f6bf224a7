// Finds the key that is meant by the words of other frameworks, among the keys of inner maps, and by similarity.
#include "core/spec/key_hint.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

// Names that other frameworks and papers use for keys, if they are not similar to our names.
constexpr std::pair<std::string_view, std::string_view> synonyms[] = {{"lr", "learning_rate"},
                                                                      {"wd", "weight_decay"},
                                                                      {"decay", "weight_decay"},
                                                                      {"decay", "momentum"},
                                                                      {"ema_momentum", "momentum"},
                                                                      {"betas", "beta_1"},
                                                                      {"alpha", "rho"},
                                                                      {"gamma", "factor"},
                                                                      {"gamma", "decay_rate"},
                                                                      {"eta_min", "minimum"},
                                                                      {"end_learning_rate", "minimum"},
                                                                      {"milestones", "boundaries"},
                                                                      {"warmup_steps", "warmup"},
                                                                      {"step_size", "every"},
                                                                      {"factor", "alpha"},
                                                                      {"batch", "batch_size"},
                                                                      {"validation_data", "validation"},
                                                                      {"validation_split", "validation"},
                                                                      {"input_shape", "shape"},
                                                                      {"compile", "train"},
                                                                      {"fit", "train"}};

// What replaces a key of Keras for which no key has a similar meaning.
constexpr std::pair<std::string_view, std::string_view> replacements[] = {
    {"callbacks",
     "; early_stopping, reduce_on_plateau and others are keys of `train`, and `checkpoint` says what is saved"},
    {"verbose", "; `trainctl run --quiet` and --progress set what a run prints"},
    {"steps_per_epoch", "; an epoch is a pass over the data, and max_steps ends a run after a number of steps"}};

// Whether the value of a key is a map that may have the key `name`. The layers of a network are not searched.
bool holds_key(const Key& key, const std::string& name) {
  using Kind = TypeInfo::Kind;
  if (key.flatten) return false;
  if (key.type.kind == Kind::section) return key.type.section().find(name) != nullptr;
  if (key.type.kind != Kind::choice) return false;
  for (const Section& choice : key.type.table().choices) {
    if (choice.find(name) != nullptr) return true;
  }
  return false;
}

KeyHint meant_key(std::string name) { return {format("; did you mean '{}'?", name), std::move(name)}; }

}  // namespace

KeyHint key_hint(const std::string& key, const Section& section, const std::vector<std::string>& names) {
  std::string_view meant = key;
  for (const auto& [word, name] : synonyms) {
    if (key != word) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) return meant_key(std::string(name));
    meant = name;
  }
  // In a section with a flattened choice, `data`, the keys of other choices may have the same names.
  const bool is_flat =
      std::any_of(section.keys.begin(), section.keys.end(), [](const Key& of) { return !!of.flatten; });
  for (const Key& inner : section.keys) {
    if (is_flat) break;
    for (const std::string& name : {key, std::string(meant)}) {
      if (!holds_key(inner, name)) continue;
      const std::string what = name == key ? "it" : "'" + name + "'",
                        choice = inner.type.kind == TypeInfo::Kind::choice ? "name: ..., " : "";
      return {format("; {} is a key of '{}': write `{}: {{{}{}: ...}}`", what, inner.name, inner.name, choice, name)};
    }
  }
  for (const auto& [word, replacement] : replacements) {
    if (key == word && section.name == "train") return {std::string(replacement)};
  }
  if (key == "activity_regularizer") {
    return {
        "; it is an added loss, model: {add_loss: {NAME: {from: LAYER, expression: \"0.01 * sum(square(x), "
        "axis=-1)\"}}}"};
  }
  const std::string near = nearest(key, names);
  return near.empty() ? KeyHint{} : meant_key(near);
}

}  // namespace trainctl
