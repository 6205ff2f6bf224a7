// Reads the environment.
#include "parallel/launch/variables.h"

#include <unistd.h>

#include <charconv>

namespace trainctl {

Variables Variables::of_process() {
  Map values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Variables(std::move(values));
}

std::string Variables::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

std::optional<int> Variables::number(std::string_view name) const {
  const std::string value = text(name);
  int result = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (value.empty() || problem != std::errc() || end != value.data() + value.size() || result < 0) return {};
  return result;
}

}  // namespace trainctl
