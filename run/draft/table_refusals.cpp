// Refuses tables with fields that cannot be read as they are meant, and tells how to correct them.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "run/draft/draft.h"
#include "run/draft/table_look.h"

namespace trainctl {
namespace {

std::string place_of(const SeenField& field, const TableColumn& column) {
  return format("line {}, column '{}'", field.line, column.name);
}

// Whether the words of a column are numbers with marks, rather than names.
bool has_marks(const TableColumn& column) {
  return column.marked > 0 && (column.marked == column.words || column.has_stray_words());
}

// Refuses all columns of numbers with marks together, since one command removes the marks of all columns.
void refuse_marks(const TableLook& table, const TableColumn* left_out) {
  const TableColumn* first = nullptr;
  std::vector<std::string> others;
  NumberMarks marks;
  for (const TableColumn& column : table.columns) {
    if (&column == left_out || !has_marks(column)) continue;
    marks.add(column.marks);
    if (first != nullptr) others.push_back("'" + column.name + "'");
    if (first == nullptr) first = &column;
  }
  if (first == nullptr) return;
  const std::string also = others.empty()
                               ? ""
                               : format("; {} {} has such numbers, too",
                                        others.size() == 1 ? "column" : "each of the columns", list_text(others));
  data_error(table.path,
             format("{}: '{}' is not a number: numbers of this column have {}{}", place_of(first->first_marked, *first),
                    first->first_marked.text.substr(0, 40), text_of(first->marks), also),
             remedy_for(marks, table.path, table.delimiter));
}

[[noreturn]] void refuse_stray_word(const TableLook& table, const TableColumn& column) {
  const std::int64_t others = column.words - 1;
  data_error(table.path,
             format("{}: '{}' is not a number, but {} of the column are{}", place_of(column.first_word, column),
                    column.first_word.text.substr(0, 40), counted(column.numbers, "field"),
                    others == 0
                        ? ""
                        : format(" ({} not, either)", counted(others, "other field") + (others == 1 ? " is" : " are"))),
             "correct the field; if its value is missing, leave it empty, and init fills it by `missing: mean`");
}

}  // namespace

void refuse_fields(const TableLook& table, const TableColumn& target, bool target_is_class) {
  refuse_marks(table, target_is_class ? &target : nullptr);
  with_all_errors(table.columns, [&](const TableColumn& column) {
    if (&column != &target && column.has_stray_words()) refuse_stray_word(table, column);
  });
}

void refuse_target(const TableLook& table, const TableColumn& target, bool is_class) {
  const std::string other = "choose another target with --target COLUMN";
  if (target.missing > 0) {
    const std::string command = table.has_line_ends ? "" : command_without_lines(table.path, target.missing_lines);
    data_error(table.path,
               format("its column '{}' is empty in {} (the first: {}line {}), and cannot be the target", target.name,
                      counted(target.missing, "line"),
                      target.first_missing.text.empty() ? "" : "'" + target.first_missing.text + "' in ",
                      target.first_missing.line),
               format("`missing` does not fill targets: leave these lines out{}, or {}",
                      command.empty() ? "" : " (" + command + ")", other));
  }
  const std::string why = why_left_out(target, table.lines);
  const bool same = target.distinct.size() == 1;
  if (target.dates > 0 || same || (target.words > 0 && target.numbers == 0 && !why.empty())) {
    data_error(table.path, format("its column '{}' {}, and cannot be the target", target.name, why), other);
  }
  if (!is_class) refuse_large_targets(table.path, format("its column '{}'", target.name), target.largest);
}

}  // namespace trainctl
