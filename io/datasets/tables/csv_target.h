// Reads the target of a table line by line: words, whole numbers or values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/arrays/array.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_table.h"

namespace trainctl {

// A column of the target.
struct TargetColumn {
  std::string name;
  std::size_t field = 0;     // index of its field in a line
  bool categorical = false;  // the config lists it in `categorical`
  // The names of the training split's classes, in bytewise order: a mark for a missing value among them is a class.
  std::vector<std::string> classes = {};
};

// The kind of a target's fields: numbers, or words, which are classes. `automatic` means the kind of the first line's
// fields.
enum class TargetKind { automatic, numbers, words };

class CsvTarget {
 public:
  // TargetKind::words is only for a target of one column. `may_drop`: whether lines without a target may be left out,
  // which errors then recommend.
  CsvTarget(const std::string& path, std::vector<TargetColumn> columns, TargetKind kind, bool may_drop)
      : path_(path), columns_(std::move(columns)), ranges_(columns_.size()), kind_(kind), may_drop_(may_drop) {}

  // The first column whose field in a line is missing: empty, or a mark for a missing value that is no class of the
  // training split. Null if no field is missing.
  const TargetColumn* missing_in(const std::vector<std::string_view>& fields) const;

  // Adds a line's target. Returns false if the kind is automatic and the first line has a word: the target must then be
  // read again with TargetKind::words. Throws Error{data} with line and column if a field is empty or a mark for a
  // missing value, or if it is not a number where a number is expected. Also throws it if a column that is not
  // categorical holds numbers and words. line.path must outlive the object.
  bool add(const std::vector<std::string_view>& fields, const LineLocation& line);

  // Makes the data set that csv_dataset() describes, from samples x [lines, ...], this target and, if given, weights
  // [lines]. Throws Error{data}, also if two classes of a training split are the same number, such as 1 and 1.0, or if
  // a class number is negative or not one of the training split.
  std::shared_ptr<const Dataset> with_samples(Array x, std::optional<Array> weights, const DeclaredInfo& declared,
                                              const TableRows& rows);
  // A warning about numbers that float32 does not tell apart; "" if there are none.
  std::string warning() const;
  // Makes a data set of the targets, without samples.
  std::shared_ptr<const Dataset> alone(const DeclaredInfo& declared, const TableRows& rows);

 private:
  // A distinct word: its number in order of appearance, and the line of its first appearance.
  struct Word {
    std::int32_t number;
    LineLocation line;
  };

  void add_word(const TargetColumn& column, std::string_view text, const LineLocation& line);
  void refuse_two_spellings() const;
  [[noreturn]] void refuse(const TargetColumn& column, std::string_view text, const LineLocation& line) const;
  // The targets as an array, and the names of the classes, if they have names.
  struct Targets {
    Array values;
    std::vector<std::string> class_names;
  };
  Targets targets_of(const DeclaredInfo& declared, const TableRows& rows);
  void check_class_numbers(const DeclaredInfo& declared, const TableRows& rows) const;
  std::vector<std::int32_t> number_words(const DeclaredInfo& declared, std::vector<std::string>& class_names) const;

  std::string path_;
  std::vector<TargetColumn> columns_;
  std::vector<NumberRange> ranges_;  // of the columns
  TargetKind kind_;
  bool may_drop_;
  std::vector<float> values_;                       // for numbers: the values of all lines
  std::map<std::string, Word, std::less<>> known_;  // for words: the distinct words
  std::vector<std::int32_t> line_words_;            // for words: the number of each line's word
  std::string first_word_;                          // the first word that is not a number
  LineLocation first_line_;                         // line of first_word_
  bool has_number_ = false;
};

}  // namespace trainctl
