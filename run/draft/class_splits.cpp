// Recognizes the splits of a data set by the names of their folders.
#include "run/draft/class_splits.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {
namespace {

bool has_class_folders(const std::string& folder, const HasFiles& has_files) {
  if (!is_folder(folder)) return false;
  const std::vector<FolderEntry> entries = list_folder(folder);
  return std::any_of(entries.begin(), entries.end(), [&](const FolderEntry& entry) {
    const std::string path = folder + "/" + entry.name;
    return entry.name[0] != '.' && is_folder(path) && has_files(path);
  });
}

std::vector<std::string> folders_with_files(const std::string& folder, const HasFiles& has_files) {
  std::vector<std::string> found;
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string path = folder + "/" + entry.name;
    if (!is_system_name(entry.name) && is_folder(path) && has_files(path)) found.push_back(path);
  }
  return found;
}

// Returns the folder, or the inner one that has its class folders: archives often unpack as seg_train/seg_train/CLASS.
std::string unwrapped(std::string folder, const HasFiles& has_files) {
  for (std::vector<std::string> inner = folders_with_files(folder, has_files);
       inner.size() == 1 && has_class_folders(inner[0], has_files); inner = folders_with_files(folder, has_files)) {
    folder = inner[0];
  }
  return folder;
}

}  // namespace

NamedSplit split_named(const std::string& name) {
  static const std::map<std::string, NamedSplit> known{{"train", NamedSplit::training},
                                                       {"training", NamedSplit::training},
                                                       {"trainset", NamedSplit::training},
                                                       {"trainingset", NamedSplit::training},
                                                       {"traindata", NamedSplit::training},
                                                       {"validation", NamedSplit::validation},
                                                       {"val", NamedSplit::validation},
                                                       {"valid", NamedSplit::validation},
                                                       {"dev", NamedSplit::validation},
                                                       {"valset", NamedSplit::validation},
                                                       {"test", NamedSplit::test},
                                                       {"testing", NamedSplit::test},
                                                       {"testset", NamedSplit::test},
                                                       {"testdata", NamedSplit::test},
                                                       {"validationset", NamedSplit::validation}};
  NamedSplit found = NamedSplit::none;
  std::string word;
  for (const char c : name + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    const auto split = known.find(std::exchange(word, ""));
    if (split == known.end()) continue;
    if (found != NamedSplit::none && found != split->second) return NamedSplit::none;
    found = split->second;
  }
  return found;
}

std::string split_folder(const std::string& folder, NamedSplit split) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string path = folder + "/" + entry.name;
    if (split_named(entry.name) == split && is_folder(path)) return path;
  }
  return "";
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : list_folder(folder)) {
    if (!is_system_name(entry.name) && is_folder(folder + "/" + entry.name)) names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string only_folder(const std::string& folder) {
  const std::vector<std::string> names = folders_in(folder);
  return names.size() == 1 ? folder + "/" + names[0] : "";
}

ClassSplits class_splits(const std::string& folder, const HasFiles& has_files) {
  const std::string root = unwrapped(folder, has_files);
  std::map<NamedSplit, std::string> splits;
  for (const std::string& path : folders_with_files(root, has_files)) {
    // A folder of files without classes is not a split.
    if (!has_class_folders(path, has_files)) continue;
    splits.emplace(split_named(path.substr(path.rfind('/') + 1)), unwrapped(path, has_files));
  }
  if (!splits.contains(NamedSplit::training)) return {root, "", ""};
  return {splits[NamedSplit::training], splits[NamedSplit::validation], splits[NamedSplit::test]};
}

bool has_class_splits(const std::string& folder, const HasFiles& has_files) {
  return has_class_folders(class_splits(folder, has_files).training, has_files);
}

std::vector<std::string> files_of_classes(
    const std::string& split, const std::function<std::vector<std::string>(const std::string& folder)>& list) {
  std::vector<std::string> files;
  for (const std::string& name : class_folders(split)) {
    for (const std::string& file : list(split + "/" + name)) files.push_back(name + "/" + file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string splits_text(const DraftRequest& request, const ClassSplits& splits) {
  std::string text = format("  path: {}            # one folder for each class\n", path_text(request, splits.training));
  text += splits.validation.empty() ? "  validation: {split: 0.2, stratify: true}   # a fifth of every class\n"
                                    : format("  validation: {{path: {}}}\n", path_text(request, splits.validation));
  if (!splits.test.empty()) text += format("  test: {{path: {}}}\n", path_text(request, splits.test));
  return text;
}

}  // namespace trainctl
