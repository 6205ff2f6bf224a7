// Compares two config.json files, and copies values from one to the other.
#include "io/hugging_face/kept_values.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "io/hugging_face/json_file.h"

namespace trainctl {
namespace {

constexpr std::int64_t largest_source_config = 4 << 20;

const Json& value_at(const Json& json, const char* key) {
  static const Json none;
  const auto found = json.find(key);
  return found == json.end() ? none : *found;
}

bool have_equal_sizes(const Json& a, const Json& b) {
  static constexpr std::array keys = {"vocab_size", "hidden_size", "num_hidden_layers", "n_embd", "n_layer"};
  return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return value_at(a, key) == value_at(b, key); });
}

// Whether the value is the id of a token, or a list of such ids, as the ends of chats are.
bool is_token(const Json& value, const Json& vocabulary) {
  if (value.is_array()) {
    return !value.empty() && std::all_of(value.begin(), value.end(),
                                         [&](const Json& id) { return !id.is_array() && is_token(id, vocabulary); });
  }
  return value.is_number_integer() && value >= 0 && value < vocabulary;
}

}  // namespace

void keep_hugging_face_values(const std::string& folder, Json& config) {
  const std::string path = folder + "/config.json";
  Json source;
  try {
    if (!exists(path)) return;
    source = read_json_object(path, largest_source_config);
  } catch (const Error&) {
    return;  // the folder may have changed since the run began, or cannot be reached
  }
  if (!have_equal_sizes(source, config)) return;
  // Rotary positions have no table, so that config.json alone limits them.
  const Json &before = value_at(source, "max_position_embeddings"), &own = value_at(config, "max_position_embeddings");
  const bool rotary = config.contains("rope_theta") || config.contains("rope_parameters");
  if (rotary && before.is_number_integer() && own.is_number_integer() && before > own) {
    config["max_position_embeddings"] = before;
  }
  // A run whose texts end with another token than the source's has another tokenizer.
  const Json &end = value_at(config, "eos_token_id"), &end_before = value_at(source, "eos_token_id");
  const bool is_same =
      end.is_null() || end == end_before ||
      (end_before.is_array() && std::find(end_before.begin(), end_before.end(), end) != end_before.end());
  if (!is_same) return;
  const Json vocabulary = value_at(config, "vocab_size");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const Json& token = value_at(source, key);
    if (value_at(config, key).is_null() && is_token(token, vocabulary)) config[key] = token;
  }
  if (end_before.is_array() && is_token(end_before, vocabulary)) config["eos_token_id"] = end_before;
}

}  // namespace trainctl
