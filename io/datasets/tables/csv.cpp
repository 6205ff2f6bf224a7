// The data set of tables of comma-separated values.
#include "io/datasets/tables/csv.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"
#include "io/datasets/arrays/array.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/csv_header.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_target.h"

namespace trainctl {

template <>
struct Value<ColumnNames> {
  using List = Value<std::vector<std::string>>;

  static TypeInfo type() {
    TypeInfo info = List::type();
    info.single_item_allowed = true;
    return info;
  }
  static bool read(const Node& node, Reader& reader, ColumnNames& value) {
    if (!node.is_scalar()) return List::read(node, reader, value);
    return Value<std::string>::read(node, reader, value.emplace_back());
  }
  static Node write(const ColumnNames& value) { return List::write(value); }
};

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names of a table's columns, and the columns that are read.
struct Columns {
  std::vector<std::string> names;
  std::vector<std::size_t> samples, targets;
  std::optional<std::size_t> weight;

  std::vector<std::string> names_of(const std::vector<std::size_t>& columns) const {
    std::vector<std::string> found;
    for (const std::size_t column : columns) found.push_back(names[column]);
    return found;
  }
};

std::size_t find_column(const std::vector<std::string>& names, const std::string& name, const std::string& path) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::size_t shown = std::min<std::size_t>(names.size(), 12);
  const std::string all = join_or({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)});
  throw Error(ErrorKind::config, format("{} has no column '{}'{}", path, name, suggestion(name, names)),
              format("it has {}{}", all, shown < names.size() ? format(" and {} more", names.size() - shown) : ""));
}

// Finds the columns that the training split reads, by their names.
void match_training_columns(const TableInfo& training, const std::string& path, Columns& columns) {
  const auto find = [&](const std::string& name) {
    if (!has(columns.names, name)) {
      data_error(path, format("has no column '{}', which the training split has", name),
                 "all splits need the same columns, in any order");
    }
    return find_column(columns.names, name, path);
  };
  for (const TableInfo::Column& column : training.columns) columns.samples.push_back(find(column.name));
  for (const std::string& name : training.targets) columns.targets.push_back(find(name));
  if (!training.weight.empty() && has(columns.names, training.weight)) columns.weight = find(training.weight);
}

// Returns, for each column of the first file, the index of the column with the same name in `names`, the columns of
// another file.
std::vector<std::size_t> match_columns(const std::vector<std::string>& first, const std::string& first_path,
                                       const std::vector<std::string>& names, const std::string& path) {
  const auto refuse = [](const std::string& file, const std::string& name, const std::string& other) {
    data_error(file, format("has no column '{}', which {} has", name, other),
               "all files need the same columns, in any order");
  };
  for (const std::string& name : names) {
    if (!has(first, name)) refuse(first_path, name, path);
  }
  std::vector<std::size_t> indices;
  for (const std::string& name : first) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) refuse(path, name, first_path);
    indices.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return indices;
}

// Chooses the columns of a table whose first file is `path`.
Columns choose_columns(const std::string& path, const CsvFormat& csv, const TableInfo* training) {
  Columns columns;
  std::vector<std::string>& names = columns.names;
  names = column_names(path, csv);
  if (training) {
    match_training_columns(*training, path, columns);
    return columns;
  }
  for (const auto* list : {&csv.numeric, &csv.categorical}) {
    for (const std::string& name : *list) find_column(names, name, path);
  }
  for (const std::string& name : csv.target) columns.targets.push_back(find_column(names, name, path));
  if (!csv.weight.empty()) columns.weight = find_column(names, csv.weight, path);
  if (csv.target.empty()) {
    const bool weight_is_last = columns.weight == names.size() - 1 && names.size() > 1;
    columns.targets.push_back(names.size() - (weight_is_last ? 2 : 1));
  }
  for (const std::string& name : csv.columns) columns.samples.push_back(find_column(names, name, path));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto among = [i](const std::vector<std::size_t>& list) {
      return std::find(list.begin(), list.end(), i) != list.end();
    };
    if (csv.columns.empty() && !among(columns.targets) && columns.weight != i) columns.samples.push_back(i);
    if (columns.weight == i && (among(columns.targets) || among(columns.samples))) {
      throw Error(ErrorKind::config,
                  format("column '{}' of {} is the weight, but is also the target or in `columns`", names[i], path),
                  "remove it from `target` and `columns`");
    }
    if (among(columns.targets) && among(columns.samples)) {
      throw Error(ErrorKind::config,
                  format("column '{}' of {} is the target, but is also in `columns`", names[i], path),
                  "remove it from `columns`: the network would only copy it");
    }
  }
  if (columns.samples.empty()) data_error(path, "has no column except its target", "a sample needs at least one value");
  return columns;
}

// Makes the columns of samples, before any lines are read.
std::vector<CsvColumn> empty_columns(const std::string& path, const CsvFormat& csv, const Columns& columns,
                                     const TableInfo* training) {
  const bool missing_is_error = csv.missing == MissingValue(MissingRule::error);
  std::vector<CsvColumn> empty;
  for (std::size_t i = 0; i < columns.samples.size(); ++i) {
    const std::string& name = columns.names[columns.samples[i]];
    const bool categorical = has(csv.categorical, name);
    ColumnKind kind = categorical              ? ColumnKind::categorical
                      : has(csv.numeric, name) ? ColumnKind::numeric
                                               : ColumnKind::automatic;
    std::optional<std::vector<std::string>> vocabulary;
    bool accepts_others = false;
    if (training) {
      const TableInfo::Column& column = training->columns[i];
      kind = column.words ? ColumnKind::categorical : ColumnKind::numeric;
      if (column.words) vocabulary = column.vocabulary;
      accepts_others = column.out_of_vocabulary;
    }
    const MissingFields missing = missing_is_error ? MissingFields::none
                                  : categorical    ? MissingFields::empty
                                                   : MissingFields::marked;
    empty.emplace_back(path, name, kind, missing, std::move(vocabulary), accepts_others);
  }
  return empty;
}

// Makes the columns of the target.
std::vector<TargetColumn> target_columns(const CsvFormat& csv, const Columns& columns) {
  std::vector<TargetColumn> found;
  for (const std::size_t field : columns.targets) {
    const std::string& name = columns.names[field];
    found.push_back({name, field, has(csv.categorical, name)});
  }
  return found;
}

// Returns the kind of the target's fields, as far as it is known before they are read.
TargetKind target_kind(const CsvFormat& csv, const Columns& columns, const DeclaredInfo& declared) {
  if (declared.training) return declared.training->class_names.empty() ? TargetKind::numbers : TargetKind::words;
  if (columns.targets.size() != 1) return TargetKind::numbers;
  const std::string& name = columns.names[columns.targets[0]];
  if (has(csv.categorical, name)) return TargetKind::words;
  const bool values =
      declared.classes ? *declared.classes == 0 : declared.use.target_values && !declared.target_is_input;
  return values || has(csv.numeric, name) ? TargetKind::numbers : TargetKind::automatic;
}

struct Table {
  std::vector<CsvColumn> columns;
  CsvTarget target;
  std::vector<float> weights;  // one for each line; empty if there is no column of weights
};

float weight_in(std::string_view field, const FieldLocation& location) {
  const std::optional<float> weight = number_in(trimmed(field));
  if (!weight) refuse_field(location, trimmed(field));
  if (*weight < 0) {
    data_error(location.path, format("line {}, column '{}': the weight is {}", location.line, location.column, *weight),
               "weights must be at least 0");
  }
  return *weight;
}

// Reads the lines after the header. Returns nullopt if the kind of the target is automatic and the first line has a
// word: the target is then to be read as words.
std::optional<Table> read_table(const std::vector<std::string>& paths, const CsvFormat& csv, const Columns& columns,
                                const TableInfo* training, TargetKind kind) {
  Table table{empty_columns(paths[0], csv, columns, training), {paths[0], target_columns(csv, columns), kind}, {}};
  std::vector<std::string_view> fields, in_order;
  for (const std::string& path : paths) {
    CsvLines lines(path, csv.delimiter[0]);
    const bool first = &path == paths.data();
    const std::vector<std::size_t> indices =
        match_columns(columns.names, paths[0], first ? columns.names : column_names(path, csv), path);
    if (csv.header.or_else(true)) lines.next(fields);
    bool any = false;
    for (; lines.next(fields); any = true) {
      const LineLocation at = lines.place();
      if (fields.size() != columns.names.size()) {
        data_error(path, format("line {} has {} fields, not {}", at.line, fields.size(), columns.names.size()),
                   "quote fields that hold the delimiter, or set another `delimiter`");
      }
      in_order.clear();
      for (const std::size_t index : indices) in_order.push_back(fields[index]);
      for (std::size_t i = 0; i < columns.samples.size(); ++i) table.columns[i].add(in_order[columns.samples[i]], at);
      if (!table.target.add(in_order, at)) return std::nullopt;
      if (!columns.weight) continue;
      table.weights.push_back(weight_in(in_order[*columns.weight], {path, columns.names[*columns.weight], at.line}));
    }
    if (!any) data_error(path, "has no line of values");
  }
  for (CsvColumn& column : table.columns) column.finish();
  return table;
}

struct CsvOptions final : DatasetOptions, CsvFormat {
  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return csv_dataset(paths_of({where}, "csv"), *this, declared);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    const auto dataset = csv_dataset(paths_of(pieces, "csv"), *this, declared_of_both(declared));
    return {{dataset}, {dataset}};
  }
  std::shared_ptr<const Dataset> open_inputs(const std::vector<std::string>& paths,
                                             const DeclaredInfo& declared) const override {
    return csv_dataset(paths, *this, declared);
  }
};

}  // namespace

std::shared_ptr<const Dataset> csv_dataset(const std::vector<std::string>& paths, const CsvFormat& csv,
                                           const DeclaredInfo& declared) {
  with_all_errors(paths, [](const std::string& path) { open_data(path); });
  const std::string& path = paths[0];  // for messages that concern the whole table
  const TableInfo* training = declared.training ? declared.training->table.get() : nullptr;
  const Columns columns = choose_columns(path, csv, training);
  std::optional<Table> read = read_table(paths, csv, columns, training, target_kind(csv, columns, declared));
  if (!read) read = read_table(paths, csv, columns, training, TargetKind::words);
  const auto rows = rows_of(read->columns);
  const auto width = std::ssize(columns.samples), lines = std::ssize(*rows) / width;
  DeclaredInfo row_info = declared;
  row_info.sample.reset();  // declared.sample is the shape of the samples that are made of the rows
  std::optional<Array> weights;
  if (columns.weight) weights = {path, {lines}, ElementType::float32, false, bytes_of(std::move(read->weights))};
  Array row_array{path, {lines, width}, ElementType::float32, false, bytes_of(rows)};
  const auto stored = columns.targets.empty()
                          ? array_inputs(std::move(row_array), row_info)
                          : read->target.with_samples(std::move(row_array), std::move(weights), row_info);

  std::shared_ptr<const TableInfo> table = declared.training ? declared.training->table : nullptr;
  if (!table) {
    std::vector<std::int64_t> samples;
    if (declared.trained_on) samples = declared.trained_on(*stored);
    table = std::make_shared<const TableInfo>(
        TableInfo{measure_columns(path, read->columns, samples, csv.missing, csv.standardize, csv.out_of_vocabulary),
                  columns.names_of(columns.targets), csv.weight});
  }
  std::string others;
  for (const CsvColumn& column : read->columns) {
    const std::string text = column.others_text();
    others += (others.empty() || text.empty() ? "" : "; ") + text;
  }
  return table_dataset(stored, rows, table, declared.sample, std::move(others));
}

Section csv_choice() {
  return Keys<CsvOptions>("csv",
                          "A table with columns of numbers or words, and a target of words, class numbers or values.")
      .key("path", &CsvOptions::path,
           "The file, with a line for each sample; or a list of files with the same columns.")
      .key("target", &CsvOptions::target,
           "The column of the target, or a list of columns for several values; default: the last column.")
      .key("columns", &CsvOptions::columns,
           "The columns of a sample, in this order; default: all except the target and the weight.")
      .key("weight", &CsvOptions::weight,
           "The column of the samples' weights, by which loss and metrics are averaged; default: all weights are 1. It "
           "may be missing in validation and test.")
      .key("categorical", &CsvOptions::categorical,
           "Columns of words. Each becomes one value for every word of the training split: 1 if the field holds the "
           "word, else 0 (one-hot). A column without numbers need not be listed if some of its words are repeated; a "
           "column whose numbers are names of categories must be listed. If the target is listed, its words are "
           "classes, also for a loss that accepts values: the values are then 1 for the class and 0 for the others.")
      .key("numeric", &CsvOptions::numeric,
           "Columns in which anything but a number is an error; columns of numbers need not be listed.")
      .key("out_of_vocabulary", &CsvOptions::out_of_vocabulary,
           "Whether each column of words gets an additional first value, which is 1 for all words that are missing in "
           "the training split, as in Keras' StringLookup and FeatureSpace. Without it, such a word in validation, "
           "test or prediction is an error. A class that is missing in the training split is always an error.")
      .key("missing", &CsvOptions::missing,
           "What replaces a missing number, that is, a field that is empty or holds NA, N/A, NaN, null or ?: the mean "
           "of the training split's values, zero, or this number; error: the run ends. A missing word becomes "
           "zeros; in columns listed in `categorical`, only empty fields are missing. A target must not be missing.")
      .key("standardize", &CsvOptions::standardize,
           "Whether every column of numbers is shifted and scaled to mean 0 and variance 1, measured on the training "
           "split; constant columns become 0.")
      .key("delimiter", &CsvOptions::delimiter, "The character between fields.")
      .key("header", &CsvOptions::header,
           "Whether the first line names the columns; otherwise their names are \"1\", \"2\", and so on. auto: as "
           "true, but it is an error if the first line looks like a sample.")
      .check([](const CsvOptions& options, const Node& node, Reader& reader) {
        const auto location_of = [&](const char* key) {
          const Node* value = node.find(key);
          return value ? value->location : node.location;
        };
        if (options.delimiter.size() != 1 || options.delimiter == "\"" || options.delimiter == "\n") {
          reader.error(location_of("delimiter"),
                       format("delimiter must be one character, not '{}'", options.delimiter));
        }
        for (const std::string& name : options.categorical) {
          if (!has(options.numeric, name)) continue;
          reader.error(location_of("categorical"),
                       format("column '{}' is named in `categorical` and in `numeric`", name));
        }
        const double* number = std::get_if<double>(&options.missing);
        if (number && !std::isfinite(static_cast<float>(*number))) {
          reader.error(location_of("missing"), "missing must be a finite number");
        }
      });
}

}  // namespace trainctl
