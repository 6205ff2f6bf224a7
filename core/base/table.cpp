// Formats tables as text, and numbers for people.
#include "core/base/table.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/base/format.h"
#include "core/base/terminal_text.h"

namespace trainctl {

std::string TextTable::text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(terminal_word(column.title));
  for (const auto& row : rows_) {
    std::transform(row.begin(), row.end(), std::back_inserter(lines.emplace_back()), terminal_word);
  }
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string gap = c == 0 ? "" : "  ";
      row += gap + (columns_[c].align == Align::right ? format("{:>{}}", line[c], widths[c])
                                                      : format("{:<{}}", line[c], widths[c]));
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string grouped(long long number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string counted(long long count, std::string_view noun) {
  const bool takes_es = noun.ends_with('s') || noun.ends_with("tch") || noun.ends_with("sh") || noun.ends_with('x');
  return grouped(count) + " " + std::string(noun) + (count == 1 ? "" : takes_es ? "es" : "s");
}

std::string flops_text(double flops) {
  static constexpr std::array units = {"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP"};
  std::size_t unit = 0;
  for (; flops >= 1000 && unit + 1 < units.size(); ++unit) flops /= 1000;
  return unit == 0 ? format("{:.0f} {}", flops, units[unit]) : format("{:.4g} {}", flops, units[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return format("{:.3g} ms", seconds * 1e3);
  return format("{:.3g} s", seconds);
}

std::string long_time_text(double seconds) {
  if (seconds < 120) return seconds_text(seconds);
  const auto minutes = static_cast<long long>(seconds / 60 + 0.5);
  if (minutes < 120) return format("{} min", minutes);
  if (minutes < 48 * 60) return format("{} h {} min", minutes / 60, minutes % 60);
  const long long hours = minutes / 60;
  return hours % 24 == 0 ? format("{} d", hours / 24) : format("{} d {} h", hours / 24, hours % 24);
}

}  // namespace trainctl
