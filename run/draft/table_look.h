// Finds what the columns of a table hold: numbers, words, texts or dates.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/tables/csv_header.h"
#include "io/datasets/tables/number_marks.h"
#include "run/draft/draft.h"

namespace trainctl {

// A field and the number of its line.
struct SeenField {
  std::string text;
  std::int64_t line = 0;
};

// The kinds and values of the fields of a column.
struct TableColumn {
  std::string name;
  std::int64_t numbers = 0, words = 0, dates = 0, missing = 0;
  std::int64_t sentences = 0;                   // words that are texts of at least three words
  std::int64_t marked = 0;                      // words that are numbers with marks such as '$'
  NumberMarks marks;                            // the marks of all these words
  bool whole = true;                            // all numbers are whole
  bool ascends_by_one = true;                   // each number is larger by one than that of the line before
  double largest = 0;                           // the largest absolute value of the numbers
  float lowest = 0, highest = 0;                // of the numbers
  double last_number = 0;                       // the number of the last line that was read
  bool repeats = false;                         // one of the first max_distinct different values is in several lines
  std::set<std::string, std::less<>> distinct;  // the first max_distinct values: numbers, or with words the texts
  std::set<std::string, std::less<>> distinct_texts;  // the first max_distinct texts
  std::set<std::string, std::less<>> distinct_words;  // the first max_words of those that are no numbers
  std::int64_t codes = 0;                             // whole numbers with a leading zero, such as 01234
  std::size_t width = 0;                              // the number of digits of the first number
  bool one_width = true;                              // all numbers consist of as many digits
  bool times = true;                                  // all numbers have four digits, of a time such as 0930
  SeenField first_word, first_marked, first_missing, first_code;
  std::vector<std::int64_t> missing_lines;  // the first max_missing_lines
  SeenField first_point;                    // the first number like 1.040, whose point may separate thousands
  bool has_decimals = false;                // a number shows that points do not separate thousands
  bool has_decimal_point = false;           // a number has a point that cannot separate thousands
  bool has_point_in_word = false;  // has_removable_point() of a word or the name, without points between thousands

  static constexpr std::size_t max_distinct = 1000, max_words = 101, max_missing_lines = 21;

  bool is_full() const { return distinct.size() >= max_distinct; }
  // Whether its numbers are codes, such as postal codes: whole numbers of which some have leading zeros, and which all
  // have as many digits, or of which at least a tenth have leading zeros. Many times of a day are numbers.
  bool has_codes() const;
  // Takes all numbers for words, if they are codes.
  void take_codes_for_words();
  // Whether its words and numbers are few values that are repeated, which may be categories.
  bool has_categories() const;
  // Whether it holds numbers, and words only here and there.
  bool has_stray_words() const;
  // The first of its words that are numbers in quotes or parentheses or with 0x ('0.85', (7.5), 0x1f), if at least half
  // of its different words are; "" if not.
  std::string enclosed_number() const;
  // Whether it holds texts of several words, most of which differ.
  bool holds_texts(std::int64_t lines) const;
  // Whether its words are numbers with marks, rather than names.
  bool has_marks() const { return marked > 0 && (marked == words || has_stray_words()); }
  // Whether it holds points that the command that removes points between thousands may remove.
  bool has_points() const { return first_point.line > 0 || marks.points || !keeps_values_without_points(); }
  // Whether all such points separate thousands if some of them do.
  bool keeps_values_without_points() const { return !has_decimal_point && !has_point_in_word; }
  // Whether the points of its numbers may separate thousands.
  bool has_doubtful_points() const { return first_point.line > 0 && !has_decimals; }
};

struct TableLook {
  std::string path;
  char delimiter = ',';
  FirstLine first_line = FirstLine::names;
  std::string first_fields;    // the beginning of the first line
  std::int64_t lines = 0;      // of values
  bool has_line_ends = false;  // whether a field holds a line end
  std::vector<TableColumn> columns;

  bool has_header() const { return first_line != FirstLine::sample; }
};

// Reads a table. Throws Error{data} if its lines differ in length, or if it has fewer than two lines of values.
TableLook look_at_table(const std::string& path);

// Whether a column is left out whatever its words are, so that they need no correction: it holds dates, no values, one
// value or ids (C536000 among whole numbers), or is named like the number of a line.
bool is_left_out_with_words(const TableColumn& column, std::int64_t lines);

// Why a column has no information that a network could learn from; "" if it has.
std::string why_left_out(const TableColumn& column, std::int64_t lines);

// Throws Error{data} with line and value if numbers of a column have marks, or if there are words among the numbers of
// a column other than the target; opening the table reports these. Columns with is_left_out_with_words() are accepted,
// unless they are the target. With `target_is_class`, words of the target are classes.
void refuse_fields(const TableLook& table, const TableColumn& target, bool target_is_class);

// Throws Error{data} if a value of the target is missing, for data sets that do not leave out such lines.
void refuse_missing_target(const TableLook& table, const TableColumn& target);

// Throws Error{data} if the column cannot be the target since it is empty, holds dates or one value, since its words
// all differ or, unless the user says that they are classes, are more than 100, or since its numbers are too large for
// values (`is_class`: they are classes).
void refuse_target(const TableLook& table, const TableColumn& target, bool is_class, TargetsAre targets);

// The names of the columns of a table in which values are missing. The table has the form of `like`; lines of another
// length are not looked at, since opening the table reports them.
std::set<std::string> columns_with_gaps(const std::string& path, const TableLook& like);

}  // namespace trainctl
