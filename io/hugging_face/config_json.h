// Reads the values of a config.json one by one, and reports those that were not read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

class Reader;

// The largest number of layers that is read: the work of reading a config.json grows with it.
inline constexpr std::int64_t max_hugging_face_layers = 1000;

// What the value null of a key means: the key is absent, or the value is wrong, since transformers does not compute
// with it either.
enum class NullValue { is_absent, is_wrong };

// The object of a config.json, or an object inside it. All functions report wrong values to the reader, and then return
// a value of the right kind.
class ConfigJson {
 public:
  // `path` is the file's name in messages, `prefix` is put before keys in messages. The JSON must outlive the object.
  ConfigJson(const Json& json, std::string path, Reader& reader, std::string prefix = "");

  // The value of a key, which counts as read; nullptr if it is absent or null.
  const Json* find(const std::string& key);
  // Whether the file has the key, even with the value null.
  bool has(const std::string& key) const;

  // A whole number from 1 to `largest`. Without a default the key is required.
  std::int64_t count(const std::string& key, std::optional<std::int64_t> fallback = {},
                     std::int64_t largest = INT32_MAX, NullValue null = NullValue::is_wrong);
  // A whole number from 1, or null, which means the default.
  std::int64_t count_or_null(const std::string& key, std::int64_t fallback);
  // A number above 0.
  double positive(const std::string& key, double fallback);
  // A rate of dropout: from 0, and less than 1.
  double rate(const std::string& key, double fallback, NullValue null = NullValue::is_wrong);
  // null is false, as in Python.
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  // An object inside this one; no value if it is absent or null.
  std::optional<ConfigJson> object(const std::string& key);

  // Reports the value of a key if it is none of `values`: the preset has no network for other values. A value of null
  // is accepted where false or {} is, as in Python.
  void only(const std::string& key, const std::vector<Json>& values, const std::string& preset);
  // Marks keys that do not change the outputs of the network as read.
  void ignore(std::initializer_list<const char*> keys);
  // Reports all keys that were not read.
  void refuse_others();

  void error(const std::string& message);
  const std::string& path() const { return path_; }

 private:
  // The value of a key, which counts as read; nullptr if it is absent. Reports null if it is wrong.
  const Json* given(const std::string& key, NullValue null, const std::string& what);
  double number(const std::string& key, double fallback, NullValue null, const std::string& what,
                bool (*is_valid)(double));
  void expected(const std::string& key, const std::string& what, const Json& value);

  const Json* json_;
  std::string path_, prefix_;
  Reader* reader_;
  std::set<std::string> read_;
};

}  // namespace trainctl
