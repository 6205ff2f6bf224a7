// Reads a table, and finds the kinds of its columns.
#include "run/draft/table_look.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_width.h"

namespace trainctl {
namespace {

// Whether a line consists of numbers, with or without decimal commas, separated by semicolons.
bool has_semicolons(std::string_view line) {
  if (line.find(';') == std::string_view::npos) return false;
  while (!line.empty()) {
    const std::string_view field = line.substr(0, line.find(';'));
    if (!number_in(field) && !has_decimal_comma(field)) return false;
    line.remove_prefix(std::min(field.size() + 1, line.size()));
  }
  return true;
}

// Whether the first lines of a text have the same number of fields with one space between them.
bool has_spaces_between_fields(std::string_view text) {
  constexpr int most = 20;
  std::ptrdiff_t spaces = -1;
  for (int read = 0; read < most && text.find('\n') != std::string_view::npos; ++read) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::ptrdiff_t found = std::count(line.begin(), line.end(), ' ');
    if (found == 0 || (spaces >= 0 && found != spaces)) return false;
    if (line.starts_with(' ') || line.ends_with(' ') || line.find("  ") != std::string_view::npos) return false;
    spaces = found;
  }
  return spaces > 0;
}

// Refuses a table with blanks of any number between its fields, which are read as one field.
void refuse_blanks_between_fields(const TableLook& table) {
  const TableColumn& only = table.columns[0];
  const auto spaced = [](const std::string& text) { return text.find_first_of(" \t") != std::string::npos; };
  const bool all = !only.distinct_texts.empty() && std::ranges::all_of(only.distinct_texts, spaced);
  if (table.columns.size() > 1 || !all) return;
  data_error(table.path, "has one field in each line, in which there are blanks",
             format("if these separate the fields, write commas instead (sed -E 's/^ +//;s/[ \t]+/,/g' {} > {})",
                    shell_word(table.path), shell_word(name_of_copy(table.path, "commas"))));
}

// The first line that is no comment, which begins with # or %; the first line if all are comments.
std::string_view first_line_without_comment(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.empty() && line[0] != '#' && line[0] != '%') return line;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return first;
}

// The delimiter: the candidate that the first line after comments contains most often.
char delimiter_of(const std::string& path) {
  constexpr std::int64_t max_bytes = 1 << 16;
  const InputFile file(path);
  std::string begin(static_cast<std::size_t>(std::min(file.size(), max_bytes)), '\0');
  file.read(0, begin.data(), std::ssize(begin));
  const std::string line(first_line_without_comment(begin));
  if (has_semicolons(line)) return ';';
  const std::string candidates = ",;\t|";
  if (line.find_first_of(candidates) == std::string::npos && has_spaces_between_fields(begin)) return ' ';
  return *std::max_element(candidates.begin(), candidates.end(), [&](char a, char b) {
    return std::count(line.begin(), line.end(), a) < std::count(line.begin(), line.end(), b);
  });
}

// Whether a text has at least two spaces between its words.
bool is_sentence(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }) >= 2;
}

// Looks whether the point of a number separates thousands, as in 1.040: at most three digits are before it, of which
// the first is not 0, and three after it.
void look_at_point(std::string_view text, std::int64_t line, TableColumn& column) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) {
    column.has_decimals = column.has_decimals || text.size() > 3;
  } else if (point == 0 || point > 3 || text.size() - point != 4 || text[0] == '0') {
    column.has_decimals = column.has_decimal_point = true;
  } else if (column.first_point.line == 0) {
    column.first_point = {std::string(text), line};
  }
}

void add_number(std::string_view text, float number, std::int64_t line, TableColumn& column) {
  column.whole = column.whole && number == std::floor(number);
  const bool follows = column.numbers == 0 || double{number} == column.last_number + 1;
  column.ascends_by_one = column.ascends_by_one && column.whole && follows;
  column.last_number = double{number};
  column.largest = std::max(column.largest, std::abs(double{number}));
  column.lowest = column.numbers == 0 ? number : std::min(column.lowest, number);
  column.highest = column.numbers == 0 ? number : std::max(column.highest, number);
  ++column.numbers;
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (column.width == 0) column.width = text.size();
  column.one_width = column.one_width && digits && text.size() == column.width;
  const int hour_and_minute = static_cast<int>(number);
  column.times =
      column.times && column.one_width && text.size() == 4 && hour_and_minute / 100 < 24 && hour_and_minute % 100 < 60;
  const bool code = digits && text.size() > 1 && text[0] == '0';
  if (code && column.codes++ == 0) column.first_code = {std::string(text), line};
  look_at_point(text, line, column);
}

void add_word(std::string_view text, std::int64_t line, TableColumn& column) {
  if (column.words++ == 0) column.first_word = {std::string(text), line};
  if (is_sentence(text)) ++column.sentences;
  if (column.distinct_words.size() < TableColumn::max_words) column.distinct_words.emplace(text);
  const std::optional<NumberMarks> marks = number_marks(text);
  if (!marks || !marks->points) column.has_point_in_word = column.has_point_in_word || has_removable_point(text);
  if (!marks) return;
  if (column.marked++ == 0) column.first_marked = {std::string(text), line};
  column.marks.add(*marks);
}

void look_at(std::string_view field, std::int64_t line, TableColumn& column) {
  const std::string_view text = trimmed(field);
  if (text.empty() || is_mark(text)) {
    if (column.missing++ == 0) column.first_missing = {std::string(text), line};
    if (column.missing_lines.size() < TableColumn::max_missing_lines) column.missing_lines.push_back(line);
    return;
  }
  std::string value(text);
  if (const std::optional<float> number = number_in(text)) {
    add_number(text, *number, line, column);
    const std::string shortest = shortest_spelling(text);  // 1 and 1.0 are one value
    value = shortest.empty() ? format("{}", *number) : shortest;
  } else if (is_date(text)) {
    ++column.dates;
  } else {
    add_word(text, line, column);
  }
  if (!column.repeats) column.repeats = column.distinct.contains(value);
  if (!column.is_full()) column.distinct.insert(value);
  if (column.distinct_texts.size() < TableColumn::max_distinct) column.distinct_texts.emplace(text);
}

bool is_named_as_number_of_line(const TableColumn& column) {
  const std::string name = lower_case(column.name);
  return name == "id" || name.ends_with("_id") || name == "index";
}

// Whether the column has a name such as PassengerId or RowNumber, and a number of its own in each line. Repeated
// numbers (userId) may be categories, and numbers without such a name may be times.
bool numbers_lines_by_values(const TableColumn& column, std::int64_t lines) {
  static const std::set<std::string, std::less<>> names{"rownumber", "rownum", "rowno", "linenumber", "serialnumber",
                                                        "serialno",  "srno",   "sno",   "number",     "no"};
  const std::string& name = column.name;
  const bool is_id = name.size() > 2 && (name.ends_with("Id") || name.ends_with("ID")) &&
                     name[name.size() - 3] >= 'a' && name[name.size() - 3] <= 'z';
  std::string letters = lower_case(name);
  std::erase_if(letters, [](unsigned char c) { return std::isalnum(c) == 0; });
  if (column.numbers != lines || !column.whole || !(is_id || names.contains(letters))) return false;
  return column.ascends_by_one || (is_id && !column.repeats);
}

}  // namespace

bool TableColumn::has_codes() const {
  if (codes == 0 || !whole || dates > 0 || marked > 0) return false;
  const bool many_times = times && distinct_texts.size() > 100;
  return (one_width && !many_times) || (!one_width && 10 * codes >= numbers);
}

bool TableColumn::has_categories() const {
  return whole && distinct.size() <= 20 && 2 * std::ssize(distinct) <= numbers + words;
}

bool TableColumn::has_stray_words() const {
  if (words == 0 || numbers == 0 || has_categories()) return false;
  return 10 * words <= numbers || distinct_words.size() <= 3;
}

std::string TableColumn::enclosed_number() const {
  const auto is_enclosed = [](std::string_view text) {
    if (text.starts_with("0x")) return text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
    if (text.size() < 3) return false;
    const char begin = text.front(), end = text.back();
    const bool closed = (begin == '(' && end == ')') || (begin == end && (begin == '\'' || begin == '"'));
    return closed && number_in(text.substr(1, text.size() - 2)).has_value();
  };
  const auto found = std::ranges::find_if(distinct_words, is_enclosed);
  return 2 * std::ranges::count_if(distinct_words, is_enclosed) < std::ssize(distinct_words) ||
                 found == distinct_words.end()
             ? ""
             : *found;
}

void TableColumn::take_codes_for_words() {
  if (!has_codes()) return;
  words += numbers;
  numbers = 0;
  first_word = first_code;
  distinct = distinct_texts;
  distinct_words.clear();
  for (const std::string& text : distinct) {
    if (distinct_words.size() < max_words) distinct_words.insert(text);
  }
}

bool TableColumn::holds_texts(std::int64_t lines) const {
  return words > 0 && 10 * numbers <= words && 2 * sentences >= words &&
         (distinct.size() > 20 || 2 * std::ssize(distinct) >= lines);
}

TableLook look_at_table(const std::string& path) {
  TableLook table{.path = path, .delimiter = delimiter_of(path)};
  CsvLines lines(table.path, table.delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) data_error(path, "is empty", "give a table with a line for each sample");
  if (may_be_preamble(fields)) refuse_preamble(path, table.delimiter);
  table.first_line = first_line_of(path, table.delimiter);
  for (std::size_t k = 0; k < std::min<std::size_t>(fields.size(), 2); ++k) {
    table.first_fields += std::string(trimmed(fields[k])) + table.delimiter;
  }
  for (const std::string& name : names_in(fields, table.has_header())) {
    table.columns.emplace_back().name = name;
    table.columns.back().has_point_in_word = table.has_header() && has_removable_point(name);
  }
  for (bool more = !table.has_header() || lines.next(fields); more; more = lines.next(fields)) {
    const std::int64_t line = lines.place().line;
    if (fields.size() != table.columns.size()) refuse_width(lines.place(), fields, table.columns.size());
    for (std::size_t k = 0; k < fields.size(); ++k) {
      look_at(fields[k], line, table.columns[k]);
      table.has_line_ends = table.has_line_ends || fields[k].find('\n') != std::string_view::npos;
    }
    ++table.lines;
  }
  refuse_blanks_between_fields(table);
  for (TableColumn& column : table.columns) {
    if (column.words > 0) column.distinct = column.distinct_texts;
  }
  if (table.lines < 2) {
    data_error(path, format("has {} of values", table.lines == 1 ? "one line" : "no line"),
               "training needs at least two lines");
  }
  return table;
}

std::set<std::string> columns_with_gaps(const std::string& path, const TableLook& like) {
  CsvLines lines(path, like.delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return {};
  const std::vector<std::string> names = names_in(fields, like.has_header());
  std::set<std::string> found;
  for (bool more = !like.has_header() || lines.next(fields); more; more = lines.next(fields)) {
    for (std::size_t k = 0; fields.size() == names.size() && k < fields.size(); ++k) {
      const std::string_view text = trimmed(fields[k]);
      if (text.empty() || is_mark(text)) found.insert(names[k]);
    }
  }
  return found;
}

bool is_left_out_with_words(const TableColumn& column, std::int64_t lines) {
  const bool same = column.distinct.size() == 1 && column.missing == 0;
  const bool ids = column.numbers > 0 && column.marked == 0 && column.whole && column.distinct.size() > 100 &&
                   column.distinct_words.size() > 3;
  return column.dates > 0 || column.missing == lines || same || ids || is_named_as_number_of_line(column);
}

std::string why_left_out(const TableColumn& column, std::int64_t lines) {
  const std::size_t distinct = column.distinct.size();
  if (column.dates > 0) return "holds dates";
  if (column.missing == lines) return "is empty";
  if (distinct == 1 && column.missing == 0) return "is the same in all lines";
  const bool equal = column.numbers == lines && column.lowest == column.highest;
  if (equal && column.codes == 0) return "holds numbers that are all equal as float32";
  if (column.words > 0 && (column.is_full() || distinct > 100)) {
    return column.has_codes() ? format("holds more than 100 different codes such as '{}'", column.first_code.text)
                              : "holds more than 100 different words";
  }
  if (column.words > 0 && std::ssize(column.distinct) == column.words + column.numbers) return "differs in every line";
  if (is_named_as_number_of_line(column) || numbers_lines_by_values(column, lines)) return "numbers the lines";
  const bool unnamed = column.name.empty() || lower_case(column.name).starts_with("unnamed:");
  if (unnamed && column.numbers == lines && column.ascends_by_one) return "numbers the lines, like the index of pandas";
  return "";
}

}  // namespace trainctl
