// Compares the names of classes.
#include "io/loader/splits/class_spelling.h"

#include <map>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {

std::string spelling_warning(const std::vector<std::string>& class_names) {
  std::map<std::string, const std::string*> known;  // by the name in lower case
  std::string first, second;
  std::int64_t others = -1;
  for (const std::string& name : class_names) {
    const auto [same, is_new] = known.emplace(lower_case(name), &name);
    if (is_new || name.size() < 2) continue;
    if (++others > 0) continue;
    first = *same->second;
    second = name;
  }
  if (others < 0) return "";
  return format(
      "the classes '{}' and '{}' differ in upper and lower case only{}: if they are one class, write it in "
      "the same way everywhere",
      first.substr(0, 40), second.substr(0, 40), others == 0 ? "" : format(" ({} more)", counted(others, "such pair")));
}

}  // namespace trainctl
