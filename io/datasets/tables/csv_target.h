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

// A column of the target; `numeric` and `categorical` where the config names it so.
struct TargetColumn {
  std::string name;
  std::size_t field = 0;
  bool numeric = false, categorical = false;
};

class CsvTarget {
 public:
  // `words`: the target, of one column, is read as words from the first line on.
  CsvTarget(const std::string& path, std::vector<TargetColumn> columns, bool words)
      : path_(path), columns_(std::move(columns)), words_(words) {}

  // Adds a line's target. False where a word is the first of a target that may be words: it has to be read as words
  // from the first line. Throws Error{data} with line and column where a field is empty, or neither a number nor a word
  // that may be a class. The paths of places outlive the object.
  bool add(const std::vector<std::string_view>& fields, const LinePlace& line);

  // The data set of samples x [lines, ...] with this target and weights [lines], if there are some, as csv_dataset()
  // describes it. Throws Error{data}.
  std::shared_ptr<const Dataset> with_samples(Array x, std::optional<Array> weights, const StatedFacts& stated);

 private:
  // A distinct word: its number in order of appearance, and the line of its first appearance.
  struct Word {
    std::int32_t number;
    LinePlace line;
  };

  void add_word(std::string_view text, const LinePlace& line);
  std::vector<std::int32_t> number_words(const StatedFacts& stated, std::vector<std::string>& class_names) const;

  std::string path_;
  std::vector<TargetColumn> columns_;
  bool words_;
  std::vector<float> values_;                       // line by line; where the target is numbers
  std::map<std::string, Word, std::less<>> known_;  // where it is words
  std::vector<std::int32_t> of_lines_;              // the number of each line's word
};

}  // namespace trainctl
