// The data set of a table in memory: fills missing values, standardises columns, and converts words to one-hot values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/spec/type_info.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/bins.h"
#include "io/datasets/tables/csv_column.h"

namespace trainctl {

// How a missing number is handled: it is an error, or is replaced by the mean of its column or by zero.
enum class MissingRule { error, mean, zero };

template <>
struct EnumNames<MissingRule> {
  static constexpr EnumName<MissingRule> names[] = {
      {MissingRule::error, "error"}, {MissingRule::mean, "mean"}, {MissingRule::zero, "zero"}};
};

// A rule for missing numbers, or the number that replaces them.
using MissingValue = std::variant<MissingRule, double>;

// The info of the training split's table, which validation and test use too.
struct TableInfo {
  struct Column {
    std::string name;
    bool words = false;
    std::vector<std::string> vocabulary;  // the words, in bytewise order; word i sets value i of the column
    float fill = 0;                       // replaces a missing number
    double mean = 0, deviation = 1;       // a number v becomes (v - mean) / deviation
    bool out_of_vocabulary = false;       // for words: additional first values for all other words
    std::int64_t hash_bins = 0;           // words that are hashed have this number of values, and no vocabulary
    std::vector<float> boundaries = {};   // of the bins of a column of numbers
    bool is_binned = false;               // whether a column of numbers has bins, of which there may be only one
    std::int64_t oov_values = 1;  // with out_of_vocabulary: the number of first values, among which hash_bin() chooses

    // Whether a sample has a value for each word or bin, of which one is 1.
    bool is_one_hot() const { return words || is_binned; }
    // The number of values that the column has in a sample.
    std::int64_t width() const {
      if (is_binned) return std::ssize(boundaries) + 1;
      if (hash_bins > 0) return hash_bins;
      return words ? std::ssize(vocabulary) + first_word() : 1;
    }
    // The number of values before that of the vocabulary's first word.
    std::int64_t first_word() const { return out_of_vocabulary ? oov_values : 0; }
    // The number of the value that is 1 for a word, which rows_of() has as `index`.
    std::int64_t value_of(float index) const {
      const auto word = static_cast<std::int64_t>(index);
      return word < 0 ? -1 - word : word + first_word();
    }
  };
  std::vector<Column> columns;                    // the columns of a sample, in this order
  std::vector<std::vector<std::string>> targets;  // for each output: names of its target's columns
  std::string weight;                             // name of the column of weights; empty if there is none
};

// The places of a table's rows, whose lines may be in several files.
struct TableRows {
  struct File {
    std::string path;
    std::int64_t end;  // the number of rows in this file and those before it
  };
  std::vector<File> files;
  std::vector<std::int64_t> lines;  // for each row, the number of its line in its file

  std::int64_t size() const { return std::ssize(lines); }
  // The file of a row, and its line in the file.
  std::pair<const std::string&, std::int64_t> location_of(std::int64_t row) const;
  // The place of a row: "t.csv, line 12".
  std::string place_of(std::int64_t row) const;
};

// Computes the info of each column from `samples`, or from all samples if `samples` is empty. Values are added in
// double precision and in the order of the samples. A mean that fills missing values is the mean of the present values.
// Standardised columns have, with missing values filled, mean 0 and variance 1 (divided by n, like scikit-learn's
// StandardScaler and Keras' Normalization); constant columns become 0. With `out_of_vocabulary`, columns of words have
// a value for other words. Columns in `discretize` have the bins of their present values. Throws Error{data} if a mean
// is needed and a column holds no value.
std::vector<TableInfo::Column> measure_columns(const std::string& path, const std::vector<CsvColumn>& columns,
                                               const std::vector<std::int64_t>& samples, const MissingValue& missing,
                                               bool standardize, bool out_of_vocabulary,
                                               const std::map<std::string, Discretization>& discretize);

// Returns the values of a table, row by row: numbers, indices of words in the vocabulary (-1 - b for another word,
// whose hash_bin() among the values for such words is b), and NaN for missing values.
std::shared_ptr<const std::vector<float>> rows_of(const std::vector<CsvColumn>& columns);

// Makes a data set whose samples are the rows, converted as `table` says. Targets come from `stored`, a data set of
// the same rows, and names from `places`. A missing word becomes zeros. `shape` is the shape of a sample in the config,
// if any; `warning` is DatasetInfo::warning. With `tokens` above 0, samples are int32 [columns] for an embedding with
// that many vectors: a column of words becomes the number of the word, where missing words count as other words, a
// column with bins the number of the bin, and another column of numbers its whole numbers. Throws Error{data} if a
// number is not whole or not below `tokens`, if the words of a column are more than `tokens`, if a missing word has no
// number, or if there are words and several columns, whose numbers would mean different words.
std::shared_ptr<const Dataset> table_dataset(std::shared_ptr<const Dataset> stored,
                                             std::shared_ptr<const std::vector<float>> rows,
                                             std::shared_ptr<const TableInfo> table, const std::optional<Shape>& shape,
                                             std::int64_t tokens, std::string warning,
                                             std::shared_ptr<const TableRows> places);

}  // namespace trainctl
