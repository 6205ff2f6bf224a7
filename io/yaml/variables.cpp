// Replaces `${NAME}` and `${NAME:-default}` in values.
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/utf8.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

struct Undefined {
  std::string message;
};

// Returns the position of the brace that closes the one before `begin`, or npos.
std::size_t closing_brace(const std::string& text, std::size_t begin) {
  int open = 1;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) ++open;
    if (text[i] == '}' && --open == 0) return i;
  }
  return std::string::npos;
}

std::string expand(const std::string& text, const VariableLookup& variables, int depth);

// Returns the value for the text between the braces: a name, or a name with its default.
std::string value_of(const std::string& inside, const VariableLookup& variables, int depth) {
  if (depth > 8) throw Undefined{"variables in defaults are nested too deeply"};
  const std::size_t separator = inside.find(":-");
  const std::string name = inside.substr(0, separator);
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string::npos) {
    throw Undefined{"'${" + inside + "}' names no variable; write ${NAME} or ${NAME:-default}"};
  }
  if (auto value = variables(name); value && !(value->empty() && separator != std::string::npos)) return *value;
  if (separator == std::string::npos) {
    throw Undefined{"variable '" + name + "' is not defined; define it, or give a default: ${" + name + ":-default}"};
  }
  return expand(inside.substr(separator + 2), variables, depth + 1);
}

std::string expand(const std::string& text, const VariableLookup& variables, int depth) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      result += "${";
      i += 3;
    } else if (text.compare(i, 2, "${") == 0) {
      const std::size_t end = closing_brace(text, i + 2);
      if (end == std::string::npos) throw Undefined{"'${' has no matching '}'; write $${ for a literal '${'"};
      result += value_of(text.substr(i + 2, end - i - 2), variables, depth);
      if (result.size() > ConfigLimits::bytes) throw Undefined{"its variables make it larger than a config may be"};
      i = end + 1;
    } else {
      result += text[i++];
    }
  }
  return result;
}

}  // namespace

VariableLookup environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return {};
    return value;
  };
}

void expand_variables(Node& node, const VariableLookup& variables, Reader& reader, const std::string& directory) {
  for (Node& item : node.items) expand_variables(item, variables, reader, directory);
  for (Node::Entry& entry : node.entries) expand_variables(entry.value, variables, reader, directory);
  if (!node.is_scalar() || node.text.find("${") == std::string::npos) return;
  std::error_code failure;
  if (node.text.starts_with("${")) {
    node.base_directory = directory.empty() ? std::filesystem::current_path(failure).string() : directory;
  }
  try {
    node.text = expand(node.text, variables, 0);
    if (find_invalid_utf8(node.text)) throw Undefined{"the value of a variable in it is not UTF-8"};
    if (!reader.take(node.location, 0, node.text.size())) node.text.clear();
  } catch (const Undefined& undefined) {
    reader.error(node.location, undefined.message);
  }
}

}  // namespace trainctl
