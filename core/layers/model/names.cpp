// The names of layers.
#include "core/layers/model/names.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/format.h"
#include "core/layers/layer.h"

namespace trainctl {

bool is_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
                              std::string::npos;
}

std::string below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

std::string use_of(const std::string& name, int number) { return number == 1 ? name : format("{}@{}", name, number); }

std::string without_uses(const std::string& path) {
  std::string result;
  bool is_number = false;  // of a use, which ends with the name
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
  std::set<std::string> stated;
  for (const Choice& choice : layers) {
    const auto& name = choice.as<LayerOptions>().name.stated;
    if (!name) continue;
    const std::string what = format("{} '{}'", choice.name, below(path, *name));
    if (!is_name(*name)) {
      reader.error(choice.place, what + ": a name consists of letters, digits, '_', '-' and '.'");
    } else if (is_taken(*name)) {
      reader.error(choice.place, what + ": this name is taken");
    }
    stated.insert(*name);
  }
  std::vector<std::string> names;
  std::map<std::string, int> numbers, uses;
  for (const Choice& choice : layers) {
    std::string name = choice.as<LayerOptions>().name.stated.value_or("");
    if (!name.empty()) name = use_of(name, ++uses[name]);
    while (name.empty()) {
      const int number = numbers[choice.name]++;
      std::string next = number == 0 ? choice.name : format("{}_{}", choice.name, number);
      if (!is_taken(next) && !stated.contains(next)) name = std::move(next);
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace trainctl
