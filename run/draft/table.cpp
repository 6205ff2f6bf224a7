// Writes configs for tables: finds which columns are numbers, words or neither, and which column is the target.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/csv_header.h"
#include "io/datasets/tables/csv_lines.h"
#include "run/draft/draft.h"

namespace trainctl {
namespace {

// The kinds and values of the fields of a column.
struct Column {
  std::string name;
  std::int64_t numbers = 0, words = 0, dates = 0, missing = 0;
  std::int64_t commas = 0;                      // number of words that are numbers with a decimal comma
  std::int64_t thousands = 0;                   // number of these words whose comma may separate thousands
  std::string comma;                            // the first of these words
  bool whole = true;                            // all numbers are whole
  std::set<std::string, std::less<>> distinct;  // the first max_distinct values

  bool is_full() const { return distinct.size() >= max_distinct; }
  static constexpr std::size_t max_distinct = 1000;
};

struct TableLook {
  std::string path;
  char delimiter = ',';
  bool header = true;
  std::int64_t lines = 0;
  std::vector<Column> columns;
};

// Whether the comma of a number stands before its last three digits and after at most three others, as in "1,040".
bool may_separate_thousands(std::string_view text) {
  const std::size_t comma = text.find(',');
  return text.size() - comma == 4 && text.find_last_of("+-") + 1 + 3 >= comma;
}

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

// The delimiter: the candidate that the first line contains most often.
char delimiter_of(const std::string& path) {
  constexpr std::int64_t max_bytes = 1 << 16;
  const InputFile file(path);
  std::string begin(static_cast<std::size_t>(std::min(file.size(), max_bytes)), '\0');
  file.read(0, begin.data(), std::ssize(begin));
  const std::string line = begin.substr(0, begin.find('\n'));
  if (has_semicolons(line)) return ';';
  const std::string candidates = ",;\t|";
  return *std::max_element(candidates.begin(), candidates.end(), [&](char a, char b) {
    return std::count(line.begin(), line.end(), a) < std::count(line.begin(), line.end(), b);
  });
}

void look_at(std::string_view field, Column& column) {
  const std::string_view text = trimmed(field);
  if (text.empty() || is_mark(text)) {
    ++column.missing;
    return;
  }
  if (const std::optional<float> number = number_in(text)) {
    ++column.numbers;
    column.whole = column.whole && *number == std::floor(*number);
  } else if (is_date(text)) {
    ++column.dates;
  } else {
    ++column.words;
    if (has_decimal_comma(text)) {
      if (column.commas++ == 0) column.comma = text;
      if (may_separate_thousands(text)) ++column.thousands;
    }
  }
  if (!column.is_full()) column.distinct.emplace(text);
}

// Returns the command that writes the table anew with `between` instead of the comma in its numbers.
std::string command_for_commas(const TableLook& table, std::string_view between) {
  const std::string_view quote = table.delimiter == ',' ? "\"" : "";
  return format("sed -E 's/{0}([0-9]+),([0-9]+){0}/\\1{1}\\2/g' {2} > points.csv", quote, between, table.path);
}

// Throws Error{data} if columns of numbers have decimal commas, which would be read as words, and tells how to replace
// them by points. If all commas of a column may separate thousands, only the user knows what they mean.
void refuse_decimal_commas(const TableLook& table) {
  std::vector<std::string> names;
  std::string example;
  bool may_be_thousands = false;
  for (const Column& column : table.columns) {
    if (column.commas == 0 || column.commas < column.words) continue;
    if (names.empty()) example = column.comma;
    names.push_back("'" + column.name + "'");
    may_be_thousands = may_be_thousands || column.thousands == column.commas;
  }
  if (names.empty()) return;
  const std::string columns = format("{} {} ({})", names.size() == 1 ? "column" : "columns", list_text(names), example);
  const std::string points = command_for_commas(table, ".");
  if (!may_be_thousands) {
    data_error(
        table.path,
        format("numbers have decimal commas in {}, and trainctl reads numbers with decimal points only", columns),
        "write them with decimal points and without thousands separators: " + points);
  }
  data_error(table.path,
             format("numbers have commas in {}, and trainctl reads numbers with decimal points and without commas only",
                    columns),
             format("if the commas separate thousands, remove them: {}; if they are decimal commas, replace them by "
                    "points: {}",
                    command_for_commas(table, ""), points));
}

TableLook look_at_table(const std::string& path) {
  TableLook table{path, delimiter_of(path), true, 0, {}};
  CsvLines lines(table.path, table.delimiter);
  std::vector<std::string_view> fields;
  if (!lines.next(fields)) data_error(path, "is empty");
  const auto is_number = [](std::string_view field) { return number_in(field) || has_decimal_comma(field); };
  table.header = std::none_of(fields.begin(), fields.end(), is_number) && !first_line_is_sample(path, table.delimiter);
  for (std::size_t k = 0; k < fields.size(); ++k) {
    Column& column = table.columns.emplace_back();
    column.name = table.header ? std::string(trimmed(fields[k])) : std::to_string(k + 1);
  }
  for (bool more = !table.header || lines.next(fields); more; more = lines.next(fields)) {
    if (fields.size() != table.columns.size()) {
      data_error(format("{}:{}", path, lines.place().line),
                 format("has {}, the first line has {}", counted(fields.size(), "field"), table.columns.size()));
    }
    for (std::size_t k = 0; k < fields.size(); ++k) look_at(fields[k], table.columns[k]);
    ++table.lines;
  }
  refuse_decimal_commas(table);
  if (table.lines < 2) data_error(path, format("has {} of values", counted(table.lines, "line")));
  return table;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The column that the user names, else one with a usual name, else the last one.
const Column& target_of(const TableLook& table, const std::string& wanted) {
  for (const Column& column : table.columns) {
    if (!wanted.empty() && column.name == wanted) return column;
  }
  if (!wanted.empty()) {
    std::vector<std::string> names;
    for (const Column& column : table.columns) names.push_back(column.name);
    throw Error(ErrorKind::config,
                format("{} has no column '{}'; its columns are {}", table.path, wanted, list_text(names)));
  }
  static const std::set<std::string> usual{"target", "label", "class", "y", "outcome"};
  for (const Column& column : table.columns) {
    if (usual.contains(lower(column.name))) return column;
  }
  return table.columns.back();
}

// Why a column has no information that a network could learn from; "" if it has.
std::string why_left_out(const Column& column, std::int64_t lines) {
  const std::size_t distinct = column.distinct.size();
  if (column.dates > 0) return "holds dates";
  if (column.missing == lines) return "is empty";
  if (distinct == 1 && column.missing == 0) return "is the same in all lines";
  if (column.words > 0 && (column.is_full() || distinct > 100)) return "holds more than 100 different words";
  if (column.words > 0 && std::ssize(column.distinct) == column.words + column.numbers) return "differs in every line";
  const std::string name = lower(column.name);
  if (name == "id" || name.ends_with("_id") || name == "index") return "numbers the lines";
  return "";
}

// Whether the values of the target are classes rather than measured values.
bool names_classes(const DraftRequest& request, const Column& target, std::int64_t lines) {
  if (request.targets != TargetsAre::found_out) return request.targets == TargetsAre::classes;
  return target.words > 0 || (target.whole && target.distinct.size() <= 20 && std::ssize(target.distinct) <= lines / 5);
}

// The `data` section, with comments on the columns that were left out.
std::string data_text(const DraftRequest& request, const TableLook& table, const Column& target,
                      const std::string& validation) {
  std::string text = format("data:\n  dataset: csv\n  path: {}\n", path_text(request, table.path));
  text += validation.empty() ? format("  validation: {{split: 0.2{}}}\n",
                                      names_classes(request, target, table.lines) ? ", stratify: true" : "")
                             : format("  validation: {{path: {}}}\n", path_text(request, validation));
  if (table.delimiter != ',')
    text += format("  delimiter: \"{}\"\n", table.delimiter == '\t' ? "\\t" : std::string(1, table.delimiter));
  if (!table.header) text += "  header: false                   # the columns are named \"1\", \"2\", ...\n";
  text += format("  target: {}                # the column to predict\n", scalar_text(target.name));
  std::string columns, categorical, comments;
  bool leaves_out = false, misses = false;
  for (const Column& column : table.columns) {
    if (column.name == target.name) continue;
    if (const std::string why = why_left_out(column, table.lines); !why.empty()) {
      comments += format("    # not {}, which {}\n", in_comment(column.name), why);
      leaves_out = true;
      continue;
    }
    columns += (columns.empty() ? "" : ", ") + scalar_text(column.name);
    if (column.words > 0) categorical += (categorical.empty() ? "" : ", ") + scalar_text(column.name);
    misses = misses || column.missing > 0;
  }
  if (columns.empty()) data_error(table.path, "has no column that a network could learn from");
  // Words among numbers are not listed as categorical: opening the table reports them as errors.
  const bool mixed = target.words > 0 && target.numbers > 0 && request.targets != TargetsAre::classes;
  if (names_classes(request, target, table.lines) && !mixed)
    categorical += (categorical.empty() ? "" : ", ") + scalar_text(target.name);
  if (leaves_out) text += format("  columns: [{}]\n{}", columns, comments);
  if (!categorical.empty()) text += format("  categorical: [{}]    # words, each one a separate value\n", categorical);
  if (misses) text += "  missing: mean                   # an empty field gets the mean of its column\n";
  return text + "  standardize: true               # numbers to mean 0 and deviation 1\n";
}

}  // namespace

bool holds_table(const std::string& folder) { return exists(folder + "/train.csv"); }

std::vector<Draft> draft_for_table(const DraftRequest& request) {
  const bool folder = is_folder(request.path);
  const TableLook table = look_at_table(folder ? request.path + "/train.csv" : request.path);
  std::vector<std::string> held_out = validation_names();
  for (std::string& name : held_out) name += ".csv";
  const Column& target = target_of(table, request.target);
  if (target.missing > 0 || target.dates > 0) {
    data_error(table.path,
               format("its column '{}' {}, and cannot be the target", target.name,
                      target.dates > 0 ? "holds dates" : format("is empty in {}", counted(target.missing, "line"))),
               "choose another one with --target");
  }
  if (const std::string why = why_left_out(target, table.lines);
      target.words > 0 && target.numbers == 0 && !why.empty()) {
    data_error(table.path, format("its column '{}' {}, and cannot be the target", target.name, why),
               "choose another one with --target");
  }
  const std::string data = data_text(request, table, target, folder ? first_of(request.path, held_out) : "");
  const bool is_class = names_classes(request, target, table.lines);
  const DataInfo info = info_of(request, data, !is_class);
  const std::int64_t classes = info.targets[0].classes;
  const std::string what =
      is_class ? format("{} ({})", counted(classes, "class"), list_text(info.targets[0].class_names)) : "a number";
  Draft draft;
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
  return {draft};
}

}  // namespace trainctl
