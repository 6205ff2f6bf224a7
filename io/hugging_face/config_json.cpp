// Reads values of a config.json.
#include "io/hugging_face/config_json.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/spec/reader.h"

namespace trainctl {
namespace {

std::string shown(const Json& value) {
  constexpr std::size_t longest = 60;
  std::string text = json_text(value);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

}  // namespace

ConfigJson::ConfigJson(const Json& json, std::string path, Reader& reader, std::string prefix)
    : json_(&json), path_(std::move(path)), prefix_(std::move(prefix)), reader_(&reader) {}

void ConfigJson::error(const std::string& message) { reader_->error(SourceLocation{path_}, message); }

void ConfigJson::expected(const std::string& key, const std::string& what, const Json& value) {
  error(format("'{}{}' must be {}, not {}", prefix_, key, what, shown(value)));
}

const Json* ConfigJson::find(const std::string& key) {
  read_.insert(key);
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

bool ConfigJson::has(const std::string& key) const { return json_->contains(key); }

const Json* ConfigJson::given(const std::string& key, NullValue null, const std::string& what) {
  const Json* value = find(key);
  if (value == nullptr && null == NullValue::is_wrong && has(key)) expected(key, what, Json());
  return value;
}

std::int64_t ConfigJson::count(const std::string& key, std::optional<std::int64_t> fallback, std::int64_t largest,
                               NullValue null) {
  const std::string what = format("a whole number from 1 to {}", largest);
  const Json* value = given(key, fallback ? null : NullValue::is_absent, what);
  if (value == nullptr) {
    if (!fallback) error(format("'{}{}' is missing", prefix_, key));
    return fallback.value_or(1);
  }
  if (value->is_number_integer() && *value >= 1 && *value <= largest) return value->get<std::int64_t>();
  expected(key, what, *value);
  return fallback.value_or(1);
}

std::int64_t ConfigJson::count_or_null(const std::string& key, std::int64_t fallback) {
  return count(key, fallback, INT32_MAX, NullValue::is_absent);
}

double ConfigJson::number(const std::string& key, double fallback, NullValue null, const std::string& what,
                          bool (*is_valid)(double)) {
  const Json* value = given(key, null, what);
  if (value == nullptr) return fallback;
  if (value->is_number() && is_valid(value->get<double>())) return value->get<double>();
  expected(key, what, *value);
  return fallback;
}

double ConfigJson::positive(const std::string& key, double fallback) {
  return number(key, fallback, NullValue::is_wrong, "a number above 0", [](double value) { return value > 0; });
}

double ConfigJson::rate(const std::string& key, double fallback, NullValue null) {
  return number(key, fallback, null, "a number from 0 that is less than 1",
                [](double value) { return value >= 0 && value < 1; });
}

bool ConfigJson::flag(const std::string& key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return has(key) ? false : fallback;
  if (value->is_boolean()) return value->get<bool>();
  expected(key, "true or false", *value);
  return fallback;
}

std::string ConfigJson::text(const std::string& key, const std::string& fallback) {
  const Json* value = given(key, NullValue::is_wrong, "a text");
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  expected(key, "a text", *value);
  return fallback;
}

std::optional<ConfigJson> ConfigJson::object(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return ConfigJson(*value, path_, *reader_, format("{}{}.", prefix_, key));
  expected(key, "an object", *value);
  return std::nullopt;
}

void ConfigJson::only(const std::string& key, const std::vector<Json>& values, const std::string& preset) {
  const Json* value = find(key);
  if (value == nullptr && !has(key)) return;
  const Json null, &found = value == nullptr ? null : *value;
  std::vector<std::string> possible;
  for (const Json& one : values) {
    const bool is_false = one == Json(false) || one == Json::object();
    if (one == found || (value == nullptr && is_false)) return;
    possible.push_back(shown(one));
  }
  error(format("'{}{}' is {}, which the preset {} cannot compute: there it is always {}", prefix_, key, shown(found),
               preset, join_or(possible)));
}

void ConfigJson::ignore(std::initializer_list<const char*> keys) { read_.insert(keys.begin(), keys.end()); }

void ConfigJson::refuse_others() {
  for (const auto& [key, value] : json_->items()) {
    if (read_.contains(key) || value.is_null()) continue;
    error(
        format("'{}{}' is a key that trainctl does not know, and it may change what the network computes; remove it "
               "from the file if it does not",
               prefix_, key));
  }
}

}  // namespace trainctl
