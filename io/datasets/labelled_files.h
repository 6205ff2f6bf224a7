// Lists files with a class or a value each: in a folder for each class, or in a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/datasets/tables/file_table.h"

namespace trainctl {

// The files of a folder and its subfolders that a data set reads: their paths relative to it, in bytewise order.
struct FileListing {
  std::vector<std::string> files;
  std::string left_out;  // says how many other files are not read; may be empty
};
// Throws Error{data} if the folder has no such files.
using ListFiles = std::function<FileListing(const std::string& folder)>;

struct LabelledFiles {
  struct File {
    std::string path;
    std::string label;  // the name of the folder, or the field of the table; empty if labels are not read
    std::string place;  // for messages: the file, or the line of the table that names it
  };
  std::vector<File> files;
  std::string left_out;   // may be empty
  bool in_tables = true;  // whether all labels are fields of tables
};

// How files and labels are found.
struct FileSearch {
  ListFiles list;
  NamedColumn file, label;  // of tables
  bool has_labels = true;   // false: folders have no folders of classes, and tables need no column of labels
  bool single = false;      // whether a path may be a file with a sample
};

// Finds the files at paths: folders and .csv files. Throws Error{data} for a path that is neither, for a folder without
// folders of classes, and for a line of a table without a label.
LabelledFiles find_labelled_files(const std::vector<std::string>& paths, const FileSearch& search);

}  // namespace trainctl
