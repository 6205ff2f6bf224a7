// Refuses tables with fields that cannot be read as they are meant, and tells how to correct them.
#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "run/draft/draft.h"
#include "run/draft/table_look.h"

namespace trainctl {
namespace {

constexpr const char* other_target = "choose another target with --target COLUMN";

std::string place_of(const SeenField& field, const TableColumn& column) {
  return format("line {}, column '{}'", field.line, column.name);
}

// Whether a command that removes these marks from the whole table changes the marked columns only: commas mean the same
// in all of them, and points that separate thousands are not decimal points elsewhere.
bool may_use_command(const TableLook& table, const std::vector<const TableColumn*>& marked) {
  bool points = false;
  for (const TableColumn* column : marked) {
    points = points || column->marks.points;
    for (const TableColumn* other : marked) {
      if (!column->marks.commas_agree(other->marks)) return false;
    }
  }
  return !points || std::all_of(table.columns.begin(), table.columns.end(), [](const TableColumn& column) {
    return column.marks.points ? column.keeps_values_without_points() : !column.has_points();
  });
}

// Refuses the columns of numbers with marks: together if one command removes the marks of all of them.
void refuse_marks(const TableLook& table, const TableColumn& target, bool target_is_class) {
  std::vector<const TableColumn*> marked;
  for (const TableColumn& column : table.columns) {
    const bool accepted = &column == &target ? target_is_class : is_left_out_with_words(column, table.lines);
    if (!accepted && column.has_marks()) marked.push_back(&column);
  }
  if (marked.empty()) return;
  const auto refuse = [&](const TableColumn& column, const std::string& also, const std::string& remedy) {
    data_error(
        table.path,
        format("{}: '{}' is not a number: numbers of this column have {}{}", place_of(column.first_marked, column),
               column.first_marked.text.substr(0, 40), text_of(column.marks), also),
        remedy);
  };
  if (!may_use_command(table, marked)) {
    with_all_errors(marked, [&](const TableColumn* column) { refuse(*column, "", remedy_without_command); });
  }
  NumberMarks marks;
  std::vector<std::string> others;
  for (const TableColumn* column : marked) {
    marks.add(column->marks);
    if (column != marked[0]) others.push_back("'" + column->name + "'");
  }
  const std::string also = others.empty()
                               ? ""
                               : format("; {} {} has such numbers, too",
                                        others.size() == 1 ? "column" : "each of the columns", list_text(others));
  refuse(*marked[0], also, remedy_for(marks, table.path, table.delimiter));
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
  refuse_marks(table, target, target_is_class);
  with_all_errors(table.columns, [&](const TableColumn& column) {
    const bool accepted = &column == &target || is_left_out_with_words(column, table.lines);
    if (!accepted && column.has_stray_words()) refuse_stray_word(table, column);
  });
}

void refuse_missing_target(const TableLook& table, const TableColumn& target) {
  if (target.missing == 0) return;
  const std::string command = table.has_line_ends ? "" : command_without_lines(table.path, target.missing_lines);
  data_error(table.path,
             format("its column '{}' is empty in {} (the first: {}line {}), and cannot be the target of texts",
                    target.name, counted(target.missing, "line"),
                    target.first_missing.text.empty() ? "" : "'" + target.first_missing.text + "' in ",
                    target.first_missing.line),
             format("leave these lines out{}, or {}", command.empty() ? "" : " (" + command + ")", other_target));
}

void refuse_target(const TableLook& table, const TableColumn& target, bool is_class, TargetsAre targets) {
  const std::string why = why_left_out(target, table.lines);
  const bool same = target.distinct.size() == 1;
  const bool empty = target.missing == table.lines;
  // Words that the user calls classes may be many, unless they all differ.
  const bool differ = std::ssize(target.distinct) == target.words + target.numbers;
  const bool many = targets != TargetsAre::classes || differ;
  if (empty || target.dates > 0 || same || (target.words > 0 && target.numbers == 0 && !why.empty() && many)) {
    const std::string values =
        "if its fields are numbers, predict them with --targets values; if they are classes, "
        "use --targets classes; otherwise ";
    const bool may_be_numbers = target.has_codes() && targets == TargetsAre::found_out && !same;
    data_error(table.path,
               format("its column '{}' {}, and cannot be the target", target.name,
                      why.empty() ? "has the same value in all lines that have one" : why),
               (may_be_numbers ? values : "") + other_target);
  }
  if (!is_class) refuse_large_targets(table.path, format("its column '{}'", target.name), target.largest);
}

}  // namespace trainctl
