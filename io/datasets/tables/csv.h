// Reads tables of text: one sample in each line, columns of numbers or words, and a target.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/by_name.h"
#include "core/spec/values.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/crosses.h"
#include "io/datasets/tables/csv_table.h"
#include "io/datasets/windows.h"

namespace trainctl {

// What happens to a line whose target is missing.
enum class MissingTarget { error, drop };

template <>
struct EnumNames<MissingTarget> {
  static constexpr EnumName<MissingTarget> names[] = {{MissingTarget::error, "error"}, {MissingTarget::drop, "drop"}};
};

// Names of columns; the config may write a single name without brackets.
struct ColumnNames : std::vector<std::string> {
  using std::vector<std::string>::vector;
};

// The options for reading a table.
struct CsvFormat {
  std::string delimiter = ",";  // one character
  // Whether the first line holds the names of the columns; auto: it does. Otherwise the names are "1", "2", ...
  Auto<bool> header;
  ColumnNames target;   // empty: the last column
  ColumnNames columns;  // the columns of a sample, in this order; empty: all except the targets and the weight
  std::optional<ByName<ColumnNames>> inputs;   // the columns of each input by its name; absent: there is one input
  std::optional<ByName<ColumnNames>> targets;  // the columns of each output by its name; absent: there is one output
  std::optional<WindowOptions> windows;        // samples are windows of consecutive lines
  std::string weight;                          // the column of the samples' weights; empty: all are 1
  ColumnNames numeric;                         // columns that must hold numbers
  ColumnNames categorical;                     // columns that hold words, even if these look like numbers
  std::map<std::string, std::int64_t> hash;    // columns of words, and the number of bins of each
  std::map<std::string, Discretization> discretize;  // columns of numbers that are divided into bins
  std::map<std::string, Cross> crosses;              // further columns, by their names
  bool out_of_vocabulary = true;  // whether columns of words have a value for words that are not in the training split
  std::int64_t num_oov_indices = 1;  // the number of these values
  MissingValue missing = MissingRule::error;
  MissingTarget missing_targets = MissingTarget::error;
  bool standardize = false;

  // Whether targets are in lines after the windows, so that their columns may also be columns of samples.
  bool forecasts() const { return windows && windows->horizon > 0; }
};

template <>
struct Value<ColumnNames> {
  using List = Value<std::vector<std::string>>;

  static TypeInfo type() {
    TypeInfo info = List::type();
    info.single_item_allowed = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, ColumnNames& value) {
    if (node.is_sequence()) return List::read(node, reader, value);
    if (!node.is_scalar()) return reader.expected(node, type()), false;
    return Value<std::string>::read(node, reader, value.emplace_back());
  }
  static Node write(const ColumnNames& value) { return List::write(value); }
};

// Reports a `delimiter` of the data set's config `data` that is not one character or cannot separate fields.
void check_delimiter(const std::string& delimiter, const Node& data, Reader& reader);

// Makes a data set of a table in the format of RFC 4180 (csv_lines.h). Samples are float32 [values]: a column of
// numbers becomes one value; a column of words becomes one value for each word of the training split, in bytewise
// order, after one value for all other words (out_of_vocabulary); a column in `hash` or `discretize` becomes one value
// for each bin; so does a cross, a column that follows those of the file. Columns that are listed neither in `numeric`
// nor in `categorical` are read as ColumnKind::automatic. Missing numbers are filled and columns of numbers are
// standardised with statistics of the training split. The column of weights may be missing in the other splits. A
// single target column of words holds classes, numbered in bytewise order of the words (class_names); one of whole
// numbers holds classes or values as in array_dataset(); other targets hold values. The whole table is kept in memory.
// Several files form one table: all have the columns of the first file, in any order. If the training split's table has
// no targets, samples have no targets. Lines without a target are an error, or are left out (`missing_targets`).
// Samples are named by their lines. Throws Error{data} with line and column if lines differ in length, or if a field is
// empty or not a finite number. Also throws it if a weight is negative, or if a word is not in the training split and
// has no value. Throws Error{config} if a column in `format` is missing. With `format.windows`, samples are
// windows_of() the lines; if these forecast, the columns of a sample are by default all except the weight.
std::shared_ptr<const Dataset> csv_dataset(const std::vector<std::string>& paths, const CsvFormat& format,
                                           const DeclaredInfo& declared);

// Makes a data set for each input of a network, like csv_dataset() with the columns that `format.inputs` lists for it;
// an input of tokens (ArrayUse::tokens) has int32 samples as in table_dataset(). The first data set also has the
// targets of the first output and the weights, so inputs[0].declared is the info about both. `further` are the other
// outputs, with the columns that `format.targets` lists. Samples with the same number are of the same line.
DatasetGroup csv_group(const std::vector<std::string>& paths, const CsvFormat& format,
                       const std::vector<NamedInfo>& inputs, const std::vector<NamedInfo>& further = {},
                       const std::string& first_output = "");

}  // namespace trainctl
