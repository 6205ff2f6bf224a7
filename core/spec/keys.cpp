// Reads and writes sections: keys, defaults and rules across keys.
#include "core/spec/keys.h"

#include <unordered_set>
#include <utility>

#include "core/base/format.h"
#include "core/spec/key_hint.h"
#include "core/spec/units.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

// A section and the object that it fills: the section of the map itself, or the section of a flattened choice with keys
// in the same map.
struct Target {
  const Section* section;
  void* object;
  std::string what;  // for a choice: the noun of its table ("optimizer")
};

// The names of all keys that the map may have. If the name of a flattened choice is unknown, the keys of all its
// alternatives are included.
std::vector<std::string> known_keys(const Section& section, const std::vector<Target>& targets) {
  std::vector<std::string> names;
  for (const Target& target : targets) {
    for (const Key& key : target.section->keys) {
      if (!key.rest) names.push_back(key.name);
    }
  }
  if (targets.size() > 1) return names;
  for (const Key& key : section.keys) {
    if (!key.flatten) continue;
    for (const Section& choice : key.type.table().choices) {
      for (const Key& inner : choice.keys) names.push_back(inner.name);
    }
  }
  return names;
}

// The context of an unknown key, for its message: " in train", " in data with data set idx".
std::string within(const std::vector<Target>& targets) {
  if (targets[0].section->name.empty()) return "";
  std::string text = " in " + targets[0].section->name;
  for (std::size_t i = 1; i < targets.size(); ++i) text += " with " + targets[i].what + " " + targets[i].section->name;
  return text;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& candidate : names) {
    if (candidate == name) return true;
  }
  return false;
}

// The result of reading a map.
struct ReadResult {
  bool good = true;
  bool complete = true;                 // whether all values that rules across keys need were read
  std::vector<std::string> meant = {};  // keys that are probably meant by unknown ones, which are not missing

  // Records that a key could not be read; `value` is null if the key is missing. A list of choices with wrong items is
  // still usable by the rules.
  void failed(const Key& key, const Node* value) {
    using Kind = TypeInfo::Kind;
    good = false;
    const bool list = key.type.kind == Kind::choices && value && value->is_sequence();
    if (!list && key.type.kind != Kind::section && key.type.kind != Kind::choice) complete = false;
  }
};

void read_entries(const Section& section, const std::vector<Target>& targets, const Node& map, Reader& reader,
                  std::string_view ignored, ReadResult& result) {
  if (!keys_are_unique(map, reader)) result.good = false;
  const std::vector<std::string> names = known_keys(section, targets);
  std::unordered_set<std::string_view> seen;
  Node remaining = map_node();
  for (const Node::Entry& entry : map.entries) {
    if (entry.key == ignored || !seen.insert(entry.key).second) continue;  // repeated keys were reported before
    const Key* found = nullptr;
    for (const Target& target : targets) {
      const Key* key = target.section->find(entry.key);
      if (!key || found) continue;
      found = key;
      const ReadingContext context(reader, entry.key);
      // A section with an error of its own, a missing included file, is read without its rules: see read_map().
      const bool is_section = key->type.kind == TypeInfo::Kind::section && entry.value.is_map();
      const bool wrong = (reader.reported(entry.value.location) && !is_section) ||
                         (!key->flatten && !key->read(entry.value, reader, target.object));
      if (wrong) result.failed(*key, &entry.value);
    }
    if (found || contains(names, entry.key)) continue;
    if (section.rest() != nullptr && entry.value.is_null()) {
      reader.error(entry.key_location,
                   format("'{}' has no value; inside {{ }}, a text with commas needs quotes", entry.key));
      result.good = result.complete = false;
      continue;
    }
    if (section.rest() != nullptr) {
      remaining.entries.push_back(entry);
      continue;
    }
    KeyHint hint = key_hint(entry.key, section, names);
    reader.error(entry.key_location, format("unknown key '{}'{}{}", entry.key, within(targets), hint.text));
    result.meant.push_back(std::move(hint.meant));
    result.good = false;
  }
  if (const Key* rest = section.rest(); rest != nullptr && !rest->read(remaining, reader, targets[0].object)) {
    result.failed(*rest, &map);
  }
}

void report_missing(const Section& section, const Node& map, Reader& reader, ReadResult& result) {
  for (const Key& key : section.keys) {
    if (!key.required || map.find(key.name)) continue;
    const std::string owner = section.name.empty() ? "the config" : section.name;
    if (!contains(result.meant, key.name)) {
      reader.error(map.location, format("{} needs '{}': {}", owner, key.name, key.meaning));
    }
    result.failed(key, nullptr);
  }
}

// The value of a key; nullptr if the key is missing or has no value: null, "none", an empty list or an empty map.
const Node* value_of(const Node& map, const std::string& key) {
  const Node* value = map.find(key);
  if (!value || value->is_null() || is_word(*value, "none")) return nullptr;
  const bool empty = (value->is_sequence() && value->items.empty()) || (value->is_map() && value->entries.empty());
  return empty ? nullptr : value;
}

// `meant`: keys that are probably meant by unknown ones, which are not missing.
void check_groups(const Section& section, const Node& map, const std::vector<std::string>& meant, Reader& reader) {
  for (const Section::Group& group : section.exclusive) {
    const Node* first = nullptr;
    std::string name;
    for (const std::string& key : group.keys) {
      const Node* value = value_of(map, key);
      if (!value) continue;
      if (first) {
        reader.error(value->location, format("{} and {} exclude each other; set only one of them", key, name),
                     first->location, name);
      } else {
        first = value;
        name = key;
      }
    }
  }
  for (const Section::Group& group : section.needed) {
    std::vector<std::string> quoted;
    bool found = false;
    for (const std::string& key : group.keys) {
      found = found || value_of(map, key) || contains(meant, key);
      quoted.push_back("'" + key + "'");
    }
    if (!found) reader.error(map.location, format("{} needs {}: {}", section.name, join_or(quoted), group.meaning));
  }
}

bool in_range(const Range& range, double value) {
  return !(range.at_least && value < *range.at_least) && !(range.more_than && value <= *range.more_than) &&
         !(range.at_most && value > *range.at_most) && !(range.less_than && value >= *range.less_than);
}

// The limits in words; `unit` is that of the limits: "at least 3 s".
std::string range_phrase(const Range& range, std::string_view unit) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view words, std::optional<double> limit) {
    if (limit) parts.push_back(format("{} {}{}", words, *limit, *limit == 0 ? "" : unit));
  };
  add("at least", range.at_least);
  add("more than", range.more_than);
  add("at most", range.at_most);
  add("less than", range.less_than);
  return parts.size() < 2 ? parts.front() : parts.front() + " and " + parts.back();
}

// The amount in a scalar that may have a unit: 10 for "10 steps".
std::optional<double> leading_number(const std::string& text) {
  if (const auto number = parse_number(text)) return number;
  if (const auto duration = parse_duration(text)) return duration->amount;
  if (const auto size = parse_size(text)) return static_cast<double>(size->bytes);
  return {};
}

// Reports a number outside the range ("units must be at least 1, not 0"); in lists and maps, checks every number.
bool check_range(const Range& range, std::string_view unit, const Node& node, Reader& reader) {
  if (!range.at_least && !range.more_than && !range.at_most && !range.less_than) return true;
  bool good = true;
  for (const Node& item : node.items) good &= check_range(range, unit, item, reader);
  for (const Node::Entry& entry : node.entries) {
    const ReadingContext context(reader, format("{}.{}", reader.key(), entry.key));
    good &= check_range(range, unit, entry.value, reader);
  }
  if (!node.is_scalar()) return good;
  const auto number = leading_number(node.text);
  if (!number || in_range(range, *number)) return true;
  reader.error(node.location, format("{} must be {}, not {}", reader.key(), range_phrase(range, unit), node.text));
  return false;
}

}  // namespace

bool Key::read(const Node& node, Reader& reader, void* object) const {
  const std::string_view unit = type.kind == TypeInfo::Kind::time ? " s" : "";
  return functions->read(node, reader, static_cast<char*>(object) + offset) &&
         check_range(type.range, unit, node, reader);
}

Node Key::write(const void* object) const { return functions->write(static_cast<const char*>(object) + offset); }

Key& add_key(Section& section, std::string_view name, std::string_view meaning, const Range& range, bool required,
             const MemberFunctions& functions, std::ptrdiff_t offset, const void* defaults) {
  Key& key = section.keys.emplace_back();
  key.name = name;
  key.meaning = meaning;
  key.type = functions.type();
  key.type.range = range;
  key.required = required;
  key.functions = &functions;
  key.offset = offset;
  if (!required && key.type.kind != TypeInfo::Kind::section) {
    const Node value = key.write(defaults);
    if (!value.is_null()) key.default_text = flow_text(value);
  }
  return key;
}

const Key* Section::find(std::string_view key) const {
  for (const Key& candidate : keys) {
    if (candidate.name == key && !candidate.rest) return &candidate;
  }
  return nullptr;
}

const Key* Section::rest() const {
  for (const Key& candidate : keys) {
    if (candidate.rest) return &candidate;
  }
  return nullptr;
}

bool Section::is_known_by_key() const {
  const Key* key = find(name);
  return key != nullptr && key->required;
}

bool Section::read(const Node& node, Reader& reader, void* object, std::string_view ignored) const {
  if (node.is_map()) return read_map(node, reader, object, ignored);
  if (!node.is_null() && shorthand.empty()) {
    reader.expected(node, TypeInfo{.kind = TypeInfo::Kind::section});
    return false;
  }
  Node map = map_node();
  map.location = node.location;
  map.base_directory = node.base_directory;
  if (!node.is_null()) map.entries.push_back({shorthand, node.location, node});
  return read_map(map, reader, object, ignored);
}

bool Section::read_map(const Node& map, Reader& reader, void* object, std::string_view ignored) const {
  // Whether an error of the whole map is known: a file that it includes cannot be read, say. Keys may be missing since
  // they are in this file, so that missing keys and rules across keys are not reported then.
  const bool is_incomplete = reader.reported(map.location);
  std::vector<Target> targets{{this, object, {}}};
  ReadResult result;
  for (const Key& key : keys) {
    const Node* name = key.flatten ? map.find(key.name) : nullptr;
    if (!name || reader.reported(name->location)) continue;
    const ReadingContext context(reader, key.name);
    const Key::Flattened choice = key.flatten(*name, reader, object);
    if (choice.section) targets.push_back({choice.section, choice.object, key.type.table().what});
  }
  read_entries(*this, targets, map, reader, ignored, result);
  if (is_incomplete) return false;
  for (const Target& target : targets) report_missing(*target.section, map, reader, result);
  if (!result.complete) return false;
  const std::size_t before = reader.count();
  for (const Target& target : targets) {
    check_groups(*target.section, map, result.meant, reader);
    for (const auto& check : target.section->checks) check(target.object, map, reader);
  }
  return result.good && reader.count() == before;
}

Node Section::write(const void* object) const {
  Node map = map_node();
  for (const Key& key : keys) {
    Node value = key.write(object);
    if (value.is_null()) continue;
    if ((!key.flatten && !key.rest) || !value.is_map()) {
      append(map, key.name, std::move(value));
      continue;
    }
    for (Node::Entry& entry : value.entries) {
      append(map, key.flatten && entry.key == "name" ? key.name : entry.key, std::move(entry.value));
    }
  }
  return map;
}

const Section* ChoiceTable::find(std::string_view name) const {
  for (const Section& choice : choices) {
    if (choice.name == name || contains(choice.aliases, std::string(name))) return &choice;
  }
  return nullptr;
}

const Section* ChoiceTable::known_by_key(const Node& map) const {
  for (const Section& choice : choices) {
    const Node* value = choice.is_known_by_key() ? map.find(choice.name) : nullptr;
    if (value != nullptr && !value->is_map()) return &choice;
  }
  return nullptr;
}

}  // namespace trainctl
