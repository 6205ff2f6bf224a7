// Recognizes the marks of numbers, and writes commands that remove them.
#include "io/datasets/tables/number_marks.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "io/datasets/tables/csv_column.h"

namespace trainctl {
namespace {

constexpr std::string_view currencies[] = {"$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "CHF", "JPY"};
// A space, a no-break space, a narrow no-break space and two apostrophes.
constexpr std::string_view separators[] = {" ", "\xC2\xA0", "\xE2\x80\xAF", "'", "\xE2\x80\x99"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool take(std::string_view& text, std::string_view mark, bool at_end) {
  if (at_end ? !text.ends_with(mark) : !text.starts_with(mark)) return false;
  at_end ? text.remove_suffix(mark.size()) : text.remove_prefix(mark.size());
  return true;
}

// Removes blanks of all kinds, signs, currencies and percent signs at both ends.
void take_ends(std::string_view& text, NumberMarks& marks) {
  for (bool found = true; found;) {
    found = false;
    for (const bool at_end : {false, true}) {
      for (std::size_t i = 0; i < 3; ++i) found = take(text, separators[i], at_end) || found;
      for (const std::string_view currency : currencies) {
        if (!take(text, currency, at_end)) continue;
        marks.currency = found = true;
      }
    }
    if (take(text, "%", true)) marks.percent = found = true;
  }
}

// The lengths of the groups of digits in a text, and what separates them; empty if it is anything else.
struct Groups {
  std::vector<std::size_t> lengths;
  std::vector<std::string_view> between;
};

Groups groups_of(std::string_view text) {
  Groups groups;
  for (;;) {
    const std::size_t begin = text.size();
    while (!text.empty() && is_digit(text[0])) text.remove_prefix(1);
    groups.lengths.push_back(begin - text.size());
    if (text.empty()) return groups;
    std::string_view mark;
    if (text[0] == ',' || text[0] == '.') mark = text.substr(0, 1);
    for (const std::string_view separator : separators) {
      if (text.starts_with(separator)) mark = separator;
    }
    if (mark.empty()) return {};
    text.remove_prefix(mark.size());
    groups.between.push_back(mark);
  }
}

// Whether groups of digits are an IP address: four numbers up to 255 without leading zeros, joined by points.
bool is_address(std::string_view text) {
  for (int group = 0; group < 4; ++group) {
    const std::string_view digits = text.substr(0, text.find('.'));
    int number = 256;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.size() > 3 || number > 255 || (digits.size() > 1 && digits[0] == '0')) return false;
    if (digits.size() == text.size()) return group == 3;
    text.remove_prefix(digits.size() + 1);
  }
  return false;
}

std::string script_for(const NumberMarks& marks, bool decimal, char delimiter) {
  std::vector<std::string> steps;
  if (marks.currency)
    steps.push_back(
        "s/ ?(\\$|€|£|¥|₹) ?//g;s/([0-9]) ?(USD|EUR|GBP|CHF|JPY)/\\1/g;"
        "s/(USD|EUR|GBP|CHF|JPY) ?([0-9])/\\2/g");
  if (marks.percent) steps.push_back("s/([0-9]) ?%/\\1/g");
  if (marks.spaces)
    steps.push_back(":a;s/([0-9])( |\xC2\xA0|\xE2\x80\xAF|'|\xE2\x80\x99)([0-9]{3})([^0-9]|$)/\\1\\3\\4/;ta");
  if (marks.points) steps.push_back(":b;s/([0-9])\\.([0-9]{3})([^0-9]|$)/\\1\\2\\3/;tb");
  if (marks.commas) {
    const std::string between = decimal ? "." : "";
    const std::string digits = decimal ? "([0-9]+" : "([0-9]{3}";
    // In a table with commas between its fields, a number with a comma is in quotation marks.
    steps.push_back(delimiter == ','
                        ? format(":c;s/(\"[^\",A-Za-z]*[0-9]),{}[^\"A-Za-z]*\")/\\1{}\\2/;tc", digits, between)
                    : decimal ? "s/([0-9]),([0-9])/\\1.\\2/g"
                              : ":c;s/([0-9]),([0-9]{3})([^0-9]|$)/\\1\\2\\3/;tc");
  }
  std::string script;
  for (const std::string& step : steps) script += (script.empty() ? "" : ";") + step;
  return script;
}

std::string command_for(const std::string& script, const std::string& path) {
  return format("sed -E {} {} > {}", shell_word(script), shell_word(path), shell_word(name_of_copy(path, "numbers")));
}

std::string deleting_command(const std::string& script, const std::string& path) {
  return format("sed {} {} > {}", shell_word(script), shell_word(path), shell_word(name_of_copy(path, "complete")));
}

}  // namespace

void NumberMarks::add(const NumberMarks& other) {
  currency = currency || other.currency;
  percent = percent || other.percent;
  spaces = spaces || other.spaces;
  points = points || other.points;
  commas = commas || other.commas;
  decimal_comma = decimal_comma || other.decimal_comma;
  thousands = thousands || other.thousands;
}

bool NumberMarks::commas_agree(const NumberMarks& other) const {
  if (!commas || !other.commas) return true;
  return decimal_comma == other.decimal_comma && thousands == other.thousands;
}

std::optional<NumberMarks> number_marks(std::string_view text) {
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  NumberMarks marks;
  take_ends(text, marks);
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  take_ends(text, marks);
  if (text.empty()) return std::nullopt;
  const bool has_marks = marks.currency || marks.percent;
  if (number_in(text) && is_digit(text.back())) return has_marks ? std::optional(marks) : std::nullopt;
  Groups groups = groups_of(text);
  if (groups.lengths.size() < 2 || groups.lengths[0] == 0 || groups.lengths.back() == 0) return std::nullopt;
  if (!has_marks && is_address(text)) return std::nullopt;
  const auto count = [&](std::string_view mark) {
    return std::count(groups.between.begin(), groups.between.end(), mark);
  };
  const auto commas = count(","), points = count(".");
  // The last mark begins the decimal places if it is the only one of its kind; all others separate three digits.
  const std::string_view last = groups.between.back();
  const std::size_t whole = groups.lengths.size() - 1;
  const bool three = groups.lengths.back() == 3 && groups.lengths[0] <= 3;
  const bool single = last == "," ? commas == 1 : last == "." && points == 1;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (groups.lengths[i] != 3 || groups.between[i - 1] != groups.between[0])) return std::nullopt;
  }
  if (whole > 1 && groups.lengths[0] > 3) return std::nullopt;
  if (!single && (!three || last != groups.between[0])) return std::nullopt;
  const bool separates = !single || whole > 1;  // whether the first mark separates thousands
  if (separates && text.starts_with('0')) return std::nullopt;
  if (separates) {
    marks.spaces = groups.between[0] != "," && groups.between[0] != ".";
    marks.points = groups.between[0] == ".";
    marks.thousands = groups.between[0] == ",";
  }
  if (single && last == ",") {
    marks.commas = true;
    marks.decimal_comma = whole > 1 || !three || text.starts_with('0');
  }
  marks.commas = marks.commas || marks.thousands;
  return marks;
}

bool is_digits_and_spaces(std::string_view text) {
  // The bytes of the first three separators.
  return text.find_first_not_of("0123456789 \xC2\xA0\xE2\x80\xAF") == std::string_view::npos;
}

std::string shortest_spelling(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string_view whole = text.substr(0, point), places = point < text.size() ? text.substr(point + 1) : "";
  const auto digits = [](std::string_view part) { return std::all_of(part.begin(), part.end(), is_digit); };
  if ((whole.empty() && places.empty()) || !digits(whole) || !digits(places)) return "";
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  places = places.substr(0, places.find_last_not_of('0') + 1);
  std::string shortest(whole.empty() ? "0" : whole);
  if (!places.empty()) shortest += format(".{}", places);
  return negative && shortest != "0" ? "-" + shortest : shortest;
}

std::string whole_spelling(std::string_view text) {
  const std::string_view digits = text.substr(std::min(text.find_first_not_of("+-"), text.size()));
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0' && digits[1] != '.')) return "";
  const std::string shortest = shortest_spelling(text);
  return shortest.find('.') == std::string::npos ? shortest : "";
}

std::string text_of(const NumberMarks& marks) {
  std::vector<std::string> names;
  if (marks.currency) names.emplace_back("a currency sign");
  if (marks.percent) names.emplace_back("a percent sign");
  if (marks.spaces) names.emplace_back("spaces or apostrophes between thousands");
  if (marks.points) names.emplace_back("points between thousands");
  if (marks.commas) {
    names.emplace_back(marks.decimal_comma == marks.thousands ? "a comma"
                       : marks.thousands                      ? "commas between thousands"
                                                              : "a decimal comma");
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  }
  return text;
}

bool has_removable_point(std::string_view text) {
  for (std::size_t point = text.find('.'); point != std::string_view::npos; point = text.find('.', point + 1)) {
    const std::string_view after = text.substr(point + 1);
    const std::size_t digits = std::min(after.find_first_not_of("0123456789"), after.size());
    if (point > 0 && is_digit(text[point - 1]) && digits == 3) return true;
  }
  return false;
}

std::string remedy_for(const NumberMarks& marks, const std::string& path, char delimiter) {
  const auto command = [&](bool decimal) { return command_for(script_for(marks, decimal, delimiter), path); };
  if (!marks.commas || marks.decimal_comma != marks.thousands) {
    return "write the numbers with a decimal point and without other marks: " + command(marks.decimal_comma);
  }
  return format(
      "if the commas separate thousands, remove them: {}; if they are decimal commas, replace them by points: {}",
      command(false), command(true));
}

std::string command_for_points(const std::string& path) {
  NumberMarks marks;
  marks.points = true;
  return command_for(script_for(marks, false, ','), path);
}

std::string command_without_lines(const std::string& path, const std::vector<std::int64_t>& lines) {
  constexpr std::size_t most = 20;
  if (lines.empty() || lines.size() > most) return "";
  std::string script;
  for (const std::int64_t line : lines) script += format("{}{}d", script.empty() ? "" : ";", line);
  return deleting_command(script, path);
}

std::string command_without_lines(const std::string& path, std::int64_t first, std::int64_t last) {
  return deleting_command(first == last ? format("{}d", first) : format("{},{}d", first, last), path);
}

}  // namespace trainctl
