// Reads the fields of a column line by line: numbers, or words that become one-hot values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/number_range.h"

namespace trainctl {

// Removes spaces, no-break spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);
// Reads a decimal number that float32 can hold; blanks around it, a plus sign and the minus sign of Unicode (U+2212)
// are accepted.
std::optional<double> decimal_in(std::string_view text);
// The same as float32.
std::optional<float> number_in(std::string_view text);
// Whether a text is a decimal number that is too large for float32, such as 1e39.
bool exceeds_float32(std::string_view text);
// Whether a text is a mark for a missing value: NA, N/A, NaN, nan, NULL, null or ?, or one of pandas' n/a, <NA>, #N/A,
// #NA, -nan and -NaN.
bool is_mark(std::string_view text);
// Whether a text is a number with a decimal comma: 3,14 or 1.234,5.
bool has_decimal_comma(std::string_view text);
// Whether a text is a date: 2024-01-31, 31.01.2024, 1/31/2024, with or without a time after it.
bool is_date(std::string_view text);

// automatic: words if no field is a number, with or without marks such as '%' (number_marks.h), and a word occurs more
// than once; otherwise numbers. Digits with spaces between them are words if no field is a number.
enum class ColumnKind { automatic, numeric, categorical };
// The fields that count as missing values: none (an empty field is an error), empty fields, or empty fields and those
// with is_mark().
enum class MissingFields { none, empty, marked };

// The location of a field, for messages.
struct FieldLocation {
  const std::string& path;
  const std::string& column;
  std::int64_t line;
  char delimiter = ',';  // between the fields of the file
};

// Throws Error{data} that says why a field is not a number: it is empty, is a date, has a currency sign, and so on.
// `remedy` replaces the usual remedy, which is for a column of samples.
[[noreturn]] void refuse_field(const FieldLocation& location, std::string_view text, const std::string& remedy = {});

class CsvColumn {
 public:
  // `vocabulary` has the words of a categorical column, in bytewise order; without it, the words are collected.
  // `accepts_others`: whether words that are not in the vocabulary are accepted.
  CsvColumn(const std::string& path, std::string name, ColumnKind kind, MissingFields missing,
            std::optional<std::vector<std::string>> vocabulary, bool accepts_others = false);

  // Lets the column hold the bins of its words, which are not collected. Called before fields are added.
  void hash_words(std::int64_t bins) { hash_bins_ = bins; }

  // Gives the words that are not in the vocabulary `values` values, of which hash_bin() chooses one. Called before
  // fields are added.
  void spread_others(std::int64_t values) { other_bins_ = values; }

  // Adds the field of a line. Throws Error{data} with line and column if a field is missing or not a number, or a word
  // is not in the vocabulary. line.path must outlive the object.
  void add(std::string_view field, const LineLocation& line);
  // Adds the bin of a line instead of its field.
  void add_bin(std::int64_t bin) { values_.push_back(static_cast<float>(bin)); }
  // Ends the column. Throws Error{data} if it holds no values, or if its words all differ and it is not categorical.
  void finish();

  // Leaves out the words that occur in none of these lines, counted from 0; they become other words. For a column
  // after finish() whose words were collected.
  void keep_words_of(const std::vector<std::int64_t>& lines);

  // The following are valid after finish().
  const std::string& name() const { return name_; }
  bool holds_words() const { return vocabulary_.has_value(); }
  // The number of bins of the words; 0: they are not hashed.
  std::int64_t hash_bins() const { return hash_bins_; }
  // The number of values for words that are not in the vocabulary.
  std::int64_t other_bins() const { return other_bins_; }
  // The words in bytewise order; only for a column of words.
  const std::vector<std::string>& vocabulary() const { return *vocabulary_; }
  // For each line its number, the index of its word in the vocabulary (-1 - b for another word, whose hash_bin() among
  // other_bins() is b), or the bin of its word; NaN for missing values.
  const std::vector<float>& values() const { return values_; }

  // The range of its numbers.
  const NumberRange& range() const { return range_; }
  // A warning about lines whose words are not in the given vocabulary; "" if there are none.
  std::string others_text() const;

 private:
  FieldLocation location(const LineLocation& line) const { return {*line.path, name_, line.line, line.delimiter}; }
  // Whether the given vocabulary has this word, which is then a word also if it is a mark for a missing value.
  bool in_vocabulary(std::string_view word) const;
  void add_word(std::string_view word, const LineLocation& line);
  void add_other(std::string_view word, const LineLocation& line);

  std::string path_, name_;
  ColumnKind kind_;
  MissingFields missing_;
  std::optional<std::vector<std::string>> vocabulary_;
  bool accepts_others_;
  std::int64_t hash_bins_ = 0;
  std::int64_t other_bins_ = 1;
  std::int64_t others_ = 0;  // number of lines whose word is not in the vocabulary
  std::string first_other_;  // the first of these words, and its line
  std::vector<float> values_;
  std::map<std::string, std::int32_t, std::less<>> words_;  // the collected words, numbered in order of appearance
  std::string first_word_;
  LineLocation first_line_;  // line of first_word_
  NumberRange range_;
  std::int64_t words_read_ = 0;
  bool has_numbers_ = false;
};

}  // namespace trainctl
