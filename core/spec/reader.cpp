// Composes the error messages about a config, and throws all of them as one ConfigError.
#include "core/spec/reader.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/spec/keys.h"
#include "core/spec/suggestion.h"

namespace trainctl {
namespace {

std::string type_phrase(const TypeInfo& type) {
  using Kind = TypeInfo::Kind;
  switch (type.kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::path:
      return "a path";
    case Kind::duration:
      return "a duration such as '10 steps', '1 epoch' or '30 s'";
    case Kind::time:
      return "a time such as '30 s', '5 min' or '2 h'";
    case Kind::size:
      return "a size such as '25 MB'";
    case Kind::enumeration:
      return "";
    case Kind::list: {
      std::string text = type.single_item_allowed ? type_phrase(*type.item) + " or a list" : "a list";
      return type.length ? text + " of " + std::to_string(type.length) : text;
    }
    case Kind::map:
      return "a map";
    case Kind::section:
      return "a map";
    case Kind::choice:
      return "the name of one " + type.table().what + " or a map with its name";
    case Kind::choices:
      return "a list of " + type.table().what + "s";
    case Kind::any:
      return "a value";
  }
  return "a value";
}

}  // namespace

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string describe(const TypeInfo& type) {
  std::vector<std::string> words = type.names;
  if (const std::string text = type_phrase(type); !text.empty()) words.push_back(text);
  // Words such as "none" come last: "a whole number or none".
  std::stable_partition(words.begin(), words.end(),
                        [](const std::string& word) { return word != "none" && word != "auto"; });
  return join_or(words) + (type.by_name ? ", or a map from names to such values" : "");
}

void Reader::error(const SourceLocation& location, std::string message, const SourceLocation& related_location,
                   std::string related) {
  if (diagnostics_.size() >= ConfigLimits::errors) {
    ++unreported_;
    return;
  }
  diagnostics_.push_back({location, std::move(message), related_location, std::move(related)});
}

bool Reader::refuse(const SourceLocation& location, std::size_t limit, const char* what) {
  if (!std::exchange(refused_, true)) {
    error(location, format("the config has more than {} {}, with its included files and aliases", limit, what));
  }
  return false;
}

bool Reader::take_file(const SourceLocation& location) {
  return ++files_ <= ConfigLimits::files || refuse(location, ConfigLimits::files, "files");
}

bool Reader::take(const SourceLocation& location, std::size_t values, std::size_t bytes) {
  values_ += values;
  bytes_ += bytes;
  if (values_ > ConfigLimits::values) return refuse(location, ConfigLimits::values, "values");
  return bytes_ <= ConfigLimits::bytes || refuse(location, ConfigLimits::bytes, "bytes");
}

void Reader::expected(const Node& node, std::string_view what) {
  error(node.location, context_.key + " must be " + std::string(what) + ", not " + describe(node));
}

void Reader::expected(const Node& node, const TypeInfo& type) {
  TypeInfo all = type;
  all.names.insert(all.names.begin(), context_.words.begin(), context_.words.end());
  std::string message = context_.key + " must be " + describe(all) + ", not " + describe(node);
  if (node.is_scalar()) message += suggestion(node.text, all.names);
  const bool takes_none = std::find(all.names.begin(), all.names.end(), "none") != all.names.end();
  if (node.is_null() && takes_none) message += "; write none";
  error(node.location, std::move(message));
}

bool Reader::reported(const SourceLocation& location) const {
  return !location.file.empty() &&
         std::any_of(diagnostics_.begin(), diagnostics_.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.location == location; });
}

void Reader::throw_if_failed() const {
  if (ok()) return;
  std::vector<std::string> files;
  auto file_index = [&](const SourceLocation& location) {
    const auto found = std::find(files.begin(), files.end(), location.file);
    const auto index = found - files.begin();
    if (found == files.end()) files.push_back(location.file);
    return index;
  };
  std::vector<Diagnostic> sorted;
  for (const Diagnostic& diagnostic : diagnostics_) {
    file_index(diagnostic.location);
    if (std::find(sorted.begin(), sorted.end(), diagnostic) == sorted.end()) sorted.push_back(diagnostic);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    const auto file_a = file_index(a.location);
    const auto file_b = file_index(b.location);
    if (file_a != file_b) return file_a < file_b;
    return a.location.line != b.location.line ? a.location.line < b.location.line
                                              : a.location.column < b.location.column;
  });
  if (unreported_ > 0) {
    const SourceLocation file{sorted.front().location.file, 0, 0};
    sorted.push_back({file, format("and {} more", unreported_), {}, {}});
  }
  throw ConfigError(std::move(sorted));
}

}  // namespace trainctl
