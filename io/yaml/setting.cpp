// Applies `--set path=value` to a document as if the value were in the file.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "core/spec/units.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = path.find('.', begin);
    parts.push_back(path.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// Sets the locations of all nodes to the setting and the path of each node, so that messages name them.
void set_location(Node& node, const SourceLocation& location) {
  node.location = location;
  const auto below = [&](const std::string& part) {
    return SourceLocation{location.file + "." + part, location.line, location.column};
  };
  for (std::size_t i = 0; i < node.items.size(); ++i) set_location(node.items[i], below(std::to_string(i)));
  for (Node::Entry& entry : node.entries) {
    entry.key_location = below(entry.key);
    set_location(entry.value, entry.key_location);
  }
}

// Converts a bare choice to a map to which options can be added: `adam` to `{name: adam}`, in a list `dense` to
// `{dense: {}}`.
void open_scalar(Node& node, const std::string& next, bool in_list) {
  Node map = map_node();
  map.location = node.location;
  map.base_directory = node.base_directory;
  if (in_list && node.text == next) {
    Node options = map;
    map.entries.push_back({node.text, node.location, std::move(options)});
  } else if (node.is_scalar()) {
    map.entries.push_back({"name", node.location, node});
  }
  node = std::move(map);
}

// Returns the value at the path, which is created if it does not exist; reports an error and returns null if the path
// is invalid.
Node* descend(Node& document, const std::vector<std::string>& parts, const SourceLocation& location, Reader& reader) {
  Node* node = &document;
  bool in_list = false;
  for (const std::string& part : parts) {
    if (part.empty()) {
      reader.error(location, "the path has an empty part; write it as train.epochs");
      return nullptr;
    }
    if (node->is_sequence()) {
      const auto index = parse_integer(part);
      const auto size = static_cast<std::int64_t>(node->items.size());
      if (!index || *index < 0 || *index >= size) {
        reader.error(location,
                     format("'{}' is not an item of this list: it has {}", part,
                            size == 0 ? "none" : format("items 0 to {}", size - 1)),
                     node->location, "list");
        return nullptr;
      }
      node = &node->items[static_cast<std::size_t>(*index)];
      in_list = true;
      continue;
    }
    if (!node->is_map()) open_scalar(*node, part, in_list);
    in_list = false;
    auto entry = std::find_if(node->entries.begin(), node->entries.end(),
                              [&](const Node::Entry& candidate) { return candidate.key == part; });
    if (entry == node->entries.end()) {
      Node empty;
      empty.location = location;
      node->entries.push_back({part, location, std::move(empty)});
      entry = node->entries.end() - 1;
    }
    node = &entry->value;
  }
  return node;
}

}  // namespace

void apply_setting(Node& document, const std::string& setting, const VariableLookup& variables, Reader& reader,
                   const std::string& directory) {
  if (const auto invalid = find_invalid_utf8(setting)) {
    const std::string valid_part = setting.substr(0, std::min(*invalid, setting.find('=')));
    reader.error({"--set " + valid_part, 0, 0}, format("byte {} of the setting is not UTF-8", *invalid + 1));
    return;
  }
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    reader.error({"--set " + setting, 0, 0}, "expected PATH=VALUE, for example train.epochs=5");
    return;
  }
  const std::string path = setting.substr(0, equals);
  const SourceLocation location{"--set " + path, 0, 0};
  Reader syntax;
  std::error_code failure;
  const std::string base_directory = directory.empty() ? std::filesystem::current_path(failure).string() : directory;
  Node value = parse_yaml(setting.substr(equals + 1), location.file, base_directory, syntax);
  if (!syntax.ok()) {
    reader.error(location, syntax.diagnostics().front().message);
    return;
  }
  const Extent extent = extent_of(value);
  if (!reader.take(location, extent.values, extent.bytes)) return;
  if (split(path).size() + extent.levels > ConfigLimits::levels) {
    reader.error(location, format("more than {} levels", ConfigLimits::levels));
    return;
  }
  set_location(value, location);
  expand_variables(value, variables, reader, base_directory);
  if (Node* target = descend(document, split(path), location, reader)) *target = std::move(value);
}

}  // namespace trainctl
