// Tables as text: one sample in each line, columns of numbers, and a target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// Names of columns; the config may write a single name without brackets.
struct ColumnNames : std::vector<std::string> {
  using std::vector<std::string>::vector;
};

// The options of reading a table.
struct CsvFormat {
  std::string delimiter = ",";  // one character
  bool header = true;           // whether the first line names the columns; else they are "1", "2", ...
  ColumnNames target;           // empty: the last column
  ColumnNames columns;          // columns of a sample, in this order; empty: all except the targets
};

// A data set of a table by RFC 4180: quoted fields may contain delimiters, doubled quotes and line ends. Line ends of
// one character and a byte order mark are accepted too. Samples are float32 [columns]. A single target column of words
// holds classes, numbered in bytewise order of the words (class_names); one of whole numbers holds classes or values as
// in array_dataset(); others hold values. The whole table is kept in memory as numbers. Throws Error{data} with line
// and column where lines differ in length, or a field is empty or not a finite number; Error{config} where a named
// column is missing.
std::shared_ptr<const Dataset> csv_dataset(const std::string& path, const CsvFormat& format, const StatedFacts& stated);

}  // namespace trainctl
