// Compares the names of files, and names copies.
#include "core/base/file_names.h"

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"

namespace trainctl {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string lower = lower_case(name);
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return lower.ends_with(ending); });
}

std::string first_in_folder(const std::string& folder, const std::vector<std::string>& names) {
  const std::vector<FolderEntry> entries = list_folder(folder);
  for (const std::string& name : names) {
    const auto same =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
    const auto alike = std::find_if(entries.begin(), entries.end(),
                                    [&](const auto& entry) { return lower_case(entry.name) == lower_case(name); });
    if (alike != entries.end()) return folder + "/" + (same != entries.end() ? same : alike)->name;
  }
  return "";
}

std::string name_of_copy(const std::string& path, const std::string& addition) {
  const std::filesystem::path file(path);
  return file.stem().string() + "-" + addition + file.extension().string();
}

}  // namespace trainctl
