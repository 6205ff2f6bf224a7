// The data sets of tables of comma-separated values.
#include "io/datasets/tables/csv.h"

#include <optional>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/tables/csv_columns.h"
#include "io/datasets/tables/csv_header.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_target.h"
#include "io/datasets/tables/csv_width.h"

namespace trainctl {
namespace {

// Makes the columns of an input, before any lines are read.
std::vector<CsvColumn> empty_columns(const std::string& path, const CsvFormat& csv,
                                     const std::vector<std::string>& names, const TableInfo* training) {
  const bool missing_is_error = csv.missing == MissingValue(MissingRule::error);
  std::vector<CsvColumn> empty;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const bool categorical = has_name(csv.categorical, name);
    const auto hash = csv.hash.find(name);
    std::int64_t hash_bins = hash == csv.hash.end() ? 0 : hash->second;
    if (const auto cross = csv.crosses.find(name); cross != csv.crosses.end()) hash_bins = cross->second.num_bins;
    const bool numeric = has_name(csv.numeric, name) || csv.discretize.contains(name);
    ColumnKind kind = categorical || hash_bins > 0 ? ColumnKind::categorical
                      : numeric                    ? ColumnKind::numeric
                                                   : ColumnKind::automatic;
    std::optional<std::vector<std::string>> vocabulary;
    bool accepts_others = false;
    std::int64_t oov_values = csv.num_oov_indices;
    if (training) {
      const TableInfo::Column& column = training->columns[i];
      kind = column.words ? ColumnKind::categorical : ColumnKind::numeric;
      if (column.words) vocabulary = column.vocabulary;
      hash_bins = column.hash_bins;
      accepts_others = column.out_of_vocabulary;
      oov_values = column.oov_values;
    }
    const MissingFields missing = missing_is_error               ? MissingFields::none
                                  : categorical || hash_bins > 0 ? MissingFields::empty
                                                                 : MissingFields::marked;
    empty.emplace_back(path, name, kind, missing, std::move(vocabulary), accepts_others);
    empty.back().hash_words(hash_bins);
    empty.back().spread_others(oov_values);
  }
  return empty;
}

// Makes the columns of an output's target.
std::vector<TargetColumn> target_columns(const CsvFormat& csv, const TableColumns& columns, std::size_t output,
                                         const DeclaredInfo& declared) {
  const std::vector<std::string> classes =
      declared.training ? declared.training->class_names : std::vector<std::string>();
  std::vector<TargetColumn> found;
  for (const std::size_t field : columns.outputs[output]) {
    const std::string& name = columns.names[field];
    found.push_back({name, field, has_name(csv.categorical, name), classes});
  }
  return found;
}

// Returns the kind of the fields of an output's target, as far as it is known before they are read.
TargetKind target_kind(const CsvFormat& csv, const TableColumns& columns, std::size_t output,
                       const DeclaredInfo& declared) {
  if (declared.training) return declared.training->class_names.empty() ? TargetKind::numbers : TargetKind::words;
  if (columns.outputs[output].size() != 1) return TargetKind::numbers;
  const std::string& name = columns.names[columns.outputs[output][0]];
  if (has_name(csv.categorical, name)) return TargetKind::words;
  const bool values =
      declared.classes ? *declared.classes == 0 : declared.use.target_values && !declared.target_is_input;
  return values || has_name(csv.numeric, name) ? TargetKind::numbers : TargetKind::automatic;
}

// Returns the kinds of all targets.
std::vector<TargetKind> target_kinds(const CsvFormat& csv, const TableColumns& columns,
                                     const std::vector<NamedInfo>& outputs) {
  std::vector<TargetKind> kinds;
  for (std::size_t k = 0; k < columns.outputs.size(); ++k) {
    kinds.push_back(target_kind(csv, columns, k, outputs[k].declared));
  }
  return kinds;
}

struct Table {
  std::vector<std::vector<CsvColumn>> inputs;   // the columns of each input
  std::vector<CsvTarget> targets;               // the target of each output
  std::vector<float> weights;                   // one for each line; empty if there is no column of weights
  TableRows rows;                               // the places of the lines
  std::int64_t dropped = 0;                     // lines without a target, which are left out
  std::string first_dropped, first_dropped_in;  // the place of the first of these lines, and its file
};

// Whether a line is left out since its target is missing; counts it.
bool drops(const CsvFormat& csv, const std::vector<std::string_view>& fields, const LineLocation& line, Table& table) {
  if (csv.missing_targets == MissingTarget::error) return false;
  for (const CsvTarget& target : table.targets) {
    const TargetColumn* column = target.missing_in(fields);
    if (column == nullptr) continue;
    if (table.dropped++ == 0) {
      table.first_dropped = format("line {}, column '{}'", line.line, column->name);
      table.first_dropped_in = *line.path;
    }
    return true;
  }
  return false;
}

// The warning about lines that are left out; "" if there are none.
std::string dropped_text(const std::vector<std::string>& paths, const Table& table) {
  if (table.dropped == 0) return "";
  const std::int64_t all = table.dropped + table.rows.size();
  const std::string others = paths.size() == 1 ? "" : " and " + counted(paths.size() - 1, "more file");
  return format("{}{}: {} of {} {} a target and {} left out (the first: {}{})", paths[0], others,
                grouped(table.dropped), counted(all, "line"), table.dropped == 1 ? "lacks" : "lack",
                table.dropped == 1 ? "is" : "are", others.empty() ? "" : table.first_dropped_in + ", ",
                table.first_dropped);
}

float weight_in(std::string_view field, const FieldLocation& location) {
  const std::optional<float> weight = number_in(trimmed(field));
  if (!weight) refuse_field(location, trimmed(field));
  if (*weight < 0) {
    data_error(location.path, format("line {}, column '{}': the weight is {}", location.line, location.column, *weight),
               "weights must be at least 0");
  }
  return *weight;
}

// Reads the lines after the header. `kinds` are those of the targets. Returns nullopt if one of them is automatic and
// the first line has a word: this one is set to words, and the table is to be read again.
std::optional<Table> read_table(const std::vector<std::string>& paths, const CsvFormat& csv,
                                const TableColumns& columns, const std::vector<NamedInfo>& inputs,
                                const std::vector<NamedInfo>& outputs, std::vector<TargetKind>& kinds) {
  Table table;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    table.targets.emplace_back(paths[0], target_columns(csv, columns, k, outputs[k].declared), kinds[k], !csv.windows);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    table.inputs.push_back(
        empty_columns(paths[0], csv, columns.names_of(columns.inputs[i]), training_table(inputs[i].declared)));
  }
  const std::vector<std::string> in_file = columns.names_in_file();
  std::vector<std::string_view> fields, in_order;
  std::vector<std::int64_t> bins;  // of the line in the crosses
  for (const std::string& path : paths) {
    CsvLines lines(path, csv.delimiter[0]);
    const bool first = &path == paths.data();
    const std::vector<std::size_t> indices =
        match_columns(in_file, paths[0], first ? in_file : column_names(path, csv), path);
    if (csv.header.or_else(true)) lines.next(fields);
    bool any = false;
    for (; lines.next(fields); any = true) {
      const LineLocation at = lines.place();
      if (fields.size() != in_file.size()) {
        refuse_width(at, fields, in_file.size());
      }
      in_order.clear();
      for (const std::size_t index : indices) in_order.push_back(fields[index]);
      if (drops(csv, in_order, at, table)) continue;
      bins.clear();
      for (std::size_t i = 0; i < columns.crosses.size(); ++i) {
        bins.push_back(
            cross_bin(columns.crosses[i], in_order, csv.crosses.at(columns.names[in_file.size() + i]).num_bins));
      }
      for (std::size_t n = 0; n < inputs.size(); ++n) {
        const std::vector<std::size_t>& read = columns.inputs[n];
        for (std::size_t i = 0; i < read.size(); ++i) {
          if (read[i] < in_file.size()) {
            table.inputs[n][i].add(in_order[read[i]], at);
          } else {
            table.inputs[n][i].add_bin(bins[read[i] - in_file.size()]);
          }
        }
      }
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (table.targets[k].add(in_order, at)) continue;
        kinds[k] = TargetKind::words;
        return std::nullopt;
      }
      table.rows.lines.push_back(at.line);
      if (!columns.weight) continue;
      table.weights.push_back(
          weight_in(in_order[*columns.weight], {path, columns.names[*columns.weight], at.line, at.delimiter}));
    }
    if (!any) data_error(path, "has no line of values");
    table.rows.files.push_back({path, table.rows.size()});
  }
  if (table.rows.size() == 0) {
    data_error(paths[0],
               format("no line has a target, so that `missing_targets: drop` leaves out all (the first: {})",
                      table.first_dropped),
               "set another `target`");
  }
  for (std::vector<CsvColumn>& columns_of_input : table.inputs) {
    for (CsvColumn& column : columns_of_input) column.finish();
  }
  return table;
}

// Returns the lines that the windows of the training split read.
std::vector<std::int64_t> rows_trained_on(const std::shared_ptr<const Dataset>& lines, const WindowOptions& windows,
                                          bool with_targets, const DeclaredInfo& declared, const std::string& path) {
  const auto trained_on = declared.trained_on(*windows_of(lines, windows, with_targets, path));
  return rows_of_windows(windows, std::ssize(trained_on), with_targets);
}

// The texts that are not empty, with semicolons between them.
std::string joined(std::initializer_list<std::string> texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() || text.empty() ? "" : "; ") + text;
  return all;
}

// Returns the warnings about words that are not in the training split, and in the training split itself about numbers
// that are equal in float32. `warned` are the columns whose warnings another input has.
std::string warning_of(const std::string& path, const std::vector<CsvColumn>& columns, bool is_training,
                       std::vector<std::string>& warned) {
  std::string others;
  for (const CsvColumn& column : columns) {
    const std::string text = is_training ? column.range().warning(path, column.name()) : column.others_text();
    if (text.empty() || has_name(warned, column.name())) continue;
    warned.push_back(column.name());
    others += (others.empty() ? "" : "; ") + text;
  }
  return others;
}

// Returns the info of the training split's table for an input that has the columns `own`.
std::shared_ptr<const TableInfo> measured_table(const std::string& path, const CsvFormat& csv,
                                                const TableColumns& columns, const std::vector<CsvColumn>& own,
                                                const std::vector<std::int64_t>& trained_on, bool tokens) {
  TableInfo table{measure_columns(path, own, trained_on, csv.missing, csv.standardize && !tokens, csv.out_of_vocabulary,
                                  csv.discretize),
                  {},
                  csv.weight};
  for (const auto& output : columns.outputs) table.targets.push_back(columns.names_of(output));
  return std::make_shared<const TableInfo>(std::move(table));
}

}  // namespace

DatasetGroup csv_group(const std::vector<std::string>& paths, const CsvFormat& csv,
                       const std::vector<NamedInfo>& inputs, const std::vector<NamedInfo>& further,
                       const std::string& first_output) {
  with_all_errors(paths, [](const std::string& path) { open_data(path); });
  require_one_series(csv.windows, paths.size());
  const std::string& path = paths[0];  // for messages that concern the whole table
  const DeclaredInfo& first = inputs[0].declared;
  std::vector<NamedInfo> outputs{{first_output, first}};
  outputs.insert(outputs.end(), further.begin(), further.end());
  const TableColumns columns = choose_columns(path, csv, inputs, outputs);
  std::vector<TargetKind> kinds = target_kinds(csv, columns, outputs);
  std::optional<Table> read;
  while (!read) read = read_table(paths, csv, columns, inputs, outputs, kinds);
  const bool has_targets = !columns.outputs.empty() && !columns.outputs[0].empty();

  const std::string dropped = dropped_text(paths, *read);
  std::string target_warning;
  for (const CsvTarget& target : read->targets) {
    if (first.training == nullptr && target_warning.empty()) target_warning = target.warning();
  }
  const auto places = std::make_shared<const TableRows>(std::move(read->rows));
  std::vector<std::shared_ptr<const Dataset>> datasets;
  std::vector<std::int64_t> trained_on;
  std::vector<std::string> warned;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DeclaredInfo& declared = inputs[i].declared;
    std::vector<CsvColumn>& own = read->inputs[i];
    auto rows = rows_of(own);
    const auto width = std::ssize(own), lines = std::ssize(*rows) / width;
    DeclaredInfo row_info = declared;
    row_info.sample.reset();  // declared.sample is the shape of the samples that are made of the rows
    const bool with_targets = has_targets && !declared.targets_may_miss();
    Array row_array{path, {lines, width}, ElementType::float32, false, bytes_of(rows)};
    std::shared_ptr<const Dataset> stored;
    std::optional<Array> weights;
    if (i == 0 && columns.weight && !columns.targets().empty()) {
      weights = {path, {lines}, ElementType::float32, false, bytes_of(std::move(read->weights))};
    }
    if (i > 0 || !has_targets) {
      stored = array_inputs(std::move(row_array), row_info, std::move(weights));
    } else {
      stored = read->targets[0].with_samples(std::move(row_array), std::move(weights), row_info, *places);
    }
    if (i == 0 && first.trained_on) {
      trained_on =
          csv.windows ? rows_trained_on(stored, *csv.windows, with_targets, first, path) : first.trained_on(*stored);
    }
    if (!declared.training && csv.out_of_vocabulary && !trained_on.empty()) {
      for (CsvColumn& column : own) column.keep_words_of(trained_on);
      rows = rows_of(own);
    }
    std::shared_ptr<const TableInfo> table = declared.training ? declared.training->table : nullptr;
    if (!table) table = measured_table(path, csv, columns, own, trained_on, declared.use.tokens > 0);
    std::string warning = warning_of(path, own, declared.training == nullptr, warned);
    if (i == 0) warning = joined({dropped, target_warning, warning});
    const auto lines_of = table_dataset(stored, rows, table, csv.windows ? std::nullopt : declared.sample,
                                        declared.use.tokens, std::move(warning), places);
    datasets.push_back(csv.windows ? windows_of(lines_of, *csv.windows, with_targets, path) : lines_of);
  }
  DatasetGroup group{datasets, {datasets[0]}};
  for (std::size_t k = 1; k < columns.outputs.size(); ++k) {
    const bool unused = columns.outputs[k].empty();
    group.targets.push_back(unused ? datasets[0] : read->targets[k].alone(outputs[k].declared, *places));
  }
  return group;
}

std::shared_ptr<const Dataset> csv_dataset(const std::vector<std::string>& paths, const CsvFormat& csv,
                                           const DeclaredInfo& declared) {
  return csv_group(paths, csv, {{"", declared}}).inputs[0];
}

}  // namespace trainctl
