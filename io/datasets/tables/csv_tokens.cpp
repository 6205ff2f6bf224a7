// Converts words to their numbers, and checks numbers.
#include "io/datasets/tables/csv_tokens.h"

#include <cmath>

#include "core/base/format.h"
#include "io/datasets/tables/farm_hash.h"

namespace trainctl {
namespace {

std::string place(const Dataset& names, std::int64_t row, const TableInfo::Column& column) {
  return format("{}, column '{}'", names.name_of(row), column.name);
}

// Refuses columns of words that the embedding cannot read.
void check_words(const Dataset& names, const std::vector<TableInfo::Column>& columns, std::int64_t tokens) {
  for (const TableInfo::Column& column : columns) {
    if (!column.is_one_hot()) continue;
    if (columns.size() > 1) {
      data_error(place(names, 0, column),
                 format("an embedding reads {} columns with words or bins, so that the same number would "
                        "mean a different word or bin in each",
                        columns.size()),
                 "give each column of words or bins an input and an embedding of its own, with `inputs`");
    }
    if (column.width() <= tokens) continue;
    if (column.is_binned || column.hash_bins > 0) {
      data_error(
          place(names, 0, column),
          format("the column has {} bins, and the embedding has the numbers 0 to {}", column.width(), tokens - 1),
          format("set the embedding's input_dim to {} or more", column.width()));
    }
    data_error(place(names, 0, column),
               format("the column has {} different words{}, and the embedding has the numbers 0 to {}",
                      column.vocabulary.size(),
                      column.out_of_vocabulary
                          ? format(" and {} for unknown words",
                                   column.oov_values == 1 ? "a number" : format("{} numbers", column.oov_values))
                          : "",
                      tokens - 1),
               format("set the embedding's input_dim to {} or more", column.width()));
  }
}

std::int32_t word_token(const Dataset& names, std::int64_t row, const TableInfo::Column& column, float value) {
  if (!std::isnan(value)) return static_cast<std::int32_t>(column.value_of(value));
  if (column.out_of_vocabulary) return static_cast<std::int32_t>(hash_bin("", column.oov_values));
  data_error(
      place(names, row, column), "the word is missing, and an embedding needs a number for it",
      column.hash_bins > 0 ? "leave out the line" : "leave out the line, or train with `out_of_vocabulary: true`");
}

std::int32_t number_token(const Dataset& names, std::int64_t row, const TableInfo::Column& column, float value,
                          std::int64_t tokens) {
  const float filled = std::isnan(value) ? column.fill : value;
  if (column.is_binned) return static_cast<std::int32_t>(bin_of(filled, column.boundaries));
  constexpr float largest = 1 << 24;  // float32 represents every whole number up to this one
  if (filled == std::floor(filled) && filled >= 0 && filled <= largest && filled < static_cast<float>(tokens)) {
    return static_cast<std::int32_t>(filled);
  }
  data_error(place(names, row, column),
             format("{} {}, and the embedding has the whole numbers 0 to {}",
                    std::isnan(value) ? "a missing number is replaced by" : "holds", filled, tokens - 1),
             "set a larger input_dim, or list the column in `categorical`, which numbers its different values");
}

}  // namespace

std::vector<std::int32_t> tokens_of(const Dataset& names, const std::vector<float>& rows,
                                    const std::vector<TableInfo::Column>& columns, std::int64_t tokens) {
  check_words(names, columns, tokens);
  std::vector<std::int32_t> found;
  found.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i / columns.size());
    const TableInfo::Column& column = columns[i % columns.size()];
    found.push_back(column.words ? word_token(names, row, column, rows[i])
                                 : number_token(names, row, column, rows[i], tokens));
  }
  return found;
}

}  // namespace trainctl
