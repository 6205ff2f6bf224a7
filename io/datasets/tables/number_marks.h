// Recognizes numbers with marks that a table must not have: currency signs, percent signs, separators of thousands and
// decimal commas. Gives the commands that remove the marks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The marks of a number, or of several numbers of a column.
struct NumberMarks {
  bool currency = false, percent = false;
  bool spaces = false;         // spaces or apostrophes between thousands: 1 040, 1'040
  bool points = false;         // points between thousands: 1.040.500, 1.040,5
  bool commas = false;         // a comma, which separates thousands or begins the decimal places
  bool decimal_comma = false;  // a comma that can only begin the decimal places: 3,14
  bool thousands = false;      // a comma that can only separate thousands: 1,040,500 or 1,040.50

  void add(const NumberMarks& other);
  // Whether the commas of two sets of marks mean the same, or one of them has no commas.
  bool commas_agree(const NumberMarks& other) const;
};

// Returns the marks of a number that has some; nullopt for a number without marks, and for any other text. Groups of
// digits after a 0, and IP addresses, are no numbers.
std::optional<NumberMarks> number_marks(std::string_view text);

// Whether a text consists of digits and spaces. Such a text is a number with spaces between thousands, or a name such
// as a telephone number.
bool is_digits_and_spaces(std::string_view text);

// Returns the shortest spelling of a number in digits: "1" for "1", "1.0", "+1" and "01"; "" for any other text.
std::string shortest_spelling(std::string_view text);

// Returns the spelling of a whole number without decimal places: "1" for "1", "1.0" and "+1"; "" for any other text. A
// number with a leading zero, as in 01, is another text, and so is 1.10, which may be a section beside 1.1.
std::string whole_spelling(std::string_view text);

// Names the marks: "a currency sign and a decimal comma".
std::string text_of(const NumberMarks& marks);

// Whether a text holds a point before three digits, which the command that removes points between thousands would
// remove.
bool has_removable_point(std::string_view text);

// What to do where a command would also change the numbers of other columns.
constexpr const char* remedy_without_command =
    "write the numbers of this column with a decimal point and without other marks";

// Returns what to do: one command, or two if the commas may have two meanings. A command writes a copy of the table,
// whose fields `delimiter` separates, without the marks. It changes all columns: other columns must hold no points
// before three digits if the marks have points, and no commas with another meaning.
std::string remedy_for(const NumberMarks& marks, const std::string& path, char delimiter);

// Returns the command that writes a copy of the table in which the points between thousands are missing.
std::string command_for_points(const std::string& path);

// Returns the command that writes a copy of a table without these lines; "" if there are too many for a command.
std::string command_without_lines(const std::string& path, const std::vector<std::int64_t>& lines);

// Returns the command that writes a copy of a table without the lines from `first` to `last`.
std::string command_without_lines(const std::string& path, std::int64_t first, std::int64_t last);

}  // namespace trainctl
