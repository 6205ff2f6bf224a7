// Builds the tables and the JSON object of an evaluation.
#include "run/evaluation/evaluation.h"

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/metrics/class_scores.h"

namespace trainctl {
namespace {

ClassNames names_of(const Table& counts, const ClassNames& names) {
  if (names.size() == counts.size()) return names;
  ClassNames numbers;
  for (std::size_t k = 0; k < counts.size(); ++k) numbers.push_back(std::to_string(k));
  return numbers;
}

// A confusion matrix: a row for each target class, a column for each predicted class.
std::string counts_text(const std::string& name, const Table& counts, const ClassNames& classes) {
  std::vector<TextTable::Column> columns{{name}};
  for (const std::string& predicted : classes) columns.push_back({predicted, TextTable::Align::right});
  TextTable table(columns);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::vector<std::string> cells{classes[k]};
    for (const double count : counts[k]) cells.push_back(format("{:.6g}", count));
    table.add(std::move(cells));
  }
  return table.text() + "rows are targets, columns are predictions\n";
}

std::string scores_text(const Table& counts, const ClassNames& classes) {
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"class"}, {"precision", right}, {"recall", right}, {"f1_score", right}, {"samples", right}});
  const std::vector<ClassScores> scores = class_scores(counts);
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const ClassScores& s = scores[k];
    table.add({classes[k], format("{:.4f}", s.precision), format("{:.4f}", s.recall), format("{:.4f}", s.f1_score),
               format("{:.6g}", s.samples)});
  }
  return table.text();
}

Json scores_json(const Table& counts, const ClassNames& classes) {
  Json json = Json::array();
  const std::vector<ClassScores> scores = class_scores(counts);
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const ClassScores& s = scores[k];
    json.push_back({{"class", classes[k]},
                    {"precision", s.precision},
                    {"recall", s.recall},
                    {"f1_score", s.f1_score},
                    {"samples", s.samples}});
  }
  return json;
}

}  // namespace

std::string to_text(const Evaluation& found, const ClassNames& names) {
  std::string text;
  for (const auto& [name, value] : found.values) text += format("{} {:.6g}\n", name, value);
  for (const auto& [name, counts] : found.tables) {
    const ClassNames classes = names_of(counts, names);
    text += "\n" + counts_text(name, counts, classes) + "\n" + scores_text(counts, classes);
  }
  return text;
}

Json to_json(const Evaluation& found, const ClassNames& names) {
  Json json = json_numbers(found.values);
  Json classes = Json::object();
  for (const auto& [name, counts] : found.tables) {
    json[name] = counts;
    classes[name] = scores_json(counts, names_of(counts, names));
  }
  if (!classes.empty()) json["classes"] = std::move(classes);
  return json;
}

}  // namespace trainctl
