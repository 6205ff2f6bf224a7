// Draws a confusion matrix as a table with shaded cells.
#include "io/report/confusion.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/report/html.h"

namespace trainctl {
namespace {

using namespace html;

constexpr std::size_t max_classes = 25;  // a matrix of more classes is not shown as a table
constexpr std::size_t max_pairs = 10;

std::string count_of(double count) { return grouped(std::llround(count)); }

std::string matrix_table(const Table& matrix, const std::vector<std::string>& names) {
  std::vector<Cell> titles{{"class \\ taken for"}};
  for (const std::string& name : names) titles.push_back(number_cell(name));
  titles.push_back(number_cell("right"));
  std::vector<std::vector<Cell>> rows;
  for (std::size_t actual = 0; actual < matrix.size(); ++actual) {
    double all = 0;
    for (const double count : matrix[actual]) all += count;
    std::vector<Cell> row{text_cell(names[actual])};
    for (const double count : matrix[actual]) {
      row.push_back(number_cell(count == 0 ? "" : count_of(count)));
      if (count > 0) row.back().style = format("background: rgba(var(--heat), {:.2f})", 0.08 + 0.7 * count / all);
    }
    row.push_back(number_cell(all > 0 ? format("{:.1f} %", 100 * matrix[actual][actual] / all) : ""));
    rows.push_back(std::move(row));
  }
  return table(titles, rows);
}

std::string confused_pairs(const Table& matrix, const std::vector<std::string>& names) {
  struct Pair {
    double count = 0;
    std::size_t actual = 0, taken_for = 0;
  };
  std::vector<Pair> pairs;
  for (std::size_t actual = 0; actual < matrix.size(); ++actual) {
    for (std::size_t taken_for = 0; taken_for < matrix[actual].size(); ++taken_for) {
      const double count = matrix[actual][taken_for];
      if (actual != taken_for && count > 0) pairs.push_back({count, actual, taken_for});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > max_pairs) pairs.resize(max_pairs);
  std::vector<std::vector<Cell>> rows;
  for (const Pair& pair : pairs) {
    rows.push_back(
        {text_cell(names[pair.actual]), text_cell(names[pair.taken_for]), number_cell(count_of(pair.count))});
  }
  if (rows.empty()) return paragraph("No sample was misclassified.");
  return paragraph("Most often confused:") + table({{"class"}, {"taken for"}, {"samples", true}}, rows);
}

}  // namespace

std::string confusion_of(const Table& matrix, const std::vector<std::string>& names) {
  std::vector<std::string> shown = names;
  if (shown.size() != matrix.size()) {
    shown.clear();
    for (std::size_t i = 0; i < matrix.size(); ++i) shown.push_back(std::to_string(i));
  }
  return (matrix.size() <= max_classes ? matrix_table(matrix, shown) : "") + confused_pairs(matrix, shown);
}

}  // namespace trainctl
