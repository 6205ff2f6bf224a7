// Chooses the columns of a table.
#include "io/datasets/tables/csv_columns.h"

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/spec/suggestion.h"
#include "io/datasets/tables/csv_header.h"

namespace trainctl {
namespace {

bool among(std::size_t column, const std::vector<std::size_t>& columns) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

// The names of at most twelve columns, for messages.
std::string shown_names(const std::vector<std::string>& names) {
  const std::size_t shown = std::min<std::size_t>(names.size(), 12);
  const std::string all = join_or({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)});
  return format("{}{}", all, shown < names.size() ? format(" and {} more", names.size() - shown) : "");
}

std::optional<std::size_t> position_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - names.begin()));
}

// Tells that one of the names differs from this one only in upper and lower case; "" if none does.
std::string same_but_for_case(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& other) { return lower_case(other) == lower_case(name); });
  return found == names.end() ? "" : format("; '{}' differs from it in upper and lower case", *found);
}

std::size_t find_column(const std::vector<std::string>& names, const std::string& name, const std::string& path) {
  if (const auto found = position_of(names, name)) return *found;
  throw Error(ErrorKind::config, format("{} has no column '{}'{}", path, name, suggestion(name, names)),
              format("it has {}", shown_names(names)));
}

[[noreturn]] void refuse_weight(const std::string& name, const std::string& path) {
  throw Error(ErrorKind::config,
              format("column '{}' of {} is the weight, but is also the target or in `columns`", name, path),
              "remove it from `target` and `columns`");
}

// Finds the columns that the training split reads, by their names.
void match_training_columns(const std::vector<NamedInfo>& inputs, const std::string& path, TableColumns& columns) {
  const auto find = [&](const std::string& name) {
    if (!has_name(columns.names, name)) {
      data_error(
          path,
          format("has no column '{}', which the training split has{}", name, same_but_for_case(columns.names, name)),
          "all splits need the same columns, in any order");
    }
    return find_column(columns.names, name, path);
  };
  for (const NamedInfo& input : inputs) {
    std::vector<std::size_t>& found = columns.inputs.emplace_back();
    for (const auto& column : training_table(input.declared)->columns) found.push_back(find(column.name));
  }
  const TableInfo& training = *training_table(inputs[0].declared);
  for (const std::vector<std::string>& names : training.targets) {
    std::vector<std::size_t>& found = columns.outputs.emplace_back();
    for (const std::string& name : names) found.push_back(find(name));
  }
  if (!training.weight.empty() && has_name(columns.names, training.weight)) columns.weight = find(training.weight);
}

// Finds the columns of the config's `inputs`, and reports all names that cannot be used.
void choose_named_inputs(const std::string& path, const CsvFormat& csv, const std::vector<NamedInfo>& inputs,
                         TableColumns& columns) {
  std::vector<Diagnostic> problems;
  columns.inputs.resize(inputs.size());
  for (const auto& entry : csv.inputs->entries) {
    const auto refuse = [&](const std::string& what) {
      problems.push_back({entry.location, format("input '{}': {}", entry.name, what), {}, {}});
    };
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const auto& i) { return i.name == entry.name; });
    require(input != inputs.end(), "`inputs` names an input that the model does not have");
    for (const std::string& name : entry.value) {
      const auto column = position_of(columns.names, name);
      if (!column) {
        const std::string hint = suggestion(name, columns.names);
        refuse(format("{} has no column '{}'{}", path, name,
                      hint.empty() ? format("; it has {}", shown_names(columns.names)) : hint));
      } else if (among(*column, columns.targets()) && !csv.forecasts()) {
        refuse(format("column '{}' is the target, which the network would only copy; remove it here", name));
      } else if (columns.weight == column) {
        refuse(format("column '{}' is the weight; remove it here", name));
      } else {
        columns.inputs[static_cast<std::size_t>(input - inputs.begin())].push_back(*column);
      }
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Finds the columns of a network with one input.
void choose_samples(const std::string& path, const CsvFormat& csv, TableColumns& columns) {
  const std::vector<std::string>& names = columns.names;
  std::vector<std::size_t>& samples = columns.inputs.emplace_back();
  for (const std::string& name : csv.columns) samples.push_back(find_column(names, name, path));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_target = among(i, columns.targets()) && !csv.forecasts();
    if (csv.columns.empty() && !is_target && columns.weight != i) samples.push_back(i);
    if (columns.weight == i && among(i, samples)) refuse_weight(names[i], path);
    if (is_target && among(i, samples)) {
      throw Error(ErrorKind::config,
                  format("column '{}' of {} is the target, but is also in `columns`", names[i], path),
                  "remove it from `columns`: the network would only copy it");
    }
  }
  if (samples.empty()) data_error(path, "has no column except its target", "a sample needs at least one value");
}

// Finds the columns of the targets, in the order of the network's outputs.
void choose_targets(const std::string& path, const CsvFormat& csv, const std::vector<NamedInfo>& outputs,
                    TableColumns& columns) {
  const std::vector<std::string> in_file = columns.names_in_file();
  for (const NamedInfo& output : outputs) {
    std::vector<std::size_t>& found = columns.outputs.emplace_back();
    const ColumnNames* names = csv.targets ? csv.targets->find(output.name) : &csv.target;
    for (const std::string& name : names ? *names : ColumnNames{}) found.push_back(find_column(in_file, name, path));
    if (!found.empty() || output.declared.target_unused) continue;
    if (csv.targets) {
      throw Error(ErrorKind::config, csv.targets->entries.front().location,
                  format("`targets` names no column for the output '{}'", output.name),
                  format("add `{}: COLUMN` to `targets`", output.name));
    }
    const bool weight_is_last = columns.weight == in_file.size() - 1 && in_file.size() > 1;
    found.push_back(in_file.size() - (weight_is_last ? 2 : 1));
  }
}

// Adds the columns that are crosses of others.
void add_crosses(const std::string& path, const CsvFormat& csv, TableColumns& columns) {
  const std::vector<std::string> in_file = columns.names;
  for (const auto& [name, cross] : csv.crosses) {
    if (has_name(in_file, name)) {
      throw Error(ErrorKind::config, format("crosses: {} has a column '{}', too", path, name),
                  "give the cross another name");
    }
    std::vector<CrossedColumn>& crossed = columns.crosses.emplace_back();
    for (const std::string& part : cross.columns) {
      CrossedColumn column{find_column(in_file, part, path),
                           has_name(csv.categorical, part) || csv.hash.contains(part)};
      if (const auto bins = csv.discretize.find(part); bins != csv.discretize.end()) {
        const std::vector<double>& boundaries = bins->second.bin_boundaries;
        if (boundaries.empty()) {
          throw Error(ErrorKind::config,
                      format("crosses: the bins of column '{}' are known only after all lines have been read", part),
                      "give the column in `discretize` its bin_boundaries");
        }
        column.boundaries.assign(boundaries.begin(), boundaries.end());
      }
      crossed.push_back(std::move(column));
    }
    columns.names.push_back(name);
  }
}

// Refuses encodings of the target or the weight, which are read as they are, and crosses that would give them away.
void check_encoded_columns(const std::string& path, const CsvFormat& csv, const TableColumns& columns) {
  const auto role_of = [&](std::size_t column) -> const char* {
    if (columns.weight == column) return "weight";
    return among(column, columns.targets()) && !csv.forecasts() ? "target" : nullptr;
  };
  const auto check = [&](const char* key, std::size_t column) {
    if (const char* role = role_of(column)) {
      throw Error(ErrorKind::config, format("{}: column '{}' of {} is the {}", key, columns.names[column], path, role),
                  "remove it there: these columns are encoded as values of samples");
    }
  };
  for (const auto& [name, bins] : csv.hash) check("hash", find_column(columns.names, name, path));
  for (const auto& [name, bins] : csv.discretize) check("discretize", find_column(columns.names, name, path));
  for (const std::vector<CrossedColumn>& crossed : columns.crosses) {
    for (const CrossedColumn& column : crossed) check("crosses", column.index);
  }
}

}  // namespace

TableColumns choose_columns(const std::string& path, const CsvFormat& csv, const std::vector<NamedInfo>& inputs,
                            const std::vector<NamedInfo>& outputs) {
  TableColumns columns;
  columns.names = column_names(path, csv);
  add_crosses(path, csv, columns);
  if (training_table(inputs[0].declared)) {
    match_training_columns(inputs, path, columns);
    return columns;
  }
  const std::vector<std::string> in_file = columns.names_in_file();
  for (const auto* list : {&csv.numeric, &csv.categorical}) {
    for (const std::string& name : *list) find_column(in_file, name, path);
  }
  for (const auto& [name, bins] : csv.hash) find_column(in_file, name, path);
  for (const auto& [name, bins] : csv.discretize) find_column(in_file, name, path);
  if (!csv.weight.empty()) columns.weight = find_column(in_file, csv.weight, path);
  choose_targets(path, csv, outputs, columns);
  if (columns.weight && among(*columns.weight, columns.targets())) refuse_weight(csv.weight, path);
  check_encoded_columns(path, csv, columns);
  if (!csv.inputs) {
    choose_samples(path, csv, columns);
  } else {
    choose_named_inputs(path, csv, inputs, columns);
  }
  return columns;
}

std::vector<std::size_t> match_columns(const std::vector<std::string>& first, const std::string& first_path,
                                       const std::vector<std::string>& names, const std::string& path) {
  const auto refuse = [&](const std::string& file, const std::string& name, const std::string& other) {
    const std::vector<std::string>& present = file == path ? names : first;
    data_error(file, format("has no column '{}', which {} has{}", name, other, same_but_for_case(present, name)),
               "all files need the same columns, in any order");
  };
  for (const std::string& name : names) {
    if (!has_name(first, name)) refuse(first_path, name, path);
  }
  std::vector<std::size_t> indices;
  for (const std::string& name : first) {
    const auto found = position_of(names, name);
    if (!found) refuse(path, name, first_path);
    indices.push_back(*found);
  }
  return indices;
}

}  // namespace trainctl
