// Converts columns of a table to tokens, whole numbers for the network's embedding.
#pragma once

#include <cstdint>
#include <vector>

#include "io/datasets/tables/csv_table.h"

namespace trainctl {

// Returns the tokens of all rows, [rows, columns], as table_dataset() describes. `rows` has the values that rows_of()
// returns for these columns; the names of samples for messages come from `names`.
std::vector<std::int32_t> tokens_of(const Dataset& names, const std::vector<float>& rows,
                                    const std::vector<TableInfo::Column>& columns, std::int64_t tokens);

}  // namespace trainctl
