// Expands braces and wildcards in paths.
#include "io/datasets/records/shards.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

[[noreturn]] void refuse_braces(const std::string& path) {
  data_error(path, format("its braces name more than {} files", max_shards), "use *, or join the files");
}

// Returns the position after the brace that closes the brace at `open`; npos if no brace closes it.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

// Splits a text at its commas, except for those in inner braces.
std::vector<std::string> alternatives(std::string_view text) {
  std::vector<std::string> found(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0) {
      found.emplace_back();
    } else {
      found.back() += c;
    }
  }
  return found;
}

// Returns the numbers of a range "000..127", with as many digits as the first one; nullopt if the text is not a range.
std::optional<std::vector<std::string>> numbers(std::string_view text, const std::string& path) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
    return value;
  };
  const auto first = number(text.substr(0, dots)), last = number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return std::nullopt;
  if (*last - *first >= static_cast<std::int64_t>(max_shards)) refuse_braces(path);
  std::vector<std::string> found;
  for (std::int64_t i = *first; i <= *last; ++i) found.push_back(format("{:0{}}", i, dots));
  return found;
}

// Returns the texts that a text with braces expands to.
std::vector<std::string> without_braces(const std::string& text, const std::string& path) {
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::size_t end = closing(text, open);
    if (end == std::string::npos) break;
    const std::string inside = text.substr(open + 1, end - open - 2);
    std::optional<std::vector<std::string>> choices = numbers(inside, path);
    if (!choices) choices = alternatives(inside);
    if (choices->size() == 1 && inside.find("..") == std::string::npos) continue;  // these braces belong to the name
    std::vector<std::string> found;
    for (const std::string& choice : *choices) {
      for (std::string& whole : without_braces(text.substr(0, open) + choice + text.substr(end), path)) {
        if (found.size() == max_shards) refuse_braces(path);
        found.push_back(std::move(whole));
      }
    }
    return found;
  }
  return {text};
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// Adds the files and folders that match a pattern; its first `from` bytes have no wildcards.
void match(const std::string& pattern, std::size_t from, std::vector<std::string>& found) {
  const std::size_t wildcard = pattern.find_first_of("*?[", from);
  if (wildcard == std::string::npos) {
    if (exists(pattern)) found.push_back(pattern);
    return;
  }
  const std::size_t slash = pattern.rfind('/', wildcard);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t end = std::min(pattern.find('/', wildcard), pattern.size());
  const std::string name = pattern.substr(begin, end - begin), folder = pattern.substr(0, begin);
  if (!is_folder(folder.empty() ? "." : folder)) return;
  for (const FolderEntry& entry : list_folder(folder.empty() ? "." : folder)) {
    if (fnmatch(name.c_str(), entry.name.c_str(), FNM_PERIOD) != 0) continue;
    match(folder + entry.name + pattern.substr(end), begin + entry.name.size(), found);
  }
}

}  // namespace

std::vector<std::string> shard_files(const std::string& path, const std::function<bool(const std::string&)>& belongs) {
  std::vector<std::string> named, files;
  if (exists(path)) {
    named = {path};
  } else {
    for (const std::string& pattern : without_braces(path, path)) {
      if (has_wildcard(pattern)) {
        match(pattern, 0, named);
      } else {
        named.push_back(pattern);
      }
    }
  }
  for (const std::string& name : named) {
    if (!is_folder(name)) {
      files.push_back(name);
      continue;
    }
    for (const FolderEntry& entry : list_folder(name)) {
      const std::string file = name + "/" + entry.name;
      if (entry.name[0] != '.' && belongs(entry.name) && !is_folder(file)) files.push_back(file);
    }
  }
  if (files.empty()) {
    data_error(path, named.empty() ? "matches no file" : "holds no files of this kind",
               std::string(data_role.if_missing));
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace trainctl
