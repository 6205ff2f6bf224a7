// Reads the first line of a table: the names of its columns, or a sample.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/tables/csv.h"

namespace trainctl {

// Whether the first line of a table looks like the lines after it: each of its fields is a number in a column of
// numbers, or a word that occurs again in its column. Numbers that count from 0, and years, are taken for names.
bool first_line_is_sample(const std::string& path, char delimiter);

// Returns the names of a file's columns; without a header they are "1", "2", ... Throws Error{data} if the file is
// empty, if two names are the same, or if the first line seems to have another delimiter. Also throws it if the first
// line looks like a sample and the config does not set `header`.
std::vector<std::string> column_names(const std::string& path, const CsvFormat& csv);

}  // namespace trainctl
