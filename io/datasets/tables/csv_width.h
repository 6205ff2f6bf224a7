// Refuses lines of a table that have another number of fields than the first one.
#pragma once

#include <string_view>
#include <vector>

#include "io/datasets/tables/csv_lines.h"

namespace trainctl {

// Throws Error{data} that names the line and both numbers of fields. The remedy tells what the reason seems to be:
// lines of comments before the names of the columns, a line `sep=;`, a name that is missing for the numbers of the
// rows, or text in single quotation marks.
[[noreturn]] void refuse_width(const LineLocation& line, const std::vector<std::string_view>& fields,
                               std::size_t expected);

}  // namespace trainctl
