// Reads the fields of columns as numbers or words.
#include "io/datasets/tables/csv_column.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/farm_hash.h"
#include "io/datasets/tables/number_marks.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

constexpr float missing_value = std::numeric_limits<float>::quiet_NaN();
// The largest number of different words in a column that is not listed in `categorical`, and in a column that is
// listed.
constexpr std::size_t max_words_automatic = 1000, max_words_categorical = 65536;

// Reads a decimal number, which may be beyond the range of float32.
std::optional<double> float64_of(std::string_view text) {
  constexpr std::string_view minus = "\xE2\x88\x92";
  text = trimmed(text);
  std::string plain;
  if (text.starts_with(minus)) {
    plain = "-" + std::string(text.substr(minus.size()));
    text = plain;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.find_first_of("iInN") != std::string_view::npos) return std::nullopt;  // "inf", "nan"
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  // std::from_chars does not tell whether a number is too large or too small for float64.
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(text).c_str(), nullptr);
  else if (error != std::errc())
    return std::nullopt;
  return value;
}

std::string where(const FieldLocation& location) {
  return format("line {}, column '{}'", location.line, location.column);
}

}  // namespace

bool is_mark(std::string_view text) {
  constexpr std::string_view marks[] = {"NA",  "N/A",  "NaN",  "nan", "NULL", "null", "?",
                                        "n/a", "<NA>", "#N/A", "#NA", "-nan", "-NaN"};
  return std::find(std::begin(marks), std::end(marks), text) != std::end(marks);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view no_break = "\xC2\xA0";
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  for (;;) {
    if (!text.empty() && blank(text.front())) {
      text.remove_prefix(1);
    } else if (text.starts_with(no_break)) {
      text.remove_prefix(no_break.size());
    } else {
      break;
    }
  }
  for (;;) {
    if (!text.empty() && blank(text.back())) {
      text.remove_suffix(1);
    } else if (text.ends_with(no_break)) {
      text.remove_suffix(no_break.size());
    } else {
      return text;
    }
  }
}

std::optional<double> decimal_in(std::string_view text) {
  const std::optional<double> number = float64_of(text);
  return number && std::isfinite(static_cast<float>(*number)) ? number : std::nullopt;
}

std::optional<float> number_in(std::string_view text) {
  const std::optional<double> number = decimal_in(text);
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

bool exceeds_float32(std::string_view text) {
  const std::optional<double> number = float64_of(text);
  return number && !std::isfinite(static_cast<float>(*number));
}

bool has_decimal_comma(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const std::size_t comma = text.find(',');
  if (comma == 0 || comma == std::string_view::npos || comma + 1 == text.size()) return false;
  const auto digits = [](std::string_view group) {
    return std::all_of(group.begin(), group.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  std::string_view whole = text.substr(0, comma);
  for (std::size_t point = whole.rfind('.'); point != std::string_view::npos; point = whole.rfind('.')) {
    if (whole.size() - point != 4 || !digits(whole.substr(point + 1))) return false;  // not a group of thousands
    whole = whole.substr(0, point);
  }
  return !whole.empty() && digits(whole) && digits(text.substr(comma + 1));
}

bool is_date(std::string_view text) {
  std::size_t digits[3] = {};
  char separator = 0;
  for (int group = 0; group < 3; ++group) {
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0]))) {
      text.remove_prefix(1);
      ++digits[group];
    }
    if (group == 2) break;
    if (text.empty() || std::string_view("-/.").find(text[0]) == std::string_view::npos) return false;
    if (group == 1 && text[0] != separator) return false;
    separator = text[0];
    text.remove_prefix(1);
  }
  const auto is_day = [](std::size_t n) { return n == 1 || n == 2; };
  const bool year_first = digits[0] == 4 && is_day(digits[2]), year_last = is_day(digits[0]) && digits[2] == 4;
  return is_day(digits[1]) && (year_first || year_last) && (text.empty() || text[0] == 'T' || text[0] == ' ');
}

void refuse_field(const FieldLocation& location, std::string_view text, const std::string& remedy) {
  const std::string_view shown = text.substr(0, 40);
  const auto or_else = [&](const char* usual) { return remedy.empty() ? std::string(usual) : remedy; };
  if (text.empty()) {
    data_error(
        location.path, format("{} is empty", where(location)),
        or_else("choose with `missing` what replaces missing values or, unless the lines are a series, leave out "
                "such lines"));
  }
  if (is_mark(text)) {
    data_error(location.path, format("{}: '{}' is not a number, but means a missing value", where(location), shown),
               or_else("choose with `missing` what replaces missing values"));
  }
  if (exceeds_float32(text)) {
    data_error(location.path, format("{}: '{}' is {}", where(location), shown, beyond_float32),
               or_else("scale the column, or correct the field"));
  }
  if (is_date(text)) {
    data_error(
        location.path, format("{}: '{}' is a date, not a number", where(location), shown),
        "store the date as numbers (days since the first one, month, weekday), or list the other columns in `columns`");
  }
  if (const std::optional<NumberMarks> marks = number_marks(text)) {
    // The command that removes points between thousands would remove the decimal points of other columns, too.
    const std::string plain =
        marks->points ? remedy_without_command : remedy_for(*marks, location.path, location.delimiter);
    data_error(location.path, format("{}: '{}' is not a number: it has {}", where(location), shown, text_of(*marks)),
               (remedy.empty() ? "if the column holds names, list it in `categorical`; otherwise " : "") + plain);
  }
  if (text.find_first_of(";\t|") != std::string_view::npos) {
    data_error(location.path, format("{}: '{}' is not a number", where(location), shown),
               "set `delimiter` to the character between the fields");
  }
  data_error(
      location.path, format("{}: '{}' is not a number", where(location), shown),
      or_else("correct the field, or leave it empty and choose with `missing` what replaces missing values; if the "
              "column holds words, list it in `categorical`; if it is of no use, list the other ones in `columns`"));
}

CsvColumn::CsvColumn(const std::string& path, std::string name, ColumnKind kind, MissingFields missing,
                     std::optional<std::vector<std::string>> vocabulary, bool accepts_others)
    : path_(path),
      name_(std::move(name)),
      kind_(kind),
      missing_(missing),
      vocabulary_(std::move(vocabulary)),
      accepts_others_(accepts_others) {}

void CsvColumn::add(std::string_view field, const LineLocation& line) {
  const std::string_view text = trimmed(field);
  const bool marked_missing = missing_ == MissingFields::marked && is_mark(text) && !in_vocabulary(text);
  if (text.empty() ? missing_ != MissingFields::none : marked_missing) {
    values_.push_back(missing_value);
    return;
  }
  if (text.empty()) refuse_field(location(line), text);
  if (hash_bins_ > 0) {
    values_.push_back(static_cast<float>(hash_bin(text, hash_bins_)));
    return;
  }
  if (kind_ == ColumnKind::categorical) return add_word(text, line);
  if (const std::optional<double> number = decimal_in(text)) {
    if (words_read_ > 0) refuse_field(location(first_line_), first_word_);
    has_numbers_ = true;
    values_.push_back(static_cast<float>(*number));
    range_.add(*number);
    return;
  }
  const bool marked = number_marks(text) && !is_digits_and_spaces(text);
  const bool refused = kind_ == ColumnKind::numeric || has_numbers_ || is_date(text) || marked || exceeds_float32(text);
  if (refused) refuse_field(location(line), text);
  add_word(text, line);
}

bool CsvColumn::in_vocabulary(std::string_view word) const {
  return vocabulary_ && std::binary_search(vocabulary_->begin(), vocabulary_->end(), word);
}

void CsvColumn::add_word(std::string_view word, const LineLocation& line) {
  if (vocabulary_) {
    const auto found = std::lower_bound(vocabulary_->begin(), vocabulary_->end(), word);
    if (found == vocabulary_->end() || *found != word) {
      if (accepts_others_) return add_other(word, line);
      data_error(*line.path,
                 format("{}: '{}' is not a word of the training split", where(location(line)), word.substr(0, 40)),
                 "correct the word, train with a line that has it, or train with `out_of_vocabulary: true`");
    }
    values_.push_back(static_cast<float>(found - vocabulary_->begin()));
    return;
  }
  auto found = words_.find(word);
  if (found == words_.end()) {
    const std::size_t max_words = kind_ == ColumnKind::categorical ? max_words_categorical : max_words_automatic;
    if (words_.size() == max_words) {
      data_error(
          *line.path, format("{}: the column has more than {} different words", where(location(line)), max_words),
          max_words == max_words_categorical ? "list the other columns in `columns`"
                                             : "list the other columns in `columns`, or this one in `categorical`");
    }
    require_utf8_text(*line.path, where(location(line)), word);
    found = words_.emplace(word, static_cast<std::int32_t>(words_.size())).first;
  }
  if (words_read_++ == 0) {
    first_word_ = word;
    first_line_ = line;
  }
  values_.push_back(static_cast<float>(found->second));
}

void CsvColumn::add_other(std::string_view word, const LineLocation& line) {
  if (others_++ == 0) first_other_ = format("'{}' in line {}", word.substr(0, 40), line.line);
  values_.push_back(static_cast<float>(-1 - hash_bin(word, other_bins_)));
}

std::string CsvColumn::others_text() const {
  if (others_ == 0) return "";
  return format("{}: column '{}' has words in {} of {} that are not in the training split (the first: {})", path_,
                name_, grouped(others_), counted(std::ssize(values_), "line"), first_other_);
}

void CsvColumn::finish() {
  if (vocabulary_ || hash_bins_ > 0) return;
  // Words that all differ are names or texts, whose one-hot values are of no use.
  if (kind_ == ColumnKind::automatic && words_read_ > 0 && words_.size() == static_cast<std::size_t>(words_read_)) {
    refuse_field(location(first_line_), first_word_);
  }
  if (words_read_ == 0 && !has_numbers_ && kind_ != ColumnKind::numeric) {
    data_error(path_, format("column '{}' holds no value", name_), "list the other columns in `columns`");
  }
  if (words_read_ == 0) return;
  std::vector<float> indices(words_.size());
  vocabulary_.emplace();
  for (const auto& [word, number] : words_) {
    indices[static_cast<std::size_t>(number)] = static_cast<float>(vocabulary_->size());
    vocabulary_->push_back(word);
  }
  for (float& value : values_) {
    if (!std::isnan(value)) value = indices[static_cast<std::size_t>(value)];
  }
}

void CsvColumn::keep_words_of(const std::vector<std::int64_t>& lines) {
  if (!vocabulary_) return;
  std::vector<bool> occurs(vocabulary_->size());
  for (const std::int64_t line : lines) {
    const float value = values_[static_cast<std::size_t>(line)];
    if (value >= 0) occurs[static_cast<std::size_t>(value)] = true;
  }
  std::vector<float> indices(vocabulary_->size());
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < occurs.size(); ++i) {
    indices[i] = static_cast<float>(-1 - hash_bin((*vocabulary_)[i], other_bins_));
    if (!occurs[i]) continue;
    indices[i] = static_cast<float>(kept.size());
    kept.push_back(std::move((*vocabulary_)[i]));
  }
  vocabulary_ = std::move(kept);
  for (float& value : values_) {
    if (value >= 0) value = indices[static_cast<std::size_t>(value)];
  }
}

}  // namespace trainctl
