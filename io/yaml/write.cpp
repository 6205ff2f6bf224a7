// Writes a document as YAML text: sections as blocks, values that fit on a line in flow style.
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

constexpr std::size_t width = 110;
constexpr std::size_t block_levels = 2;  // the document and its sections are always blocks

bool in_one_line(const Node& node, std::size_t indent, std::size_t used) {
  const bool empty = node.items.empty() && node.entries.empty();
  if (empty || (!node.is_map() && !node.is_sequence())) return true;
  if (node.is_map() && indent < 2 * (block_levels - 1)) return false;
  return used + flow_text(node).size() <= width;
}

void write_block(const Node& node, std::size_t indent, std::string& out);

// Writes the value after "key:" or "-".
void write_value(const Node& node, std::size_t indent, std::size_t used, bool after_dash, std::string& out) {
  if (in_one_line(node, indent, used)) {
    out += " " + flow_text(node) + "\n";
  } else if (after_dash) {
    std::string block;
    write_block(node, indent + 2, block);
    out += " " + block.substr(indent + 2);
  } else {
    out += "\n";
    write_block(node, indent + 2, out);
  }
}

void write_block(const Node& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const Node& item : node.items) {
    out += margin + "-";
    write_value(item, indent, indent + 2, true, out);
  }
  for (const Node::Entry& entry : node.entries) {
    const std::string key = key_text(entry.key);
    out += margin + key + ":";
    write_value(entry.value, indent, indent + key.size() + 2, false, out);
  }
}

}  // namespace

std::string to_yaml(const Node& document) {
  if (!document.is_map() || document.entries.empty()) return flow_text(document) + "\n";
  std::string out;
  write_block(document, 0, out);
  return out;
}

}  // namespace trainctl
