// The target of a table while its lines are read: words, whole numbers or values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/arrays/array.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_lines.h"

namespace trainctl {

// A column of the target; `categorical` where the config names it so.
struct TargetColumn {
  std::string name;
  std::size_t field = 0;
  bool categorical = false;
};

// The fields of a target: numbers; words, which are classes; or either, but all of one kind.
enum class TargetKind { automatic, numbers, words };

class CsvTarget {
 public:
  // Words are of a target of one column.
  CsvTarget(const std::string& path, std::vector<TargetColumn> columns, TargetKind kind)
      : path_(path), columns_(std::move(columns)), kind_(kind) {}

  // Adds a line's target. False where the kind is automatic and the first line has a word: the target has to be read as
  // words from that line on. Throws Error{data} with line and column where a field is empty or stands for a missing
  // value, where a number is expected and the field is none, or where a column that is not named `categorical` holds
  // numbers and words. The paths of places outlive the object.
  bool add(const std::vector<std::string_view>& fields, const LinePlace& line);

  // The data set of samples x [lines, ...] with this target and weights [lines], if there are some, as csv_dataset()
  // describes it. Throws Error{data}.
  std::shared_ptr<const Dataset> with_samples(Array x, std::optional<Array> weights, const DeclaredInfo& declared);

 private:
  // A distinct word: its number in order of appearance, and the line of its first appearance.
  struct Word {
    std::int32_t number;
    LinePlace line;
  };

  void add_word(const TargetColumn& column, std::string_view text, const LinePlace& line);
  [[noreturn]] void refuse(const TargetColumn& column, std::string_view text, const LinePlace& line) const;
  std::vector<std::int32_t> number_words(const DeclaredInfo& declared, std::vector<std::string>& class_names) const;

  std::string path_;
  std::vector<TargetColumn> columns_;
  TargetKind kind_;
  std::vector<float> values_;                       // line by line; where the target is numbers
  std::map<std::string, Word, std::less<>> known_;  // where it is words
  std::vector<std::int32_t> of_lines_;              // the number of each line's word
  std::string first_word_;                          // that is no number
  LinePlace first_line_;                            // of first_word_
  bool has_number_ = false;
};

}  // namespace trainctl
