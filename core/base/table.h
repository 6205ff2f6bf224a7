// Tables of text for a terminal, with columns as wide as their widest cell, and numbers formatted for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The lines of the table; cells are escaped by terminal_word().
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Returns a number with commas between groups of three digits, such as "1,234,567".
std::string grouped(long long number);
// Returns a count with its noun, such as "1 epoch", "1,234 steps" or "2 classes". The caller passes the noun in the
// singular.
std::string counted(long long count, std::string_view noun);
// Returns text such as "30.1 MFLOP".
std::string flops_text(double flops);
// Returns text such as "12.3 us", "1.24 ms" or "3.02 s".
std::string seconds_text(double seconds);
// Returns text such as "1.24 ms", "12 s", "45 min", "3 h 20 min", "4 d 5 h" or "100 d".
std::string long_time_text(double seconds);

}  // namespace trainctl
