// A column of a table while its lines are read: numbers, or words that become one-hot values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/tables/csv_lines.h"

namespace trainctl {

std::string_view trimmed(std::string_view text);
// A finite float32, written in decimal; blanks around it and a plus sign are accepted.
std::optional<float> number_in(std::string_view text);
// Whether a text stands for a missing value: NA, N/A, NaN, nan, NULL, null or ?.
bool is_mark(std::string_view text);
// Whether a text is a number with a decimal comma: 3,14 or 1.234,5.
bool has_decimal_comma(std::string_view text);
// Whether a text is a date: 2024-01-31, 31.01.2024, 1/31/2024, with a time behind it or without.
bool is_date(std::string_view text);

// automatic: words where no field is a number and a word occurs more than once, else numbers.
enum class ColumnKind { automatic, numeric, categorical };
// The fields that count as missing values: none (an empty one is an error), empty ones, or also NA, N/A, NaN, null, ?.
enum class MissingFields { none, empty, marked };

// The place of a field, for messages.
struct FieldPlace {
  const std::string& path;
  const std::string& column;
  std::int64_t line;
};

// Throws Error{data}: the field is empty, is a date, or is no number. A remedy that is not empty stands for the one of
// a column of samples.
[[noreturn]] void refuse_field(const FieldPlace& place, std::string_view text, const std::string& remedy = {});

class CsvColumn {
 public:
  // `vocabulary` states the words of a categorical column, in bytewise order; without it they are collected.
  // `takes_others`: whether other words than these are taken.
  CsvColumn(const std::string& path, std::string name, ColumnKind kind, MissingFields missing,
            std::optional<std::vector<std::string>> vocabulary, bool takes_others = false);

  // Throws Error{data} with line and column: a field is missing or no number, or a word is not in the vocabulary. The
  // paths of places outlive the object.
  void add(std::string_view field, const LinePlace& line);
  // Ends the column. Throws Error{data} where it holds nothing, or words that all differ and are not said to be words.
  void finish();

  // The following are valid after finish().
  const std::string& name() const { return name_; }
  bool holds_words() const { return vocabulary_.has_value(); }
  // In bytewise order; only of a column of words.
  const std::vector<std::string>& vocabulary() const { return *vocabulary_; }
  // Of each line its number, or its word's place in the vocabulary, -1 for another word; NaN for missing values.
  const std::vector<float>& values() const { return values_; }

  // Names the lines whose words are not in the stated vocabulary; "" where there are none.
  std::string others_text() const;

 private:
  FieldPlace place(const LinePlace& line) const { return {*line.path, name_, line.line}; }
  void add_word(std::string_view word, const LinePlace& line);
  void add_other(std::string_view word, const LinePlace& line);

  std::string path_, name_;
  ColumnKind kind_;
  MissingFields missing_;
  std::optional<std::vector<std::string>> vocabulary_;
  bool takes_others_;
  std::int64_t others_ = 0;  // lines with another word than the vocabulary's, of which this is the first:
  std::string first_other_;
  std::vector<float> values_;
  std::map<std::string, std::int32_t, std::less<>> words_;  // those collected, numbered in order of appearance
  std::string first_word_;
  LinePlace first_line_;  // of first_word_
  std::int64_t words_read_ = 0;
  bool has_numbers_ = false;
};

}  // namespace trainctl
