// Writes configs for tables: chooses the target and the columns of samples.
#include <algorithm>
#include <set>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/spec/suggestion.h"
#include "io/datasets/dataset.h"
#include "run/draft/draft.h"
#include "run/draft/table_look.h"
#include "run/draft/texts.h"

namespace trainctl {
namespace {

bool is_class_by_values(const TableColumn& column, std::int64_t lines) {
  return column.words > 0 || (column.whole && column.distinct.size() <= 20 && std::ssize(column.distinct) <= lines / 5);
}

// Whether the values of the target are classes rather than measured values.
bool names_classes(const DraftRequest& request, const TableColumn& target, std::int64_t lines) {
  if (request.targets != TargetsAre::found_out) return request.targets == TargetsAre::classes;
  return is_class_by_values(target, lines);
}

// The column that the user names, else one with a usual name, else the last one. If that one holds texts, it is the
// last column of classes.
const TableColumn& target_of(const TableLook& table, const std::string& wanted) {
  for (const TableColumn& column : table.columns) {
    if (!wanted.empty() && column.name == wanted) return column;
  }
  if (!wanted.empty()) {
    std::vector<std::string> names;
    for (const TableColumn& column : table.columns) names.push_back(column.name);
    const std::string near = suggestion(wanted, names);
    throw Error(ErrorKind::config, format("{} has no column '{}'{} its columns are {}", table.path, wanted,
                                          near.empty() ? ";" : near, list_text(names)));
  }
  static const std::set<std::string> usual{"target", "label", "class", "y", "outcome"};
  for (const TableColumn& column : table.columns) {
    if (usual.contains(lower_case(column.name))) return column;
  }
  // Spreadsheets end all lines with commas for empty columns without names.
  const auto is_nothing = [&](const TableColumn& column) {
    return column.missing == table.lines && (column.name.empty() || lower_case(column.name).starts_with("unnamed:"));
  };
  auto last = std::find_if_not(table.columns.rbegin(), table.columns.rend() - 1, is_nothing);
  if (!last->holds_texts(table.lines)) return *last;
  for (auto column = table.columns.rbegin(); column != table.columns.rend(); ++column) {
    const bool usable = column->missing == 0 && why_left_out(*column, table.lines).empty();
    if (usable && !column->holds_texts(table.lines) && is_class_by_values(*column, table.lines)) return *column;
  }
  return *last;
}

// The columns of a sample, and the texts about them for the config and the user.
struct ChosenColumns {
  std::vector<const TableColumn*> used;
  std::string left_out;            // comments on the other columns
  std::vector<std::string> notes;  // on what the user may not expect
  const TableColumn* texts = nullptr;
};

ChosenColumns choose_columns_of(const TableLook& table, const TableColumn& target) {
  ChosenColumns chosen;
  for (const TableColumn& column : table.columns) {
    if (&column == &target) continue;
    const std::string why = why_left_out(column, table.lines);
    const std::string shown = column.name.empty() ? "the column without a name" : in_comment(column.name);
    if (why.empty()) {
      chosen.used.push_back(&column);
    } else {
      chosen.left_out += format("    # not {}, which {}\n", shown, why);
    }
    const bool nearly_numbers = column.numbers > column.words && column.words > 0;
    const bool unexpected =
        why.starts_with("numbers the lines, ") || column.has_marks() || column.has_stray_words() || column.has_codes();
    if (!why.empty() && unexpected) {
      chosen.notes.push_back(format("{} is not read: it {}", shown, why));
    } else if (!why.empty() && nearly_numbers) {
      chosen.notes.push_back(
          format("{} is not read: {} are numbers, but '{}' in line {}{}", shown, counted(column.numbers, "field"),
                 column.first_word.text.substr(0, 40), column.first_word.line,
                 column.words == 1 ? " is not" : format(" and {} are not", counted(column.words - 1, "other field"))));
    }
    if (why.empty() && column.has_codes()) {
      chosen.notes.push_back(format("column '{}' is read as words: '{}' in line {} has a leading zero, like a code",
                                    column.name, column.first_code.text, column.first_code.line));
    }
    if (why.empty() && column.words > 0 && column.numbers > 0) {
      chosen.notes.push_back(format(
          "column '{}' is read as words: {}, but '{}' in line {} and {} are not", column.name,
          counted(column.numbers, "field") + (column.numbers == 1 ? " is a number" : " are numbers"),
          column.first_word.text.substr(0, 40), column.first_word.line, counted(column.words - 1, "other field")));
    }
    if (const std::string number = column.enclosed_number(); !number.empty()) {
      chosen.notes.push_back(
          format("column '{}' holds words such as {}: to use its numbers, write them in decimal digits "
                 "without quotes or parentheses",
                 column.name, number));
    }
    if (why.empty() && column.missing > 0 && column.words == 0) {
      chosen.notes.push_back(format("column '{}' has no number in {} (the first: {}line {}), and its mean replaces {}",
                                    column.name, counted(column.missing, "line"),
                                    column.first_missing.text.empty() ? "" : "'" + column.first_missing.text + "' in ",
                                    column.first_missing.line, column.missing == 1 ? "it" : "them"));
    }
    if (!why.empty() && column.holds_texts(table.lines)) chosen.texts = &column;
  }
  for (const TableColumn& column : table.columns) {
    if (!column.has_doubtful_points()) continue;
    const auto has_points = [](const TableColumn& other) { return other.has_points(); };
    const bool alone = std::count_if(table.columns.begin(), table.columns.end(), has_points) == 1;
    chosen.notes.push_back(format(
        "'{}' in line {}, column '{}', is read with a decimal point; if points separate thousands, remove them{}",
        column.first_point.text, column.first_point.line, column.name,
        alone && column.keeps_values_without_points() ? ": " + command_for_points(table.path) : ""));
  }
  return chosen;
}

std::string header_text(const TableLook& table) {
  const std::string first = in_comment(table.first_fields);
  switch (table.first_line) {
    case FirstLine::names:
      return "";
    case FirstLine::number_names:
      return format("  header: true                    # the first line, {}..., names the columns; false: a sample\n",
                    first);
    case FirstLine::sample:
      return format(
          "  header: false                   # the first line, {}..., is a sample: columns are \"1\", \"2\", ...\n",
          first);
  }
  return "";
}

std::string header_note(const TableLook& table) {
  switch (table.first_line) {
    case FirstLine::names:
      return "";
    case FirstLine::number_names:
      return format("the first line, '{}...', is taken for names of columns; if it is a sample, set `header: false`",
                    table.first_fields);
    case FirstLine::sample:
      return format("the first line, '{}...', is taken for a sample; if it names the columns, set `header: true`",
                    table.first_fields);
  }
  return "";
}

// The `data` section, with comments on the columns that were left out.
std::string data_text(const DraftRequest& request, const TableLook& table, const TableColumn& target,
                      const ChosenColumns& chosen, const std::string& validation) {
  const std::set<std::string> gaps =
      validation.empty() ? std::set<std::string>() : columns_with_gaps(validation, table);
  std::string text = format("data:\n  dataset: csv\n  path: {}\n", path_text(request, table.path));
  const bool is_class = names_classes(request, target, table.lines);
  text += validation.empty() ? format("  validation: {{split: 0.2{}}}\n", is_class ? ", stratify: true" : "")
                             : format("  validation: {{path: {}}}\n", path_text(request, validation));
  if (table.delimiter != ',')
    text += format("  delimiter: \"{}\"\n", table.delimiter == '\t' ? "\\t" : std::string(1, table.delimiter));
  text += header_text(table);
  text += format("  target: {}                # the column to predict\n", scalar_text(target.name));
  std::string columns, categorical;
  bool misses = false;
  for (const TableColumn* column : chosen.used) {
    columns += (columns.empty() ? "" : ", ") + scalar_text(column->name);
    if (column->words > 0) categorical += (categorical.empty() ? "" : ", ") + scalar_text(column->name);
    misses = misses || column->missing > 0 || gaps.contains(column->name);
  }
  // Words among numbers are not listed as categorical: opening the table reports them as errors.
  const bool mixed = target.words > 0 && target.numbers > 0 && request.targets != TargetsAre::classes;
  if (is_class && !mixed) categorical += (categorical.empty() ? "" : ", ") + scalar_text(target.name);
  if (!chosen.left_out.empty()) text += format("  columns: [{}]\n{}", columns, chosen.left_out);
  if (!categorical.empty()) text += format("  categorical: [{}]    # words, each one a separate value\n", categorical);
  if (misses) text += "  missing: mean                   # an empty field gets the mean of its column\n";
  if (target.missing > 0 || gaps.contains(target.name))
    text += "  missing_targets: drop           # leaves out lines without a target\n";
  return text + "  standardize: true               # numbers to mean 0 and deviation 1\n";
}

// The config for a table whose only column of use holds texts.
std::vector<Draft> draft_for_texts(const DraftRequest& request, const TableLook& table, const TableColumn& target,
                                   const std::string& text_column, const std::string& validation) {
  if (table.delimiter != ',' || !table.has_header()) {
    data_error(
        table.path,
        format("its column '{}' holds texts, which are read from .csv files with commas and names of columns only",
               text_column),
        "write the table with commas between the fields and a first line of names");
  }
  if (!has_ending(table.path, {".csv"})) {
    data_error(table.path, format("its column '{}' holds texts, which are read from .csv files only", text_column),
               "give the file a name that ends in .csv");
  }
  return {draft_text_classifier(request, {table.path, validation, ""}, {text_column, target.name})};
}

// The config for a table of numbers and words, whose `data` section is given.
Draft draft_of(const DraftRequest& request, const TableColumn& target, const std::string& data, bool is_class) {
  const DataInfo info = info_of(request, data, !is_class);
  const std::int64_t classes = info.targets[0].classes;
  if (is_class) require_two_classes(info, request.path);
  const std::string what =
      is_class ? format("{} ({})", counted(classes, "class"), list_text(info.targets[0].class_names)) : "a number";
  Draft draft;
  draft.notes = info.warnings;
  draft.file = request.name + ".yaml";
  draft.summary = format("three dense layers on {} of a line, target '{}': {}",
                         counted(info.inputs[0].sample.count(), "value"), target.name, what);
  const bool yes_or_no = classes == 2;
  const std::string last = !is_class   ? "    - dense: 1\n"
                           : yes_or_no ? "    - dense: {units: 1, activation: sigmoid}\n"
                                       : format("    - dense: {{units: {}, activation: softmax}}\n", classes);
  draft.text =
      head_text(draft.file, format("A table with the target '{}', {}: {}.", target.name, what, samples_text(info))) +
      data +
      "\nmodel:\n  layers:\n    - dense: {units: 64, activation: relu}\n    - dropout: 0.2\n"
      "    - dense: {units: 64, activation: relu}\n" +
      last + "\n" +
      train_text(!is_class   ? "mean_squared_error"
                 : yes_or_no ? "binary_crossentropy"
                             : "sparse_categorical_crossentropy",
                 !is_class   ? "mean_absolute_error"
                 : yes_or_no ? "accuracy, auc"
                             : "accuracy",
                 suitable_batch(info.training_samples), 2 * suitable_epochs(info.training_samples), 1e-3,
                 "  early_stopping: {patience: 10, restore_best: true}\n");
  return draft;
}

}  // namespace

bool holds_table(const std::string& folder) { return !first_in_folder(folder, {"train.csv"}).empty(); }

std::vector<Draft> draft_for_table(const DraftRequest& request) {
  const bool folder = is_folder(request.path);
  TableLook table = look_at_table(folder ? first_in_folder(request.path, {"train.csv"}) : request.path);
  std::vector<std::string> held_out = validation_names();
  for (std::string& name : held_out) name += ".csv";
  const std::string validation = folder ? first_in_folder(request.path, held_out) : "";
  const TableColumn& target = target_of(table, request.target);
  for (TableColumn& column : table.columns) {
    if (&column != &target || request.targets != TargetsAre::values) column.take_codes_for_words();
  }
  const bool is_class = names_classes(request, target, table.lines);
  if (target.has_marks()) refuse_fields(table, target, request.targets == TargetsAre::classes);
  refuse_target(table, target, is_class, request.targets);
  refuse_fields(table, target, request.targets == TargetsAre::classes);
  const ChosenColumns chosen = choose_columns_of(table, target);
  if (chosen.used.empty() && chosen.texts != nullptr && is_class) {
    refuse_missing_target(table, target);
    return draft_for_texts(request, table, target, chosen.texts->name, validation);
  }
  if (chosen.used.empty()) {
    data_error(table.path,
               "has no column that a network could learn from" +
                   (chosen.left_out.empty() ? " besides the target" : ":\n" + chosen.left_out),
               "add columns of numbers or of repeated words, or choose another target with --target");
  }
  Draft draft = draft_of(request, target, data_text(request, table, target, chosen, validation), is_class);
  draft.notes.insert(draft.notes.begin(), chosen.notes.begin(), chosen.notes.end());
  if (is_class && request.targets == TargetsAre::found_out && target.has_codes()) {
    draft.notes.push_back(format(
        "the target '{}' is taken for classes: '{}' in line {} has a leading zero, like a code; if its fields are "
        "numbers, use --targets values",
        target.name, target.first_code.text, target.first_code.line));
  }
  if (const std::string note = header_note(table); !note.empty()) draft.notes.insert(draft.notes.begin(), note);
  if (chosen.texts != nullptr) {
    draft.notes.push_back(
        format("the texts of column '{}' are not read; a config with `dataset: text_classification` "
               "reads them",
               chosen.texts->name));
  }
  return {draft};
}

}  // namespace trainctl
