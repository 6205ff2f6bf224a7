// Reads the first line of a table: the names of its columns, or a sample.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/tables/csv.h"

namespace trainctl {

// What the first line of a table holds. `number_names`: names of columns of which some are numbers, such as years.
enum class FirstLine { names, number_names, sample };

// Finds what the first line of a table holds. With numbers in it, it is a sample, unless the numbers count from 0 or
// are years, or ascend beside a name: a word above numbers, or above repeated words of which none is this one.
FirstLine first_line_of(const std::string& path, char delimiter);

// The names of the columns, by the fields of the first line; "1", "2", ... without a header. If several fields are
// empty, those after the first are called like pandas calls them: "Unnamed: 3".
std::vector<std::string> names_in(const std::vector<std::string_view>& fields, bool header);

// Whether the first line of a table looks like the lines after it: each of its fields is a number in a column of
// numbers, or a word that occurs again in its column. Numbers that count from 0, and years, are taken for names.
bool first_line_is_sample(const std::string& path, char delimiter);

// Returns the names of a file's columns; without a header they are "1", "2", ... Throws Error{data} if the file is
// empty, if two names are the same, or if the first line seems to have another delimiter. Also throws it if the first
// line looks like a sample and the config does not set `header`.
std::vector<std::string> column_names(const std::string& path, const CsvFormat& csv);

}  // namespace trainctl
