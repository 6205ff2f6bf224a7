// Reads and writes measurements as text.
#include "parallel/plan/measured/measurements.h"

#include <cmath>
#include <cstdlib>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr const char* file_kind = "measurements";

// Throws Error{data} if the text is not a list of finite numbers.
std::vector<double> read_numbers(const std::string& text) {
  std::vector<double> numbers;
  for (const char* at = text.c_str(); *at != 0;) {
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    if (end == at || !std::isfinite(numbers.back())) {
      throw Error(ErrorKind::data, format("'{}' is not a list of numbers", text));
    }
    at = *end == ' ' ? end + 1 : end;
  }
  return numbers;
}

}  // namespace

const std::vector<double>* Measurements::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Measurements::record(const std::string& key, std::vector<double> values) { values_[key] = std::move(values); }

void Measurements::add(const Measurements& other) {
  for (const auto& [key, values] : other.values_) values_[key] = values;
}

void Measurements::complete(const Measurements& other, double widest) {
  for (const auto& [key, values] : other.values_) {
    const std::vector<double>* own = find(key);
    if (own == nullptr || own->size() != values.size() || own->empty() || own->back() > widest) values_[key] = values;
  }
}

std::string Measurements::file_text() const {
  std::string lines;
  for (const auto& [key, values] : values_) {
    lines += key + '\t';
    for (const double value : values) lines += format("{}{}", lines.back() == '\t' ? "" : " ", value);
    lines += '\n';
  }
  return with_checksum(file_kind, lines);
}

void Measurements::add_file(std::string_view text) {
  Measurements read;
  std::string_view lines = checked_lines(file_kind, text);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) throw Error(ErrorKind::data, format("cannot read the line '{}'", line));
    read.record(std::string(line.substr(0, tab)), read_numbers(std::string(line.substr(tab + 1))));
  }
  add(read);
}

}  // namespace trainctl
