// The first line of a table: the names of its columns, or a sample.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/tables/csv.h"

namespace trainctl {

// Whether the first line of a table looks like the lines behind it: each of its fields is a number in a column of
// numbers, or a word that the column holds again. Numbers that count from 0, and years, may be names.
bool first_line_is_sample(const std::string& path, char delimiter);

// The names of a file's columns; without a header "1", "2", ... Throws Error{data} where the file is empty, two names
// are the same, the first line seems to have another delimiter, or is a sample and the config does not state `header`.
std::vector<std::string> column_names(const std::string& path, const CsvFormat& csv);

}  // namespace trainctl
