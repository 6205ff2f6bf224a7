// Tables as text: one sample in each line, columns of numbers and of words, and a target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/spec/values.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_table.h"

namespace trainctl {

// Names of columns; the config may write a single name without brackets.
struct ColumnNames : std::vector<std::string> {
  using std::vector<std::string>::vector;
};

// The options of reading a table.
struct CsvFormat {
  std::string delimiter = ",";  // one character
  Auto<bool> header;            // whether the first line names the columns; else they are "1", "2", ...; auto: it does
  ColumnNames target;           // empty: the last column
  ColumnNames columns;          // columns of a sample, in this order; empty: all except the targets and the weight
  std::string weight;           // the column of samples' weights; empty: all are 1
  ColumnNames numeric;          // columns that must hold numbers
  ColumnNames categorical;      // columns that hold words, though they may look like numbers
  bool out_of_vocabulary = true;  // whether columns of words have a value for words that the training split lacks
  MissingValue missing = MissingRule::error;
  bool standardize = false;
};

// A data set of a table by RFC 4180 (csv_lines.h). Samples are float32 [values]: a column of numbers gives one, a
// column of words one for each word of the training split, in bytewise order, after one for all other words
// (out_of_vocabulary). Columns that are named neither numeric nor
// categorical are told apart as ColumnKind::automatic says. Missing numbers are filled and columns of numbers are
// standardised by measures of the training split. A split other than the training split may lack the column of weights.
// A single target column of words holds classes, numbered in bytewise
// order of the words (class_names); one of whole numbers holds classes or values as in array_dataset(); others hold
// values. The whole table is kept in memory. Throws Error{data} with line and column where lines differ in length, a
// field is empty or not a finite number, a weight is negative, or a word is not one of the training split's and has no
// value; Error{config} where a named column is missing. The lines of several files are those of one table: all have the
// columns of the first, in any order. Where the training split's table names no targets, samples have none.
std::shared_ptr<const Dataset> csv_dataset(const std::vector<std::string>& paths, const CsvFormat& format,
                                           const DeclaredInfo& declared);

}  // namespace trainctl
