// Tables as text: one sample a line, columns of numbers, and a target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// Names of columns; in a config a single one needs no brackets.
struct ColumnNames : std::vector<std::string> {
  using std::vector<std::string>::vector;
};

// How a table is read.
struct CsvFormat {
  std::string delimiter = ",";  // one character
  bool header = true;           // whether the first line names the columns; else they are "1", "2", ...
  ColumnNames target;           // empty: the last one
  ColumnNames columns;          // of a sample, in this order; empty: all but the target
};

// A table by RFC 4180: fields in quotes may hold delimiters, doubled quotes and line ends; also with line ends of one
// character and a byte order mark. Samples are float32 [columns]. One target of words is a class, in bytewise order of
// the words (class_names), one of whole numbers likewise by number, as in arrays (array_dataset()); others are values.
// The whole table is kept in memory, as numbers. Throws Error{data} with line and column: lines of another length,
// empty fields and fields that are no finite number; Error{config} where a named column is not there.
std::shared_ptr<const Dataset> csv_dataset(const std::string& path, const CsvFormat& format, const StatedFacts& stated);

}  // namespace trainctl
