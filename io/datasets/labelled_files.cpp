// Finds files with labels.
#include "io/datasets/labelled_files.h"

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/class_folders.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

void add_folder_of_files(const std::string& path, const FileSearch& search, LabelledFiles& found) {
  const std::vector<std::string> folders = search.has_labels ? class_folders(path) : std::vector<std::string>{""};
  if (folders.empty()) {
    data_error(path, "has no class folders", "put the files of each class into their own folder");
  }
  found.in_tables = false;
  with_all_errors(folders, [&](const std::string& name) {
    const std::string folder = name.empty() ? path : path + "/" + name;
    const FileListing listing = search.list(folder);
    for (const std::string& file : listing.files) {
      found.files.push_back({folder + "/" + file, name, folder + "/" + file});
    }
    if (listing.left_out.empty()) return;
    found.left_out += format("{}{}: {}", found.left_out.empty() ? "" : "; ", folder, listing.left_out);
  });
}

void add_table_of_files(const std::string& path, const FileSearch& search, LabelledFiles& found) {
  const NamedColumn label = search.has_labels ? search.label : NamedColumn{};
  for (FileRow& row : read_file_table(path, search.file, label)) {
    if (search.has_labels && row.text.empty()) {
      data_error(row.place, format("the column '{}' is empty", label.name), "correct the line, or leave it out");
    }
    found.files.push_back({std::move(row.path), std::move(row.text), std::move(row.place)});
  }
}

}  // namespace

LabelledFiles find_labelled_files(const std::vector<std::string>& paths, const FileSearch& search) {
  LabelledFiles found;
  with_all_errors(paths, [&](const std::string& path) {
    if (!exists(path)) data_error(path, "does not exist");
    if (is_folder(path)) {
      add_folder_of_files(path, search, found);
    } else if (has_ending(path, {".csv"})) {
      add_table_of_files(path, search, found);
    } else if (search.single) {
      found.files.push_back({path, "", path});
    } else {
      data_error(path, "is neither a folder nor a .csv file", "give a folder of class folders, or a table of files");
    }
  });
  return found;
}

}  // namespace trainctl
