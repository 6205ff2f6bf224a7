// Reads and writes choices.
#include "core/spec/choice.h"

#include "core/base/format.h"
#include "core/spec/keys.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

std::vector<std::string> names_of(const ChoiceTable& table) {
  std::vector<std::string> names;
  for (const Section& choice : table.choices) names.push_back(choice.name);
  return names;
}

const Section* find(const ChoiceTable& table, const std::string& name, const SourceLocation& location, Reader& reader) {
  if (const Section* section = table.find(name)) return section;
  std::string hint = suggestion(name, names_of(table));
  if (hint.empty()) hint = "; there is " + join_or(names_of(table));
  reader.error(location, format("unknown {} '{}'{}", table.what, name, hint));
  return nullptr;
}

// Reads a choice's options from a node: a map, the value of the shorthand key, or null for all defaults.
bool fill(const Section& section, const Node& node, const SourceLocation& location, Reader& reader, Choice& choice,
          std::string_view ignored = {}) {
  const std::shared_ptr<Options> options = section.make();
  const ReadingContext context(reader, section.name);
  const bool good = section.read(node, reader, dynamic_cast<void*>(options.get()), ignored);
  choice = {section.name, location, options};
  return good;
}

// A null node, which means all defaults, at the location of a bare name.
Node null_at(const Node& node) {
  Node null;
  null.location = node.location;
  null.base_directory = node.base_directory;
  return null;
}

// Reads a map with the key `name`: `{name: adam, learning_rate: 1e-3}`.
bool read_named(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice) {
  const OpenChoice open = open_choice(table, *node.find("name"), reader);
  if (!open.section) return false;
  return fill(*open.section, node, node.location, reader, choice, "name");
}

bool read_item(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice) {
  const bool is_known = table.known_by_key(node) != nullptr;
  if (node.is_map() && node.entries.size() == 1 && node.entries[0].key != "name" && !is_known) {
    const Node::Entry& entry = node.entries[0];
    const Section* section = find(table, entry.key, entry.key_location, reader);
    return section &&
           fill(*section, entry.value.is_null() ? null_at(node) : entry.value, node.location, reader, choice);
  }
  const bool is_misplaced = node.is_map() && node.entries.size() > 1 && table.find(node.entries[0].key) != nullptr;
  if (is_misplaced && !is_known) {
    const Node::Entry& second = node.entries[1];
    reader.error(
        second.key_location,
        format("'{}' is on the same level as {} '{}', not below it", second.key, table.what, node.entries[0].key),
        node.entries[0].key_location, "indent it further, or begin a list item with '-';");
    return false;
  }
  return read_choice(table, node, reader, choice);
}

// Whether the only key of a map is an alternative, as in the items of lists: `{adam: {learning_rate: 1e-3}}`.
bool is_named_by_only_key(const ChoiceTable& table, const Node& node) {
  return node.is_map() && node.entries.size() == 1 && table.find(node.entries[0].key) != nullptr;
}

Node options_of(const ChoiceTable& table, const Choice& choice) {
  return table.find(choice.name)->write(dynamic_cast<const void*>(choice.options.get()));
}

}  // namespace

OpenChoice open_choice(const ChoiceTable& table, const Node& name, Reader& reader) {
  if (!name.is_scalar()) {
    reader.expected(name, format("the name of one {}", table.what));
    return {};
  }
  const Section* section = find(table, name.text, name.location, reader);
  if (!section) return {};
  return {section, section->make()};
}

bool read_choice(const ChoiceTable& table, const Node& node, Reader& reader, Choice& choice) {
  if (node.is_scalar()) {
    const Section* section = find(table, node.text, node.location, reader);
    return section && fill(*section, null_at(node), node.location, reader, choice);
  }
  // `{name: expression, expression: ...}` has both, unless `name` is an option of the alternative.
  const Section* known = table.known_by_key(node);
  const bool has_name = node.is_map() && node.find("name");
  if (known && (!has_name || known->find("name"))) return fill(*known, node, node.location, reader, choice);
  if (has_name) return read_named(table, node, reader, choice);
  if (is_named_by_only_key(table, node)) {
    const Node& options = node.entries[0].value;
    const std::string first = options.is_map() && !options.entries.empty() ? options.entries[0].key + ": ..." : "";
    reader.error(
        node.location,
        format("the options of {} '{}' belong in the same map as its name: write {}", table.what, node.entries[0].key,
               first.empty() ? node.entries[0].key : format("{{name: {}, {}}}", node.entries[0].key, first)));
    return false;
  }
  reader.expected(node, format("the name of one {} or a map with its name", table.what));
  return false;
}

bool read_choices(const ChoiceTable& table, const Node& node, Reader& reader, std::vector<Choice>& choices) {
  choices.clear();
  if (!node.is_sequence()) {
    const bool is_name = node.is_scalar() && table.find(node.text) != nullptr;
    reader.expected(node, format("a list of {}s{}", table.what, is_name ? format(", such as [{}]", node.text) : ""));
    return false;
  }
  bool good = true;
  for (const Node& item : node.items) {
    Choice choice;
    good &= read_item(table, item, reader, choice);
    choices.push_back(std::move(choice));
  }
  return good;
}

Node write_choice(const ChoiceTable& table, const Choice& choice) {
  const Node options = options_of(table, choice);
  if (options.entries.empty()) return scalar_node(choice.name);
  if (table.find(choice.name)->is_known_by_key()) return options;
  Node map = map_node();
  append(map, "name", scalar_node(choice.name));
  for (const Node::Entry& entry : options.entries) append(map, entry.key, entry.value);
  return map;
}

Node write_choices(const ChoiceTable& table, const std::vector<Choice>& choices) {
  Node list = sequence_node();
  for (const Choice& choice : choices) {
    Node options = options_of(table, choice);
    if (options.entries.empty()) {
      list.items.push_back(scalar_node(choice.name));
      continue;
    }
    if (table.find(choice.name)->is_known_by_key()) {
      list.items.push_back(std::move(options));
      continue;
    }
    Node item = map_node();
    append(item, choice.name, std::move(options));
    list.items.push_back(std::move(item));
  }
  return list;
}

Choice default_choice(const ChoiceTable& table, const std::string& name) {
  const Section* section = table.find(name);
  require(section, "the default is not a known " + table.what + ": " + name);
  return {name, {}, section->make()};
}

}  // namespace trainctl
