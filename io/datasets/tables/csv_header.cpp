// Distinguishes a line of names from a line of values.
#include "io/datasets/tables/csv_header.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/format.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_width.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

// Whether numbers may be names of columns: 0, 1, 2, ..., which are pandas' default names, or years. The first field may
// be empty: pandas writes no name above its index.
bool may_be_names(std::vector<std::string> fields) {
  if (!fields.empty() && fields[0].empty()) fields.erase(fields.begin());
  if (fields.empty()) return false;
  bool counts = fields.size() >= 3, years = true;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    counts = counts && fields[i] == std::to_string(i);
    years = years && fields[i].size() == 4 && (fields[i].starts_with("19") || fields[i].starts_with("20")) &&
            (i == 0 || fields[i] > fields[i - 1]);
  }
  return counts || years;
}

// Whether the numbers among the fields are whole and ascend from field to field, as years do.
bool numbers_ascend(const std::vector<std::string>& fields) {
  std::optional<float> last;
  for (const std::string& field : fields) {
    const std::optional<float> number = number_in(field);
    if (!number) continue;
    if (*number != std::floor(*number) || (last && *number <= *last)) return false;
    last = number;
  }
  return true;
}

// Whether a word of the first line is a name: it is above a column of numbers, or above repeated words of which none is
// this one.
bool has_name(const std::string& path, char delimiter, const std::vector<std::string>& first) {
  constexpr int max_lines = 1000;
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  lines.next(fields);
  std::vector<int> numbers(first.size(), 0), words(first.size(), 0);
  std::vector<std::set<std::string, std::less<>>> distinct(first.size());
  for (int read = 0; read < max_lines && lines.next(fields); ++read) {
    for (std::size_t i = 0; i < std::min(first.size(), fields.size()); ++i) {
      const std::string_view text = trimmed(fields[i]);
      if (text.empty() || is_mark(text)) continue;
      ++(number_in(text) ? numbers : words)[i];
      if (!number_in(text)) distinct[i].emplace(text);
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].empty() || is_mark(first[i]) || number_in(first[i])) continue;
    const bool above_numbers = numbers[i] > 0 && words[i] == 0;
    const bool above_words = words[i] > 0 && 2 * std::ssize(distinct[i]) <= words[i] && !distinct[i].contains(first[i]);
    if (above_numbers || above_words) return true;
  }
  return false;
}

// Returns a delimiter other than `delimiter` that a text holds, in the notation of configs; "" if there is none.
std::string other_delimiter(std::string_view text, char delimiter) {
  for (const char candidate : std::string_view(";\t|,")) {
    if (candidate == delimiter || text.find(candidate) == std::string_view::npos) continue;
    return candidate == '\t' ? "\\t" : std::string(1, candidate);
  }
  return "";
}

}  // namespace

FirstLine first_line_of(const std::string& path, char delimiter) {
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return FirstLine::names;
  std::vector<std::string> first;
  for (const std::string_view field : fields) first.emplace_back(trimmed(field));
  const auto is_number = [](const std::string& field) { return number_in(field) || has_decimal_comma(field); };
  if (std::none_of(first.begin(), first.end(), is_number)) {
    return first_line_is_sample(path, delimiter) ? FirstLine::sample : FirstLine::names;
  }
  const bool names = may_be_names(first) || (numbers_ascend(first) && has_name(path, delimiter, first));
  return names ? FirstLine::number_names : FirstLine::sample;
}

std::vector<std::string> names_in(const std::vector<std::string_view>& fields, bool header) {
  std::vector<std::string> names;
  bool has_empty = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::string name = header ? std::string(trimmed(fields[i])) : std::to_string(i + 1);
    if (name.empty() && has_empty) name = format("Unnamed: {}", i);
    has_empty = has_empty || name.empty();
    names.push_back(std::move(name));
  }
  return names;
}

bool first_line_is_sample(const std::string& path, char delimiter) {
  constexpr int max_lines = 1000;
  const auto is_number = [](std::string_view text) { return number_in(text) || exceeds_float32(text); };
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return false;
  std::vector<std::string> first;
  for (const std::string_view field : fields) first.emplace_back(trimmed(field));
  std::vector<bool> alike(first.size(), false);
  int read = 0;
  for (; read < max_lines && lines.next(fields); ++read) {
    if (fields.size() != first.size()) return false;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::string_view text = trimmed(fields[i]);
      const bool missing = text.empty() || is_mark(text);
      if (!missing && is_number(first[i]) != is_number(text)) return false;
      alike[i] = alike[i] || (is_number(first[i]) ? is_number(text) : text == first[i]);
    }
  }
  return read > 0 && std::find(alike.begin(), alike.end(), false) == alike.end() && !may_be_names(first);
}

std::vector<std::string> column_names(const std::string& path, const CsvFormat& csv) {
  const char delimiter = csv.delimiter[0];
  CsvLines first_line(path, delimiter);
  std::vector<std::string_view> fields;
  if (!first_line.next(fields)) data_error(path, "holds no lines");
  if (may_be_preamble(fields)) refuse_preamble(path, delimiter);
  if (fields.size() == 1) {
    if (const std::string other = other_delimiter(fields[0], delimiter); !other.empty()) {
      data_error(path,
                 format("its first line is one field with the delimiter '{}', but holds '{}'", csv.delimiter, other),
                 format("set `delimiter: \"{}\"`", other));
    }
  }
  std::vector<std::string> names = names_in(fields, csv.header.or_else(true));
  if (csv.header.is_auto() && first_line_is_sample(path, delimiter)) {
    const std::string shown = names[0] + (names.size() > 1 ? format("{}{}", delimiter, names[1]) : "");
    data_error(path,
               format("its first line, '{}{}...', looks like a sample, not like names of columns", shown, delimiter),
               "set `header: false`, which names the columns \"1\", \"2\", and so on; or `header: true` if the line "
               "names the columns");
  }
  std::set<std::string> known;
  for (const std::string& name : names) {
    require_utf8_text(path, "the name of a column", name);
    if (!known.insert(name).second)
      data_error(path, format("has two columns '{}'", name), "give each column its own name");
  }
  return names;
}

}  // namespace trainctl
