// A table in memory as a data set: missing values filled, columns standardised, words as one-hot values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/spec/type_info.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"

namespace trainctl {

// What stands for a missing number: nothing (it is an error), the mean of its column, or zero.
enum class MissingRule { error, mean, zero };

template <>
struct EnumNames<MissingRule> {
  static constexpr EnumName<MissingRule> names[] = {
      {MissingRule::error, "error"}, {MissingRule::mean, "mean"}, {MissingRule::zero, "zero"}};
};

using MissingValue = std::variant<MissingRule, double>;

// What validation and test take over from the table that trains.
struct TableInfo {
  struct Column {
    std::string name;
    bool words = false;
    std::vector<std::string> vocabulary;  // of words, in bytewise order: word i becomes the i-th of as many values
    float fill = 0;                       // a missing number
    double mean = 0, deviation = 1;       // a number v becomes (v - mean) / deviation
    bool out_of_vocabulary = false;       // of words: one more value, the first, is that of all other words

    // The values of a sample that the column becomes.
    std::int64_t width() const { return words ? std::ssize(vocabulary) + (out_of_vocabulary ? 1 : 0) : 1; }
  };
  std::vector<Column> columns;       // of a sample, in this order
  std::vector<std::string> targets;  // the target's columns
  std::string weight;                // the column of weights; empty: there is none
};

// Measures the columns on `samples`, in double precision and in their order; on all where that is empty. Means are
// those of the values that are there; standardised columns have mean 0 and variance 1 (divided by n, as scikit-learn's
// StandardScaler and Keras' Normalization do) with missing values filled, constant ones are 0. Columns of words have a
// value for other words where that is wanted. Throws Error{data} where
// a mean is needed and a column holds no value.
std::vector<TableInfo::Column> measure_columns(const std::string& path, const std::vector<CsvColumn>& columns,
                                               const std::vector<std::int64_t>& samples, const MissingValue& missing,
                                               bool standardize, bool out_of_vocabulary);

// The numbers of a table, row by row: NaN for a missing value, a word's place in the vocabulary, -1 for other words.
std::shared_ptr<const std::vector<float>> rows_of(const std::vector<CsvColumn>& columns);

// The data set whose samples are the rows as `table` says; targets and names are those of `stored`, a data set of the
// same rows. A missing word gives zeros. `shape` is the stated shape of a sample, if any, `warning` the info'.
std::shared_ptr<const Dataset> table_dataset(std::shared_ptr<const Dataset> stored,
                                             std::shared_ptr<const std::vector<float>> rows,
                                             std::shared_ptr<const TableInfo> table, const std::optional<Shape>& shape,
                                             std::string warning);

}  // namespace trainctl
