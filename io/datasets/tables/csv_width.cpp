// Finds why the lines of a table differ in length.
#include "io/datasets/tables/csv_width.h"

#include <algorithm>
#include <string>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/number_marks.h"

namespace trainctl {
namespace {

// What the lines after the first one have in common, according to the first of these lines.
struct CommonForm {
  bool same_width = true;     // all have the same number of fields
  bool last_is_empty = true;  // the last field of each is empty
};

CommonForm common_form(CsvLines& lines, std::size_t width) {
  constexpr int most = 20;
  CommonForm form;
  std::vector<std::string_view> fields;
  for (int i = 0; i < most && lines.next(fields); ++i) {
    form.same_width = form.same_width && fields.size() == width;
    form.last_is_empty = form.last_is_empty && trimmed(fields.back()).empty();
  }
  return form;
}

// Whether a first line is `sep=;`, with any delimiter. If it separates the fields, a second, empty field follows.
bool is_meant_for_excel(const std::vector<std::string_view>& fields) {
  const std::string_view first = trimmed(fields[0]);
  return first.starts_with("sep=") && first.size() <= 5 &&
         std::all_of(fields.begin() + 1, fields.end(), [](std::string_view field) { return trimmed(field).empty(); });
}

bool is_comment(std::string_view text) { return text.starts_with('#') || text.starts_with('%'); }

std::string without_matching(const std::string& script, const std::string& path) {
  return format("sed {} {} > {}", shell_word(script), shell_word(path), shell_word(name_of_copy(path, "complete")));
}

std::string remedy_for_comment(const std::string& comment, const std::string& path) {
  return format("its first line, '{}', seems to be a comment: leave out such lines ({})", comment.substr(0, 40),
                without_matching(comment[0] == '#' ? "/^#/d" : "/^%/d", path));
}

std::string remedy_for_width(const LineLocation& line, const std::vector<std::string_view>& fields,
                             std::size_t expected) {
  const std::string& path = *line.path;
  CsvLines lines(path, line.delimiter);
  std::vector<std::string_view> first;
  lines.next(first);
  const std::string begin = first.empty() ? "" : std::string(trimmed(first[0]));
  if (!first.empty() && is_meant_for_excel(first)) {
    return format(
        "its first line is meant for Excel: leave it out ({}), and set `delimiter` to the character after "
        "`sep=`",
        command_without_lines(path, lines.place().line, lines.place().last));
  }
  if (is_comment(begin)) return remedy_for_comment(begin, path);
  if (std::any_of(fields.begin(), fields.end(), [](std::string_view field) { return field.starts_with('\''); })) {
    return "quote fields that hold the delimiter with double quotation marks (\"): single ones are part of the text";
  }
  const CommonForm form = common_form(lines, fields.size());
  if (fields.size() == expected + 1 && form.same_width && form.last_is_empty) {
    return format("the first line does not end in the delimiter, but all others do: remove it there ({})",
                  without_matching(format("s/{}$//", line.delimiter), path));
  }
  if (fields.size() == expected + 1 && form.same_width) {
    return "the first line has one name less than the lines have fields: write a name for each column; R's write.table "
           "leaves out the name of the column of row names, unless col.names=NA is set, and row.names=FALSE leaves out "
           "the column";
  }
  return "quote fields that hold the delimiter, set another `delimiter`, or write all fields of each line";
}

}  // namespace

void refuse_width(const LineLocation& line, const std::vector<std::string_view>& fields, std::size_t expected) {
  data_error(*line.path, format("line {} has {}, not {}", line.line, counted(fields.size(), "field"), expected),
             remedy_for_width(line, fields, expected));
}

bool may_be_preamble(const std::vector<std::string_view>& fields) {
  const std::string_view first = trimmed(fields[0]);
  return is_meant_for_excel(fields) || (fields.size() == 1 && is_comment(first));
}

void refuse_preamble(const std::string& path, char delimiter) {
  constexpr int most = 20;
  CsvLines lines(path, delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) return;
  const std::string first(trimmed(fields[0]));
  const std::size_t width = fields.size();
  if (is_meant_for_excel(fields)) {
    data_error(path, "its first line does not name columns", remedy_for_width(lines.place(), fields, width));
  }
  for (int i = 0; i < most && lines.next(fields); ++i) {
    if (fields.size() != width) refuse_width(lines.place(), fields, width);
    const std::size_t other =
        is_comment(trimmed(fields[0])) ? std::string_view::npos : fields[0].find_first_of(";\t|,");
    if (other == std::string_view::npos) continue;
    const char found = fields[0][other];
    data_error(path,
               format("line {} is one field, but holds the delimiter '{}'", lines.place().line,
                      found == '\t' ? "\\t" : std::string(1, found)),
               remedy_for_comment(first, path) + ", and set `delimiter` to the character between the fields");
  }
}

}  // namespace trainctl
