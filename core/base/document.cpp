// Builds, describes, compares and prints the values of documents.
#include "core/base/document.h"

#include <algorithm>
#include <cctype>

namespace trainctl {
namespace {

// Whether YAML reads the text as the same string without quotes, also inside [ ] and { }.
bool plain(const std::string& text) {
  static constexpr std::string_view words[] = {"~", "null", "Null", "NULL"};
  if (text.empty() || std::find(std::begin(words), std::end(words), text) != std::end(words)) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (std::string_view("-?:!&*|>%@`'\"#").find(text.front()) != std::string_view::npos) {
    // A minus sign may begin a number.
    if (text.front() != '-' || text.size() < 2 ||
        (!std::isdigit(static_cast<unsigned char>(text[1])) && text[1] != '.'))
      return false;
  }
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) return false;
  }
  if (text.find_first_of("[]{},") != std::string::npos) return false;
  return text.find(": ") == std::string::npos && text.find(" #") == std::string::npos && text != "---" && text != "...";
}

std::string escape(const std::string& text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 32 || code == 127) {
      out += "\\x";
      out += digits[code >> 4];
      out += digits[code & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(const std::string& text, bool quoted) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) escaped += '$';
    escaped += text[i];
  }
  return quoted || !plain(escaped) ? escape(escaped) : escaped;
}

// Shortens a text for a message to at most 100 bytes and "...", cut between two UTF-8 characters.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 100;
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::vector<std::string> keys_of(const Node& before, const Node& now) {
  std::vector<std::string> keys;
  for (const Node* node : {&before, &now}) {
    for (const Node::Entry& entry : node->entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) keys.push_back(entry.key);
    }
  }
  return keys;
}

void compare(const Node& before, const Node& now, const std::string& path, std::vector<std::string>& lines) {
  const std::string prefix = path.empty() ? "" : path + ".";
  if (before.is_map() && now.is_map()) {
    for (const std::string& key : keys_of(before, now)) {
      static const Node null;
      const Node* first = before.find(key);
      const Node* second = now.find(key);
      compare(first ? *first : null, second ? *second : null, prefix + key, lines);
    }
    return;
  }
  if (before.is_sequence() && now.is_sequence() && before.items.size() == now.items.size()) {
    for (std::size_t i = 0; i < now.items.size(); ++i) {
      compare(before.items[i], now.items[i], prefix + std::to_string(i), lines);
    }
    return;
  }
  const std::string old_text = flow_text(before);
  const std::string new_text = flow_text(now);
  if (before.kind == now.kind && old_text == new_text) return;
  auto shown = [](const Node& node, const std::string& text) { return node.is_null() ? "absent" : text; };
  lines.push_back((path.empty() ? "the document" : path) + ": " + shown(before, old_text) + " before, " +
                  shown(now, new_text) + " now");
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Extent extent_of(const Node& node) {
  Extent whole{1, node.text.size(), 0};
  const auto add = [&whole](const Node& child) {
    const Extent extent = extent_of(child);
    whole.values += extent.values;
    whole.bytes += extent.bytes;
    whole.levels = std::max(whole.levels, extent.levels);
  };
  for (const Node& item : node.items) add(item);
  for (const Node::Entry& entry : node.entries) {
    whole.bytes += entry.key.size();
    add(entry.value);
  }
  if (node.is_sequence() || node.is_map()) ++whole.levels;
  return whole;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return (node.quoted ? "the string '" : "'") + shortened(node.text) + "'";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "a value";
}

Node scalar_node(std::string text, bool quoted) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

Node sequence_node(std::vector<Node> items) {
  Node node;
  node.kind = Node::Kind::sequence;
  node.items = std::move(items);
  return node;
}

Node map_node() {
  Node node;
  node.kind = Node::Kind::map;
  return node;
}

void append(Node& map, std::string key, Node value) { map.entries.push_back({std::move(key), {}, std::move(value)}); }

std::string key_text(const std::string& key) { return plain(key) ? key : escape(key); }

std::string flow_text(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return scalar_text(node.text, node.quoted);
    case Node::Kind::sequence:
      for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const Node::Entry& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + key_text(entry.key) + ": " + flow_text(entry.value);
      }
      return "{" + text + "}";
  }
  return text;
}

std::vector<std::string> differences(const Node& before, const Node& now) {
  std::vector<std::string> lines;
  compare(before, now, "", lines);
  return lines;
}

}  // namespace trainctl
