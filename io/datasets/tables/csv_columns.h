// Chooses the columns of a table that are read for each input, the target and the weight, by their names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/tables/csv.h"

namespace trainctl {

// Whether a name is among the names.
inline bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The training split's table; null for the training split itself.
inline const TableInfo* training_table(const DeclaredInfo& declared) {
  return declared.training ? declared.training->table.get() : nullptr;
}

// The names of a table's columns, and the numbers of the columns that are read.
struct TableColumns {
  std::vector<std::string> names;  // of the columns of the file, and then of the crosses
  std::vector<std::vector<CrossedColumn>> crosses;
  std::vector<std::vector<std::size_t>> inputs;   // for each input of the network, in the order of a sample's values
  std::vector<std::vector<std::size_t>> outputs;  // for each output of the network; no columns: it needs no targets
  std::optional<std::size_t> weight;

  // The columns of all targets.
  std::vector<std::size_t> targets() const {
    std::vector<std::size_t> all;
    for (const auto& output : outputs) all.insert(all.end(), output.begin(), output.end());
    return all;
  }
  std::size_t in_file() const { return names.size() - crosses.size(); }
  std::vector<std::string> names_in_file() const {
    return {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(in_file())};
  }
  std::vector<std::string> names_of(const std::vector<std::size_t>& columns) const {
    std::vector<std::string> found;
    for (const std::size_t column : columns) found.push_back(names[column]);
    return found;
  }
};

// Chooses the columns of a table whose first file is `path`: those of the training split's table if there is one,
// otherwise those that the config names. Throws Error{config} if the config names a column that the table does not have
// or uses a column as sample and as target or weight; names in `inputs` are reported together, with their lines. Throws
// Error{data} if the table lacks a column of the training split, or has no column except its target.
TableColumns choose_columns(const std::string& path, const CsvFormat& csv, const std::vector<NamedInfo>& inputs,
                            const std::vector<NamedInfo>& outputs);

// Returns, for each column of the first file, the index of the column with the same name in `names`, the columns of
// another file. Throws Error{data} if a file lacks a column of the other one.
std::vector<std::size_t> match_columns(const std::vector<std::string>& first, const std::string& first_path,
                                       const std::vector<std::string>& names, const std::string& path);

}  // namespace trainctl
