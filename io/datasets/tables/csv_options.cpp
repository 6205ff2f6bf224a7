// The keys of the data set of tables.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "io/datasets/options.h"
#include "io/datasets/tables/csv.h"
#include "io/datasets/tables/csv_columns.h"

namespace trainctl {
namespace {

struct CsvOptions final : DatasetOptions, CsvFormat {
  bool holds_several() const override { return inputs.has_value(); }
  bool holds_several_outputs() const override { return targets.has_value(); }

  std::shared_ptr<const Dataset> open(const DataLocation& where, SplitKind, const DeclaredInfo& declared,
                                      std::uint64_t) const override {
    return csv_dataset(paths_of({where}, "csv"), *this, declared);
  }
  DatasetGroup open_pieces(const std::vector<DataLocation>& pieces, SplitKind, const DeclaredGroup& declared,
                           std::uint64_t) const override {
    std::vector<NamedInfo> named;
    for (std::size_t i = 0; i < declared.inputs.size(); ++i) {
      DeclaredInfo both = declared.targets[0];
      both.sample = declared.inputs[i].sample;
      both.use.tokens = declared.inputs[i].use.tokens;
      both.training = declared.inputs[i].training;
      named.push_back({declared.use.inputs[i].name, std::move(both)});
    }
    std::vector<NamedInfo> further;
    for (std::size_t k = 1; k < declared.targets.size(); ++k) {
      further.push_back({declared.use.targets[k].name, declared.targets[k]});
    }
    return csv_group(paths_of(pieces, "csv"), *this, named, further, declared.use.targets[0].name);
  }
  std::vector<std::shared_ptr<const Dataset>> open_all_inputs(const std::vector<std::string>& paths,
                                                              const std::vector<NamedInfo>& named) const override {
    return csv_group(paths, *this, named).inputs;
  }
  void check_input_names(const std::vector<std::string>& names, Reader& reader) const override {
    if (!inputs || !inputs->named()) return;
    if (names.front().empty()) {
      reader.error(inputs->entries.front().location, "the model has one input: use `columns` instead of `inputs`");
    } else {
      check_names(*inputs, names, "input", Coverage::all, reader);
    }
  }
  void check_output_names(const std::vector<std::string>& names, Reader& reader) const override {
    if (!targets || !targets->named()) return;
    if (names.front().empty()) {
      reader.error(targets->entries.front().location, "the model has one output: use `target` instead of `targets`");
    } else {
      check_names(*targets, names, "output", Coverage::some, reader);
    }
  }
};

// Reports columns that are to be encoded in two ways.
void check_encodings(const CsvOptions& options, const Node& node, Reader& reader) {
  std::map<std::string, std::string> key_of;
  const auto add = [&](const char* key, const std::string& name) {
    const auto [found, is_new] = key_of.emplace(name, key);
    if (is_new) return;
    const Node* value = node.find(key);
    reader.error(value != nullptr ? value->location : node.location,
                 format("column '{}' is named in `{}` and in `{}`", name, key, found->second));
  };
  for (const std::string& name : options.numeric) add("numeric", name);
  for (const std::string& name : options.categorical) add("categorical", name);
  for (const auto& [name, bins] : options.hash) add("hash", name);
  for (const auto& [name, bins] : options.discretize) add("discretize", name);
}

// Reports mistakes in `inputs` that can be seen without the table.
void check_inputs(const CsvOptions& options, const Node& node, Reader& reader) {
  if (!options.inputs) return;
  if (!options.inputs->named()) {
    reader.error(
        node.find("inputs")->location,
        "inputs must name the columns of each input of the model: {NAME: [COLUMN, ...], ...}; for a model with "
        "one input, use `columns`");
    return;
  }
  if (!options.columns.empty()) {
    reader.error(node.find("columns")->location, "`inputs` chooses the columns: leave `columns` out");
  }
  for (const auto& entry : options.inputs->entries) {
    if (entry.value.empty()) reader.error(entry.location, format("input '{}' has no columns", entry.name));
    for (auto name = entry.value.begin(); name != entry.value.end(); ++name) {
      if (std::find(entry.value.begin(), name, *name) == name) continue;
      reader.error(entry.location, format("input '{}' lists column '{}' twice", entry.name, *name));
    }
  }
}

// Reports mistakes in `targets` that can be seen without the table.
void check_targets(const CsvOptions& options, const Node& node, Reader& reader) {
  if (!options.targets) return;
  const SourceLocation& location = node.find("targets")->location;
  if (!options.targets->named()) {
    reader.error(location,
                 "targets must name the columns of each output of the model: {NAME: COLUMN, ...}; for a model with one "
                 "output, use `target`");
  }
  if (!options.target.empty()) {
    reader.error(node.find("target")->location, "`targets` chooses the columns: leave `target` out");
  }
  if (options.windows) reader.error(location, "windows of a series have one target: use `target`");
}

// Reports that lines of a series are left out, so that the lines of a window would not follow each other.
void check_missing_targets(const CsvOptions& options, const Node& node, Reader& reader) {
  if (!options.windows || options.missing_targets == MissingTarget::error) return;
  reader.error(node.find("missing_targets")->location,
               "windows need all lines of a series: write any value in the missing targets, and give these lines the "
               "weight 0 by a column that `weight` names");
}

}  // namespace

void check_delimiter(const std::string& delimiter, const Node& data, Reader& reader) {
  if (delimiter.size() == 1 && delimiter != "\"" && delimiter != "\n") return;
  const Node* value = data.find("delimiter");
  reader.error(value ? value->location : data.location, format("delimiter must be one character, not '{}'", delimiter));
}

Section csv_choice() {
  return Keys<CsvOptions>("csv",
                          "A table with columns of numbers or words, and a target of words, class numbers or values.")
      .key("path", &CsvOptions::path,
           "The file, with a line for each sample; or a list of files with the same columns.")
      .key("target", &CsvOptions::target,
           "The column of the target, or a list of columns for several values; default: the last column.")
      .key("targets", &CsvOptions::targets,
           "For a model with `outputs`: the column of each target by the name of its output, or a list of columns for "
           "several values, {NAME: COLUMN, ...}.")
      .key("columns", &CsvOptions::columns,
           "The columns of a sample, in this order; default: all except the target and the weight.")
      .key(
          "inputs", &CsvOptions::inputs,
          "For a model with `inputs`: the columns of each by its name, {NAME: [COLUMN, ...], ...}; a column may belong "
          "to several inputs. An input that an embedding reads gets whole numbers: the fields themselves, or for a "
          "single column of words the number of the word: 0 for words that are missing in the training lines (with "
          "`out_of_vocabulary`), then the words in bytewise order, as StringLookup with output_mode int.")
      .key("windows", &CsvOptions::windows,
           "For a series whose lines are sorted by time: samples are windows of several lines, and the target is in a "
           "line after the window, so that the target's column is also a column of the samples unless `columns` leaves "
           "it out. `split` splits the last lines off for validation.")
      .key("weight", &CsvOptions::weight,
           "The column of the samples' weights, by which loss and metrics are averaged; default: all weights are 1. It "
           "may be missing in validation and test.")
      .key("categorical", &CsvOptions::categorical,
           "Columns of words. Each becomes one value for every word of the training lines (without "
           "`out_of_vocabulary`: of the training file): 1 if the field holds the word, else 0 (one-hot). A column "
           "without numbers need not be listed if some of its words are repeated; a column whose numbers are names of "
           "categories must be listed. If the target is listed, its words are classes, also for a loss that accepts "
           "values: the values are then 1 for the class and 0 for the others.")
      .key(
          "hash", &CsvOptions::hash,
          "Columns of words that become one value for each bin, {NAME: BINS} with the number of bins: the words need "
          "not be known, and several words may share a bin. The bin is that of Keras' Hashing: FarmHash64 of the word, "
          "modulo the number of bins. An embedding gets the number of the bin.",
          between(1, 1 << 24))
      .key("discretize", &CsvOptions::discretize,
           "Columns of numbers that are divided into bins, {NAME: {num_bins: 10}} or {NAME: {bin_boundaries: [0, 1]}}: "
           "one value for each bin, which is 1 if the number lies in it, like Keras' Discretization with output_mode "
           "one_hot. An embedding gets the number of the bin. `standardize` does not change these columns.")
      .key("crosses", &CsvOptions::crosses,
           "Further columns by their names, {NAME: {columns: [COLUMN, ...], num_bins: BINS}}: the combination of the "
           "fields of several columns, hashed into bins like Keras' HashedCrossing. Whole numbers are read as numbers, "
           "unless `categorical` or `hash` lists their column. A column with bin_boundaries in `discretize` is read as "
           "the number of the bin. `columns` and `inputs` may list the names; a sample without these keys has all "
           "crosses.")
      .key("numeric", &CsvOptions::numeric,
           "Columns in which anything but a number is an error; columns of numbers need not be listed.")
      .key("out_of_vocabulary", &CsvOptions::out_of_vocabulary,
           "Whether each column of words gets an additional first value, which is 1 for all words that are missing in "
           "the training lines, as in Keras' StringLookup and FeatureSpace. Without it, such a word in validation, "
           "test or prediction is an error. A class that is missing in the training split is always an error.")
      .key("num_oov_indices", &CsvOptions::num_oov_indices,
           "With `out_of_vocabulary`: the number of first values for words that are missing in the training lines; "
           "the word's hash chooses one, as in Keras' StringLookup with this option.",
           between(1, 1 << 20))
      .key(
          "missing", &CsvOptions::missing,
          "What replaces a missing number, that is, a field that is empty or holds NA, N/A, n/a, #N/A, #NA, `<NA>`, "
          "NaN, "
          "nan, -NaN, -nan, NULL, null or ?: the mean of the training split's values, zero, or this number; error: the "
          "run ends. A missing word becomes zeros; in columns listed in `categorical`, only empty fields are missing. "
          "None is a word, and no missing value. It does not fill targets.")
      .key("missing_targets", &CsvOptions::missing_targets,
           "What happens to a line that lacks a target. drop: the line is left out, as by pandas' "
           "dropna(subset=[TARGET]), if a field of the target, or of any output's target, is empty or holds NA, N/A, "
           "n/a, "
           "#N/A, #NA, `<NA>`, NaN, nan, -NaN, -nan, NULL, null or ?; a warning tells how many lines are left out. "
           "error: "
           "the run ends; in a column listed in `categorical`, these words are classes. Prediction needs no targets, "
           "and "
           "reads all lines.")
      .key("standardize", &CsvOptions::standardize,
           "Whether every column of numbers is shifted and scaled to mean 0 and variance 1, measured on the training "
           "split; constant columns become 0.")
      .key("delimiter", &CsvOptions::delimiter, "The character between fields.")
      .key("header", &CsvOptions::header,
           "Whether the first line names the columns; otherwise their names are \"1\", \"2\", and so on. auto: as "
           "true, but it is an error if the first line looks like a sample.")
      .check([](const CsvOptions& options, const Node& node, Reader& reader) {
        check_inputs(options, node, reader);
        check_targets(options, node, reader);
        check_missing_targets(options, node, reader);
        const auto location_of = [&](const char* key) {
          const Node* value = node.find(key);
          return value ? value->location : node.location;
        };
        check_delimiter(options.delimiter, node, reader);
        check_encodings(options, node, reader);
        const double* number = std::get_if<double>(&options.missing);
        if (number && !std::isfinite(static_cast<float>(*number))) {
          reader.error(location_of("missing"), "missing must be a finite number");
        }
      });
}

}  // namespace trainctl
