// Reads targets and assigns class numbers to words.
#include "io/datasets/tables/csv_target.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/number_marks.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

bool are_whole(const std::vector<float>& values) {
  constexpr float maximum = 1 << 24;  // float32 represents every whole number up to this one
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return value == std::floor(value) && std::abs(value) <= maximum; });
}

// Whether the training split has this class.
bool has_class(const TargetColumn& column, std::string_view text) {
  return std::binary_search(column.classes.begin(), column.classes.end(), text);
}

}  // namespace

void CsvTarget::refuse(const TargetColumn& column, std::string_view text, const LineLocation& line) const {
  const std::string command = command_without_lines(*line.path, line.line, line.last);
  // Without a line, the windows of a series would join lines that do not follow each other.
  const std::string leave_out = may_drop_
                                    ? format("leave out the line{} ({})", line.line == line.last ? "" : "s", command)
                                    : "write any value and give the line the weight 0 by a column that `weight` names";
  const std::string drop = may_drop_ ? "set `missing_targets: drop` to leave out all lines without a target, " : "";
  const bool may_be_class = is_mark(text) && kind_ == TargetKind::words && column.classes.empty();
  const std::string list = format("; if '{}' is a class, set `categorical: [{}]`", text, column.name);
  const std::string remedy =
      text.empty() || is_mark(text) ? "`missing` does not fill targets: " + drop + "correct the field, or " +
                                          leave_out + (may_be_class ? list : "")
      : kind_ == TargetKind::numbers || column.categorical
          ? "correct the field, or " + leave_out
          : "correct the field, or " + leave_out +
                "; if the target is classes and this is one of them, list the column in `categorical`";
  refuse_field({*line.path, column.name, line.line, line.delimiter}, text, remedy);
}

const TargetColumn* CsvTarget::missing_in(const std::vector<std::string_view>& fields) const {
  for (const TargetColumn& column : columns_) {
    const std::string_view text = trimmed(fields[column.field]);
    if (text.empty() || (is_mark(text) && !has_class(column, text))) return &column;
  }
  return nullptr;
}

bool CsvTarget::add(const std::vector<std::string_view>& fields, const LineLocation& line) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TargetColumn& column = columns_[i];
    const std::string_view text = trimmed(fields[column.field]);
    if (text.empty()) refuse(column, text, line);
    if (kind_ == TargetKind::words) {
      add_word(column, text, line);
    } else if (const std::optional<double> value = decimal_in(text)) {
      values_.push_back(static_cast<float>(*value));
      ranges_[i].add(*value);
    } else if (kind_ == TargetKind::automatic && values_.empty() && !exceeds_float32(text)) {
      return false;
    } else {
      refuse(column, text, line);
    }
  }
  return true;
}

void CsvTarget::add_word(const TargetColumn& column, std::string_view text, const LineLocation& line) {
  if (!column.categorical && !has_class(column, text)) {
    const bool number = number_in(text).has_value();
    if (!number && (is_date(text) || is_mark(text) || exceeds_float32(text))) refuse(column, text, line);
    if (!number && first_word_.empty()) {
      first_word_ = text;
      first_line_ = line;
    }
    has_number_ = has_number_ || number;
    if (has_number_ && !first_word_.empty()) refuse(column, first_word_, first_line_);
  }
  auto found = known_.find(text);
  if (found == known_.end()) {
    require_utf8_text(*line.path, format("line {}, column '{}'", line.line, columns_[0].name), text);
    found = known_.emplace(text, Word{static_cast<std::int32_t>(known_.size()), line}).first;
  }
  line_words_.push_back(found->second.number);
}

void CsvTarget::refuse_two_spellings() const {
  std::vector<const std::pair<const std::string, Word>*> words(known_.size());  // in order of appearance
  for (const auto& each : known_) words[static_cast<std::size_t>(each.second.number)] = &each;
  std::map<std::string, const std::pair<const std::string, Word>*> numbers;  // by the spelling as a whole number
  for (const auto* each : words) {
    const std::string whole = whole_spelling(each->first);
    if (whole.empty()) continue;
    const auto [same, is_new] = numbers.emplace(whole, each);
    if (is_new) continue;
    const auto& [first, first_word] = *same->second;
    const LineLocation &line = each->second.line, &first_line = first_word.line;
    data_error(*line.path,
               format("line {}, column '{}': the classes '{}' and '{}' (line {}{}) are the same number", line.line,
                      columns_[0].name, each->first.substr(0, 40), first.substr(0, 40), first_line.line,
                      *first_line.path == *line.path ? "" : " of " + *first_line.path),
               "write a class in the same way in all lines; if they are two classes, use names that are not numbers");
  }
}

// Returns the class number of each line: the position of its word in the training split's class names or, for the
// training split itself, in bytewise order.
std::vector<std::int32_t> CsvTarget::number_words(const DeclaredInfo& declared,
                                                  std::vector<std::string>& class_names) const {
  for (const auto& [text, word] : known_) class_names.push_back(text);
  if (declared.training) {
    class_names = declared.training->class_names;
  } else {
    refuse_two_spellings();
  }
  std::vector<std::int32_t> classes(known_.size());
  for (const auto& [text, word] : known_) {
    const auto found = std::lower_bound(class_names.begin(), class_names.end(), text);
    if (found == class_names.end() || *found != text) {
      const std::string whole = whole_spelling(text);
      const auto same = std::find_if(class_names.begin(), class_names.end(), [&](const std::string& name) {
        return !whole.empty() && whole_spelling(name) == whole;
      });
      data_error(*word.line.path,
                 format("line {}, column '{}': has the class '{}', which is not in the training split", word.line.line,
                        columns_[0].name, text.substr(0, 40)),
                 same != class_names.end()
                     ? format("write it as '{}', as in the training split", *same)
                     : "correct the class, leave out the line, or train with lines of this class");
    }
    classes[static_cast<std::size_t>(word.number)] = static_cast<std::int32_t>(found - class_names.begin());
  }
  std::vector<std::int32_t> labels;
  for (const std::int32_t number : line_words_) labels.push_back(classes[static_cast<std::size_t>(number)]);
  return labels;
}

// Refuses whole numbers that are to be classes and cannot be, as array_dataset() does, but with their lines.
void CsvTarget::check_class_numbers(const DeclaredInfo& declared, const TableRows& rows) const {
  const std::optional<std::int64_t> classes = declared.known_classes();
  if (classes == 0 || (!classes && declared.use.target_values) || declared.targets_may_miss()) return;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto number = static_cast<std::int64_t>(values_[i]);
    if ((number >= 0 && number < classes.value_or(number + 1)) || number == declared.use.ignored) continue;
    const auto [path, line] = rows.location_of(static_cast<std::int64_t>(i));
    const std::string what = format("line {}, column '{}': the class {}", line, columns_[0].name, number);
    if (declared.training && number >= 0) {
      data_error(path,
                 format("{} is not in the training split, which has {}, from 0", what, counted(*classes, "class")),
                 "correct the class, leave out the line, or train with lines of this class");
    }
    data_error(path, classes ? format("{} is not in 0 to {}", what, *classes - 1) : what + " is negative",
               number >= 0
                   ? "set the right number of `classes`"
                   : format("number the classes from 0, or set `categorical: [{}]`, so that each number is the name of "
                            "a class",
                            columns_[0].name));
  }
}

CsvTarget::Targets CsvTarget::targets_of(const DeclaredInfo& declared, const TableRows& rows) {
  const std::int64_t each = std::ssize(columns_), lines = rows.size();
  if (kind_ == TargetKind::words) {
    if (declared.known_classes() == 0) {
      data_error(path_, format("column '{}' holds words, but values are expected", columns_[0].name),
                 "set another target, or leave `classes: 0` out: words are classes");
    }
    std::vector<std::string> class_names;
    std::vector<std::int32_t> labels = number_words(declared, class_names);
    return {{path_, {lines}, ElementType::int32, false, bytes_of(std::move(labels))}, std::move(class_names)};
  }
  if (each == 1 && are_whole(values_)) {
    check_class_numbers(declared, rows);
    std::vector<std::int32_t> labels(values_.begin(), values_.end());
    return {{path_, {lines}, ElementType::int32, false, bytes_of(std::move(labels))}, {}};
  }
  return {{path_, {lines, each}, ElementType::float32, false, bytes_of(std::move(values_))}, {}};
}

std::string CsvTarget::warning() const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::string found = ranges_[i].warning(path_, columns_[i].name);
    if (!found.empty()) return found;
  }
  return "";
}

std::shared_ptr<const Dataset> CsvTarget::with_samples(Array x, std::optional<Array> weights,
                                                       const DeclaredInfo& declared, const TableRows& rows) {
  Targets targets = targets_of(declared, rows);
  return array_dataset(std::move(x), std::move(targets.values), declared, std::move(targets.class_names),
                       std::move(weights));
}

std::shared_ptr<const Dataset> CsvTarget::alone(const DeclaredInfo& declared, const TableRows& rows) {
  Targets targets = targets_of(declared, rows);
  return array_targets(std::move(targets.values), declared, {}, std::move(targets.class_names));
}

}  // namespace trainctl
