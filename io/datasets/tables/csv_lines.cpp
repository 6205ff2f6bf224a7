// Cuts lines into fields.
#include "io/datasets/tables/csv_lines.h"

#include <algorithm>

#include "core/base/format.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// Each column takes some hundred bytes beside its values.
constexpr std::size_t most_fields = 1'000'000;

CsvLines::CsvLines(const std::string& path, char delimiter)
    : path_(path), delimiter_(delimiter), bytes_(open_data(path)) {
  if (is_gzip(bytes_)) data_error(path, "is compressed", "unpack it with gunzip");
  bytes_ = bytes_.loaded();
  rest_ = {reinterpret_cast<const char*>(bytes_.in_memory()), static_cast<std::size_t>(bytes_.size())};
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

bool CsvLines::next(std::vector<std::string_view>& fields) {
  fields.clear();
  quoted_.clear();
  while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) take_line_end();
  if (rest_.empty()) return false;
  line_ = next_line_;
  for (;;) {
    if (fields.size() == most_fields) data_error(path_, format("line {} has more than {} fields", line_, most_fields));
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

std::string_view CsvLines::take_plain() {
  const char ends[] = {delimiter_, '\n', '\r'};
  const std::size_t end = std::min(rest_.find_first_of({ends, sizeof ends}), rest_.size());
  const std::string_view field = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return field;
}

std::string_view CsvLines::take_quoted() {
  std::string& field = quoted_.emplace_back();
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      data_error(path_, format("line {}: a quotation mark is not closed", line_), "close it, or double it in the text");
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

void CsvLines::take_line_end() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
  ++next_line_;
}

}  // namespace trainctl
