// Reads tables of comma-separated values.
#include "io/datasets/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "io/datasets/array.h"
#include "io/datasets/inflate.h"
#include "io/datasets/options.h"

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

// Splits a file into fields, line by line.
class CsvReader {
 public:
  CsvReader(const std::string& path, char delimiter) : path_(path), delimiter_(delimiter), bytes_(open_data(path)) {
    if (is_gzip(bytes_)) data_error(path, "is compressed", "unpack it with gunzip");
    bytes_ = bytes_.loaded();
    rest_ = {reinterpret_cast<const char*>(bytes_.in_memory()), static_cast<std::size_t>(bytes_.size())};
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  // Gives the fields of the next line that is not empty; false at the end of the file. The views are valid until the
  // next call.
  bool next(std::vector<std::string_view>& fields) {
    fields.clear();
    quoted_.clear();
    while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) take_line_end();
    if (rest_.empty()) return false;
    line_ = next_line_;
    for (;;) {
      fields.push_back(rest_[0] == '"' ? take_quoted() : take_plain());
      if (rest_.empty()) return true;
      if (rest_[0] != delimiter_) {
        take_line_end();
        return true;
      }
      rest_.remove_prefix(1);
      if (rest_.empty() || rest_[0] == '\n' || rest_[0] == '\r') {  // an empty field at the end of the line
        fields.push_back({});
        take_line_end();
        return true;
      }
    }
  }

  // The number of the line that next() read last, from 1.
  std::int64_t line() const { return line_; }

 private:
  std::string_view take_plain() {
    const char ends[] = {delimiter_, '\n', '\r'};
    const std::size_t end = std::min(rest_.find_first_of({ends, sizeof ends}), rest_.size());
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return field;
  }

  std::string_view take_quoted() {
    std::string& field = quoted_.emplace_back();
    rest_.remove_prefix(1);
    for (;;) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) {
        data_error(path_, format("line {}: a quotation mark is not closed", line_),
                   "close it, or double it in the text");
      }
      next_line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
      field += rest_.substr(0, quote);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      field += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_[0] != delimiter_ && rest_[0] != '\n' && rest_[0] != '\r') {
      data_error(path_, format("line {}: text follows a closing quotation mark", line_),
                 "double quotation marks within the text");
    }
    return field;
  }

  void take_line_end() {
    if (rest_.empty()) return;
    rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
    ++next_line_;
  }

  const std::string& path_;
  char delimiter_;
  Bytes bytes_;
  std::string_view rest_;
  std::list<std::string> quoted_;  // quoted fields of this line, unescaped
  std::int64_t line_ = 0, next_line_ = 1;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The names of a table's columns, and the columns that are read.
struct Columns {
  std::vector<std::string> names;
  std::vector<std::size_t> samples, targets;
};

std::size_t find_column(const std::vector<std::string>& names, const std::string& name, const std::string& path) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::size_t shown = std::min<std::size_t>(names.size(), 12);
  const std::string has = join_or({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown)});
  throw Error(ErrorKind::config, format("{} has no column '{}'{}", path, name, suggestion(name, names)),
              format("it has {}{}", has, shown < names.size() ? format(" and {} more", names.size() - shown) : ""));
}

Columns choose_columns(const std::string& path, const CsvFormat& csv) {
  std::vector<std::string> names;
  CsvReader first_line(path, csv.delimiter[0]);
  std::vector<std::string_view> fields;
  if (!first_line.next(fields)) data_error(path, "holds no lines");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    names.push_back(csv.header ? std::string(trimmed(fields[i])) : std::to_string(i + 1));
  }
  Columns columns;
  std::set<std::string> known;
  for (const std::string& name : names) {
    if (!known.insert(name).second) data_error(path, format("has two columns '{}'", name), "give each its own name");
  }
  for (const std::string& name : csv.target) columns.targets.push_back(find_column(names, name, path));
  if (csv.target.empty()) columns.targets.push_back(names.size() - 1);
  for (const std::string& name : csv.columns) columns.samples.push_back(find_column(names, name, path));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto among = [i](const std::vector<std::size_t>& list) {
      return std::find(list.begin(), list.end(), i) != list.end();
    };
    if (csv.columns.empty() && !among(columns.targets)) columns.samples.push_back(i);
    if (among(columns.targets) && among(columns.samples)) {
      throw Error(ErrorKind::config, format("column '{}' of {} is in `columns` and is the target", names[i], path),
                  "take it out of `columns`: a network would only copy it");
    }
  }
  if (columns.samples.empty()) data_error(path, "has no column beside its target", "a sample needs a value at least");
  columns.names = std::move(names);
  return columns;
}

std::optional<float> number_in(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto narrow = static_cast<float>(value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

// A target of words: each distinct word's number in order of appearance, and the number of each sample's word.
struct Words {
  std::map<std::string, std::int32_t, std::less<>> numbers;
  std::vector<std::int32_t> of_samples;

  void add(std::string_view word) {
    auto found = numbers.find(word);
    if (found == numbers.end()) found = numbers.emplace(word, static_cast<std::int32_t>(numbers.size())).first;
    of_samples.push_back(found->second);
  }
};

struct Table {
  std::int64_t rows = 0;
  std::vector<float> samples, targets;  // targets that are numbers
  Words words;                          // targets that are words
};

// Reads the lines behind the header. Returns nothing where the target should be numbers and a line has a word.
std::optional<Table> read_table(const std::string& path, const CsvFormat& csv, const Columns& columns,
                                bool target_of_words) {
  CsvReader reader(path, csv.delimiter[0]);
  Table table;
  std::vector<std::string_view> fields;
  if (csv.header) reader.next(fields);
  while (reader.next(fields)) {
    if (fields.size() != columns.names.size()) {
      data_error(path, format("line {} has {} fields, not {}", reader.line(), fields.size(), columns.names.size()),
                 "quote fields that hold the delimiter, or state another `delimiter`");
    }
    const auto refuse = [&](std::size_t column) {
      const std::string_view text = trimmed(fields[column]);
      const std::string where = format("line {}, column '{}'", reader.line(), columns.names[column]);
      if (text.empty())
        data_error(path, format("{} is empty", where), "leave out lines with missing values, or fill them");
      data_error(path, format("{}: '{}' is no number", where, text.substr(0, 40)),
                 "name the numeric columns with `columns`");
    };
    for (const std::size_t column : columns.samples) {
      const std::optional<float> value = number_in(fields[column]);
      if (!value) refuse(column);
      table.samples.push_back(*value);
    }
    for (const std::size_t column : columns.targets) {
      const std::string_view text = trimmed(fields[column]);
      const std::optional<float> value = number_in(text);
      if (text.empty() || (!value && columns.targets.size() > 1)) refuse(column);
      if (target_of_words) {
        table.words.add(text);
      } else if (value) {
        table.targets.push_back(*value);
      } else {
        return std::nullopt;
      }
    }
    ++table.rows;
  }
  if (table.rows == 0) data_error(path, "has no line of values");
  return table;
}

template <class T>
Bytes bytes_of(std::vector<T> values) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
  return {std::shared_ptr<const std::byte>(owner, bytes), static_cast<std::int64_t>(owner->size() * sizeof(T))};
}

bool are_whole(const std::vector<float>& values) {
  constexpr float most = 1 << 24;  // above this float32 does not hold every whole number
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return value == std::floor(value) && std::abs(value) <= most; });
}

// The class number of each sample: by the bytewise order of the words, or by the training part's class names.
std::vector<std::int32_t> number_words(const Table& table, const StatedFacts& stated, const std::string& path,
                                       std::vector<std::string>& class_names) {
  for (const auto& [word, number] : table.words.numbers) class_names.push_back(word);
  if (stated.training) class_names = stated.training->class_names;
  std::vector<std::int32_t> classes(table.words.numbers.size());
  for (const auto& [word, number] : table.words.numbers) {
    const auto found = std::lower_bound(class_names.begin(), class_names.end(), word);
    if (found == class_names.end() || *found != word) {
      data_error(path, format("has the class '{}', which the training part has not", word));
    }
    classes[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(found - class_names.begin());
  }
  std::vector<std::int32_t> labels;
  for (const std::int32_t number : table.words.of_samples) labels.push_back(classes[static_cast<std::size_t>(number)]);
  return labels;
}

struct CsvOptions final : DatasetOptions, CsvFormat {
  std::shared_ptr<const Dataset> open(const DataLocation& where, PartKind, const StatedFacts& stated,
                                      std::uint64_t) const override {
    if (where.path.empty()) throw Error(ErrorKind::config, "csv needs `path`");
    return csv_dataset(where.path.text, *this, stated);
  }
};

}  // namespace

std::shared_ptr<const Dataset> csv_dataset(const std::string& path, const CsvFormat& csv, const StatedFacts& stated) {
  const Columns columns = choose_columns(path, csv);
  bool words = stated.training && !stated.training->class_names.empty();
  std::optional<Table> read = read_table(path, csv, columns, words);
  if (!read) read = read_table(path, csv, columns, words = true);
  Table& table = *read;
  const auto width = static_cast<std::int64_t>(columns.samples.size());
  Array x{path, {table.rows, width}, ElementType::float32, false, bytes_of(std::move(table.samples))};
  if (words) {
    if (stated.known_classes() == 0) {
      data_error(path, format("column '{}' holds words, where values are expected", columns.names[columns.targets[0]]),
                 "name another `target`, or leave `classes: 0` out: words are classes");
    }
    std::vector<std::string> class_names;
    std::vector<std::int32_t> labels = number_words(table, stated, path, class_names);
    Array y{path, {table.rows}, ElementType::int32, false, bytes_of(std::move(labels))};
    return array_dataset(std::move(x), std::move(y), stated, std::move(class_names));
  }
  const auto each = static_cast<std::int64_t>(columns.targets.size());
  if (each == 1 && are_whole(table.targets)) {
    std::vector<std::int32_t> labels(table.targets.begin(), table.targets.end());
    return array_dataset(std::move(x), {path, {table.rows}, ElementType::int32, false, bytes_of(std::move(labels))},
                         stated);
  }
  return array_dataset(std::move(x),
                       {path, {table.rows, each}, ElementType::float32, false, bytes_of(std::move(table.targets))},
                       stated);
}

Section csv_choice() {
  return Keys<CsvOptions>("csv", "A table: columns of numbers, and a target of words, class numbers or values.")
      .key("path", &CsvOptions::path, "The file: a line for each sample.")
      .key("target", &CsvOptions::target, "The column of the target, or several for values; default: the last one.")
      .key("columns", &CsvOptions::columns, "The columns of a sample, in this order; default: all but the target.")
      .key("delimiter", &CsvOptions::delimiter, "The character between fields.")
      .key("header", &CsvOptions::header,
           "Whether the first line names the columns; otherwise they are called \"1\", \"2\", and so on.")
      .check([](const CsvOptions& options, const Node& node, Reader& reader) {
        if (options.delimiter.size() == 1 && options.delimiter != "\"" && options.delimiter != "\n") return;
        const Node* value = node.find("delimiter");
        reader.error(value ? value->place : node.place,
                     format("delimiter must be one character, not '{}'", options.delimiter));
      });
}

}  // namespace trainctl
