// Splits lines into fields.
#include "io/datasets/tables/csv_lines.h"

#include <algorithm>
#include <filesystem>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/dataset.h"
#include "io/datasets/text_encoding.h"

namespace trainctl {
namespace {

// The remedy for a compressed table: a command that writes the table under its name without the ending .gz.
std::string unpacking_of(const std::string& path) {
  const std::filesystem::path file(path);
  const bool named = has_ending(path, {".gz"});
  const std::string unpacked = named ? file.stem().string() : name_of_copy(path, "unpacked");
  return format("unpack it: gunzip -c {} > {}", shell_word(path), shell_word(unpacked));
}

}  // namespace

// Each column takes some hundred bytes in addition to its values.
constexpr std::size_t max_fields = 1'000'000;

CsvLines::CsvLines(const std::string& path, char delimiter)
    : path_(path), delimiter_(delimiter), bytes_(open_data(path)) {
  if (is_gzip(bytes_)) data_error(path, "is compressed", unpacking_of(path));
  bytes_ = bytes_.loaded();
  rest_ = {reinterpret_cast<const char*>(bytes_.in_memory()), static_cast<std::size_t>(bytes_.size())};
  refuse_other_than_text(path, rest_);
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

bool CsvLines::next(std::vector<std::string_view>& fields) {
  fields.clear();
  quoted_.clear();
  while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) skip_line_end();
  if (rest_.empty()) return false;
  line_ = next_line_;
  for (;;) {
    if (fields.size() == max_fields) data_error(path_, format("line {} has more than {} fields", line_, max_fields));
    fields.push_back(rest_[0] == '"' ? read_quoted() : read_plain());
    last_line_ = next_line_;
    if (rest_.empty()) return true;
    if (rest_[0] != delimiter_) {
      skip_line_end();
      return true;
    }
    rest_.remove_prefix(1);
    if (rest_.empty() || rest_[0] == '\n' || rest_[0] == '\r') {  // an empty field at the end of the line
      fields.push_back({});
      skip_line_end();
      return true;
    }
  }
}

std::string_view CsvLines::read_plain() {
  const char ends[] = {delimiter_, '\n', '\r'};
  const std::size_t end = std::min(rest_.find_first_of({ends, sizeof ends}), rest_.size());
  const std::string_view field = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return field;
}

std::string_view CsvLines::read_quoted() {
  std::string& field = quoted_.emplace_back();
  rest_.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      data_error(path_, format("line {}: a quotation mark is not closed", line_),
                 "close it, or double it if it belongs to the text");
    }
    next_line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
    field += rest_.substr(0, quote);
    rest_.remove_prefix(quote + 1);
    if (!rest_.starts_with('"')) break;
    field += '"';
    rest_.remove_prefix(1);
  }
  if (!rest_.empty() && rest_[0] != delimiter_ && rest_[0] != '\n' && rest_[0] != '\r') {
    const bool other = std::string_view(";\t|,").find(rest_[0]) != std::string_view::npos;
    data_error(path_, format("line {}: text follows a closing quotation mark", line_),
               other ? format("set `delimiter: \"{}\"`", rest_[0] == '\t' ? "\\t" : std::string(1, rest_[0]))
                     : "double quotation marks within the text");
  }
  return field;
}

void CsvLines::skip_line_end() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
  ++next_line_;
}

}  // namespace trainctl
