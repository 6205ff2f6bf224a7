// Refuses lines of a table that have another number of fields than the first one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/tables/csv_lines.h"

namespace trainctl {

// Throws Error{data} that names the line and both numbers of fields. The remedy tells what the reason seems to be:
// lines of comments before the names of the columns, a line `sep=;`, a name that is missing for the numbers of the
// rows, or text in single quotation marks.
[[noreturn]] void refuse_width(const LineLocation& line, const std::vector<std::string_view>& fields,
                               std::size_t expected);

// Whether a first line may be a comment (it begins with # or %), or begins with `sep=`.
bool may_be_preamble(const std::vector<std::string_view>& fields);

// Throws the same error for a table whose first line is a comment, so that all names of columns are in a later line, or
// begins with `sep=`.
void refuse_preamble(const std::string& path, char delimiter);

}  // namespace trainctl
