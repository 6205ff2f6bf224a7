// Writes the JSON Schema from the declarations of keys. Choice tables become definitions, because layers may contain
// layers.
#include "core/spec/schema.h"

#include <algorithm>

#include "core/base/json.h"
#include "core/spec/units.h"

namespace trainctl {
namespace {

using Kind = TypeInfo::Kind;

Json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::scalar:
      if (node.quoted) return node.text;
      if (node.text == "true" || node.text == "false") return node.text == "true";
      if (const auto whole = parse_integer(node.text)) return *whole;
      if (const auto number = parse_number(node.text)) return *number;
      return node.text;
    case Node::Kind::sequence: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::map: {
      Json map = Json::object();
      for (const Node::Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
      return map;
    }
  }
  return nullptr;
}

Json bounded(Json schema, const Range& range) {
  if (range.at_least) schema["minimum"] = *range.at_least;
  if (range.more_than) schema["exclusiveMinimum"] = *range.more_than;
  if (range.at_most) schema["maximum"] = *range.at_most;
  if (range.less_than) schema["exclusiveMaximum"] = *range.less_than;
  return schema;
}

Json text_matching(const std::string& pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

// The name of a choice, or one of its aliases.
Json name_schema(const Section& choice) {
  if (choice.aliases.empty()) return {{"const", choice.name}};
  Json names = choice.aliases;
  names.insert(names.begin(), choice.name);
  return {{"enum", names}};
}

class JsonWriter {
 public:
  explicit JsonWriter(const ParseValue& parse) : parse_(parse) {}

  Json write(const Section& root) {
    Json schema = object(root);
    schema.erase("description");
    Json head = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "trainctl config"},
                 {"description", root.meaning}};
    head.update(schema);
    head.update(required_unless_included(root));
    definitions_["variable"] = {
        {"type", "string"}, {"pattern", "\\$\\{"}, {"description", "A value with ${VARIABLES}."}};
    head["$defs"] = definitions_;
    return head;
  }

 private:
  // The schema of a map with the keys of a section. It has no "required" keyword: required_unless_included() and the
  // callers for choices add it.
  Json object(const Section& section, bool includes = true) {
    Json properties = Json::object();
    for (const Key& key : section.keys) {
      if (!key.flatten && !key.rest) properties[key.name] = property(key);
    }
    if (includes) properties["include"] = {{"type", "string"}, {"description", "A file whose map is merged here."}};
    Json schema = {{"type", "object"}, {"description", section.meaning}};
    for (const Key& key : section.keys) {
      if (!key.flatten) continue;
      schema["anyOf"] = Json::array();
      for (const Section& choice : key.type.table().choices) schema["anyOf"].push_back(branch(key, choice, properties));
      return schema;
    }
    schema["properties"] = properties;
    schema["additionalProperties"] = false;
    if (const Key* rest = section.rest()) schema["additionalProperties"] = type(*rest->type.item, rest->type.range);
    for (const Section::Group& group : section.exclusive) add_exclusive(group.keys, schema["allOf"]);
    return schema;
  }

  // Adds the rules that at most one of the keys has a value.
  static void add_exclusive(const std::vector<std::string>& keys, Json& rules) {
    const Json value = {{"not", {{"enum", Json::array({"none", nullptr, Json::object(), Json::array()})}}}};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (std::size_t j = i + 1; j < keys.size(); ++j) {
        rules.push_back(
            {{"not",
              {{"required", Json::array({keys[i], keys[j]})}, {"properties", {{keys[i], value}, {keys[j], value}}}}}});
      }
    }
  }

  // The schema of one alternative of a flattened choice: its name, its own keys, and the other keys of the section.
  Json branch(const Key& key, const Section& choice, const Json& shared) {
    Json properties = {{key.name, name_schema(choice)}};
    properties[key.name]["description"] = choice.meaning;
    for (const Key& inner : choice.keys) properties[inner.name] = property(inner);
    properties.update(shared);
    return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  }

  // The rule that the required keys of a section must be present unless the map has an include, which may set them.
  Json required_unless_included(const Section& section) {
    Json required = Json::array();
    Json nested = Json::object();
    for (const Key& key : section.keys) {
      if (key.required) required.push_back(key.name);
      if (key.type.kind != Kind::section) continue;
      Json inner = required_unless_included(key.type.section());
      if (!inner.empty()) nested[key.name] = inner;
    }
    Json needed = Json::array();
    for (const Section::Group& group : section.needed) {
      Json any = Json::array();
      for (const std::string& name : group.keys) any.push_back({{"required", Json::array({name})}});
      needed.push_back({{"anyOf", any}});
    }
    if (required.empty() && nested.empty() && needed.empty()) return Json::object();
    Json then = Json::object();
    if (!needed.empty()) then["allOf"] = needed;
    if (!required.empty()) then["required"] = required;
    if (!nested.empty()) then["properties"] = nested;
    return {{"if", {{"not", {{"required", Json::array({"include"})}}}}}, {"then", then}};
  }

  Json property(const Key& key) {
    Json schema = type(key.type, key.type.range);
    schema["description"] = key.meaning;
    if (!key.default_text.empty()) schema["default"] = to_json(parse_(key.default_text));
    return schema;
  }

  Json type(const TypeInfo& info, const Range& range) {
    Json alternatives = Json::array();
    const bool scalar = add_kind(info, range, alternatives);
    Json words = info.names;
    if (!words.empty()) alternatives.insert(alternatives.begin(), Json{{"enum", words}});
    if (scalar) alternatives.push_back({{"$ref", "#/$defs/variable"}});
    if (alternatives.empty()) return Json::object();
    if (info.by_name) {
      const Json value = alternatives.size() == 1 ? alternatives[0] : Json{{"anyOf", alternatives}};
      alternatives.push_back({{"type", "object"}, {"additionalProperties", value}});
    }
    return alternatives.size() == 1 ? alternatives[0] : Json{{"anyOf", alternatives}};
  }

  // Adds the schemas of the values that a kind accepts. Returns whether a ${VARIABLE} needs a schema of its own.
  bool add_kind(const TypeInfo& info, const Range& range, Json& alternatives) {
    switch (info.kind) {
      case Kind::boolean:
        alternatives.push_back({{"type", "boolean"}});
        return true;
      case Kind::integer:
        alternatives.push_back(bounded({{"type", "integer"}}, range));
        return true;
      case Kind::number:
        alternatives.push_back(bounded({{"type", "number"}}, range));
        alternatives.push_back(text_matching("^[-+0-9.eE]+(/[-+0-9.eE]+)?$"));
        return true;
      case Kind::string:
        alternatives.push_back({{"type", {"string", "number", "boolean"}}});
        return false;
      case Kind::path:
        alternatives.push_back({{"type", "string"}});
        return false;
      case Kind::duration:
        alternatives.push_back({{"type", "integer"}, {"minimum", 0}});
        alternatives.push_back(
            text_matching("^[0-9.eE+]+ ?(steps?|epochs?|ms|s|seconds?|min|minutes?|h|hours?|d|days?)$"));
        return true;
      case Kind::time:
        alternatives.push_back({{"type", "number"}, {"minimum", 0}});
        alternatives.push_back(text_matching("^[0-9.eE+]+ ?(ms|s|seconds?|min|minutes?|h|hours?|d|days?)$"));
        return true;
      case Kind::size:
        alternatives.push_back({{"type", "integer"}, {"minimum", 0}});
        alternatives.push_back(text_matching("^[0-9.eE+]+ ?([kKMGT]?B|[KMGT]iB)$"));
        return true;
      case Kind::enumeration:
        return true;
      case Kind::list: {
        const Json item = type(*info.item, range);
        Json list = {{"type", "array"}, {"items", item}};
        if (info.length) list["minItems"] = list["maxItems"] = info.length;
        if (info.single_item_allowed) alternatives.push_back(item);
        alternatives.push_back(list);
        return false;
      }
      case Kind::map:
        alternatives.push_back({{"type", "object"}, {"additionalProperties", type(*info.item, range)}});
        return false;
      case Kind::section:
        add_section(info.section(), alternatives, true);
        return false;
      case Kind::choice:
        alternatives.push_back({{"$ref", "#/$defs/" + single(info.table())}});
        return false;
      case Kind::choices:
        alternatives.push_back({{"type", "array"}, {"items", {{"$ref", "#/$defs/" + listed(info.table())}}}});
        return false;
      case Kind::any:
        return false;
    }
    return false;
  }

  // Adds the schemas of a section's value: a map, or the value of its shorthand key.
  void add_section(const Section& section, Json& alternatives, bool includes) {
    alternatives.push_back(object(section, includes));
    if (section.shorthand.empty()) return;
    const Key& key = *section.find(section.shorthand);
    alternatives.push_back(type(key.type, key.type.range));
  }

  static Json required_of(const Section& choice) {
    Json required = Json::array();
    for (const Key& key : choice.keys) {
      if (key.required) required.push_back(key.name);
    }
    return required;
  }

  // The names of the choices that may be written as a bare name because they have no required key.
  static Json bare_names(const ChoiceTable& table) {
    Json names = Json::array();
    for (const Section& choice : table.choices) {
      if (!required_of(choice).empty()) continue;
      names.push_back(choice.name);
      for (const std::string& alias : choice.aliases) names.push_back(alias);
    }
    return names;
  }

  Json named(const Section& choice) {
    Json schema = object(choice, false);
    if (choice.is_known_by_key()) {
      schema["required"] = required_of(choice);
      if (!choice.find("name")) schema["properties"]["name"] = name_schema(choice);
      return schema;
    }
    Json properties = {{"name", name_schema(choice)}};
    properties["name"]["description"] = choice.meaning;
    properties.update(schema["properties"]);
    schema["properties"] = properties;
    schema["required"] = required_of(choice);
    schema["required"].insert(schema["required"].begin(), "name");
    return schema;
  }

  static std::string definition_name(const ChoiceTable& table) {
    std::string name = table.what;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  }

  // Defines a single choice, which is its name or a map with `name`; returns the name of the definition.
  std::string single(const ChoiceTable& table) {
    const std::string name = definition_name(table);
    if (definitions_.contains(name)) return name;
    definitions_[name] = Json::object();  // entered first, because nested tables may refer to this definition
    Json alternatives = Json::array({Json{{"enum", bare_names(table)}}});
    for (const Section& choice : table.choices) alternatives.push_back(named(choice));
    alternatives.push_back({{"$ref", "#/$defs/variable"}});
    definitions_[name] = {{"anyOf", alternatives}};
    return name;
  }

  // Defines an item of a list of choices, which is a name, `{dense: {units: 10}}`, or a map with `name`; returns the
  // name of the definition.
  std::string listed(const ChoiceTable& table) {
    const std::string name = definition_name(table) + "_item";
    if (definitions_.contains(name)) return name;
    definitions_[name] = Json::object();
    Json properties = Json::object();
    Json alternatives = Json::array({Json{{"enum", bare_names(table)}}});
    for (const Section& choice : table.choices) {
      Json options = Json::array();
      add_section(choice, options, false);
      if (!required_of(choice).empty()) {
        options[0]["required"] = required_of(choice);
      } else {
        options.push_back({{"type", "null"}});
      }
      properties[choice.name] = options.size() == 1 ? options[0] : Json{{"anyOf", options}};
      properties[choice.name]["description"] = choice.meaning;
      for (const std::string& alias : choice.aliases) properties[alias] = properties[choice.name];
      if (!choice.find("name") || choice.is_known_by_key()) alternatives.push_back(named(choice));
    }
    alternatives.insert(alternatives.begin() + 1, Json{{"type", "object"},
                                                       {"properties", properties},
                                                       {"additionalProperties", false},
                                                       {"minProperties", 1},
                                                       {"maxProperties", 1}});
    definitions_[name] = {{"anyOf", alternatives}};
    return name;
  }

  const ParseValue& parse_;
  Json definitions_ = Json::object();
};

}  // namespace

std::string json_schema(const Section& root, const ParseValue& parse) {
  return json_text(JsonWriter(parse).write(root), 2) + "\n";
}

}  // namespace trainctl
