// The names of layers.
#include "core/layers/model/names.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/base/format.h"
#include "core/base/utf8.h"
#include "core/layers/layer.h"

namespace trainctl {

namespace {

// Whether a name may contain a character. ASCII characters that are not listed here have another meaning: '/' separates
// the names of a path, '@' precedes the number of a use, and most others have a meaning in patterns, rules for names or
// YAML. Beyond ASCII, all visible characters are allowed: the formats that store names of tensors (safetensors, HDF5,
// ONNX, event files, JSON, HTML) use UTF-8.
bool is_letter(std::string_view character) {
  constexpr std::string_view ascii = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (character.size() == 1) return ascii.find(character[0]) != std::string_view::npos;
  // Inclusive ranges of controls, spaces, the soft hyphen, joiners, direction marks, specials and tags.
  constexpr std::pair<char32_t, char32_t> invisible[] = {
      {0x80, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},   {0x1680, 0x1680},   {0x180b, 0x180f},
      {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},   {0xe000, 0xf8ff},
      {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff0, 0xffff}, {0xe0000, 0x10ffff}};
  const char32_t value = utf8_value(character);
  return std::none_of(std::begin(invisible), std::end(invisible),
                      [&](const auto& range) { return range.first <= value && value <= range.second; });
}

}  // namespace

bool is_name(const std::string& name) { return !name.empty() && as_name(name) == name; }

std::string as_name(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    name += length > 0 && is_letter(character) ? character : "_";
    text.remove_prefix(character.size());
  }
  return name;
}

std::string below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

std::string use_of(const std::string& name, int number) { return number == 1 ? name : format("{}@{}", name, number); }

std::string without_uses(const std::string& path) {
  std::string result;
  bool is_number = false;  // whether `c` belongs to the number of a use, which ends at the next '/'
  for (const char c : path) {
    is_number = c == '@' || (is_number && c != '/');
    if (!is_number) result += c;
  }
  return result;
}

int blocks_above(const std::string& pattern, std::string path) {
  for (int above = 0;; ++above) {
    if (fnmatch(pattern.c_str(), path.c_str(), 0) == 0) return above;
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return -1;
    path.resize(slash);
  }
}

std::vector<std::string> layer_names(const std::vector<Choice>& layers, const std::string& path,
                                     const std::vector<std::string>& taken, Reader& reader) {
  const auto is_taken = [&](const std::string& name) {
    return std::find(taken.begin(), taken.end(), name) != taken.end();
  };
  std::set<std::string> given;
  for (const Choice& choice : layers) {
    const auto& name = choice.as<LayerOptions>().name.given;
    if (!name) continue;
    const std::string what = format("{} '{}'", choice.name, below(path, *name));
    if (!is_name(*name)) {
      reader.error(choice.location, what + ": a name consists of letters, digits, '_', '-' and '.'");
    } else if (is_taken(*name)) {
      reader.error(choice.location, what + ": this name is taken");
    }
    given.insert(*name);
  }
  std::vector<std::string> names;
  std::map<std::string, int> numbers, uses;
  for (const Choice& choice : layers) {
    std::string name = choice.as<LayerOptions>().name.given.value_or("");
    if (!name.empty()) name = use_of(name, ++uses[name]);
    while (name.empty()) {
      const int number = numbers[choice.name]++;
      std::string next = number == 0 ? choice.name : format("{}_{}", choice.name, number);
      if (!is_taken(next) && !given.contains(next)) name = std::move(next);
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace trainctl
