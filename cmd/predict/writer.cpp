// The formats of predictions.
#include "cmd/predict/writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

// The places of the largest values, the largest first.
std::vector<std::size_t> largest_of(const std::vector<float>& values, std::size_t most) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  places.resize(std::min(places.size(), most));
  return places;
}

bool has_classes(const OutputMeaning& meaning) { return meaning.kind != OutputMeaning::Kind::values; }

// The class with the largest probability.
const std::string& class_of(const OutputMeaning& meaning, const std::vector<float>& values) {
  return meaning.names[largest_of(values, 1)[0]];
}

// The samples with their five likeliest classes, in columns as wide as they need.
class TableWriter final : public PredictionWriter {
 public:
  explicit TableWriter(const OutputMeaning& meaning) : meaning_(meaning), table_(columns(meaning)) {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const std::vector<float>& values) override {
    std::vector<std::string> cells{input};
    if (values.empty()) {
      cells.push_back("cannot be read");
    } else if (has_classes(meaning_)) {
      cells.push_back(class_of(meaning_, values));
      std::string likeliest;
      for (const std::size_t k : largest_of(values, most)) {
        likeliest += format("{}{} {:.4f}", likeliest.empty() ? "" : "  ", meaning_.names[k], values[k]);
      }
      cells.push_back(likeliest);
    } else {
      for (const float value : values) cells.push_back(format("{:.6g}", value));
    }
    cells.resize(columns(meaning_).size());
    table_.add(std::move(cells));
    return "";
  }
  std::string tail() override { return table_.text(); }

 private:
  static constexpr std::size_t most = 5;

  static std::vector<TextTable::Column> columns(const OutputMeaning& meaning) {
    if (has_classes(meaning)) return {{"input"}, {"prediction"}, {"probabilities"}};
    std::vector<TextTable::Column> all{{"input"}};
    for (const std::string& name : meaning.names) all.push_back({name, TextTable::Align::right});
    return all;
  }

  const OutputMeaning& meaning_;
  TextTable table_;
};

// A field by RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

class CsvWriter final : public PredictionWriter {
 public:
  explicit CsvWriter(const OutputMeaning& meaning) : meaning_(meaning) {}

  std::string head() override {
    std::string line = has_classes(meaning_) ? "input,prediction" : "input";
    for (const std::string& name : meaning_.names) line += "," + field(name);
    return line + "\n";
  }
  std::string sample(const std::string& input, const std::vector<float>& values) override {
    std::string line = field(input);
    if (has_classes(meaning_)) line += "," + (values.empty() ? "" : field(class_of(meaning_, values)));
    for (std::size_t k = 0; k < meaning_.names.size(); ++k) line += values.empty() ? "," : format(",{}", values[k]);
    return line + "\n";
  }

 private:
  const OutputMeaning& meaning_;
};

Json to_json(const OutputMeaning& meaning, const std::string& input, const std::vector<float>& values) {
  Json json{{"input", input}};
  if (values.empty()) {
    json["error"] = "cannot be read";
    return json;
  }
  if (has_classes(meaning)) json["prediction"] = class_of(meaning, values);
  Json all = Json::object();
  for (std::size_t k = 0; k < values.size(); ++k) all[meaning.names[k]] = json_number(values[k]);
  json[has_classes(meaning) ? "probabilities" : "values"] = std::move(all);
  return json;
}

class JsonLinesWriter final : public PredictionWriter {
 public:
  explicit JsonLinesWriter(const OutputMeaning& meaning) : meaning_(meaning) {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const std::vector<float>& values) override {
    return json_line(to_json(meaning_, input, values));
  }

 private:
  const OutputMeaning& meaning_;
};

// One document, which is written when all samples are in it: an error before that stands alone.
class JsonWriter final : public PredictionWriter {
 public:
  JsonWriter(const OutputMeaning& meaning, const std::string& checkpoint)
      : meaning_(meaning), document_{{"ok", true}, {"checkpoint", checkpoint}, {"predictions", Json::array()}} {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const std::vector<float>& values) override {
    document_["predictions"].push_back(to_json(meaning_, input, values));
    return "";
  }
  std::string tail() override { return json_line(document_); }

 private:
  const OutputMeaning& meaning_;
  Json document_;
};

// float32 [samples, values], version 1.0 of the format; NaN for samples that cannot be read.
class NpyWriter final : public PredictionWriter {
 public:
  NpyWriter(const OutputMeaning& meaning, std::int64_t samples) : values_(meaning.names.size()), samples_(samples) {}

  std::string head() override {
    std::string text = format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", samples_, values_);
    constexpr std::size_t before = 10, alignment = 64;
    text.resize((before + text.size()) / alignment * alignment + alignment - before, ' ');
    text.back() = '\n';
    const auto size = static_cast<std::uint16_t>(text.size());
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(size & 255) + static_cast<char>(size >> 8) + text;
  }
  std::string sample(const std::string&, const std::vector<float>& values) override {
    const std::vector<float> none(values_, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float>& row = values.empty() ? none : values;
    return {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)};
  }

 private:
  std::size_t values_;
  std::int64_t samples_;
};

}  // namespace

std::optional<PredictionFormat> format_named(const std::string& name) {
  if (name == "table") return PredictionFormat::table;
  if (name == "csv") return PredictionFormat::csv;
  if (name == "jsonl") return PredictionFormat::json_lines;
  if (name == "npy") return PredictionFormat::npy;
  return {};
}

std::unique_ptr<PredictionWriter> make_writer(PredictionFormat format, const OutputMeaning& meaning,
                                              std::int64_t samples, const std::string& checkpoint) {
  switch (format) {
    case PredictionFormat::table:
      return std::make_unique<TableWriter>(meaning);
    case PredictionFormat::csv:
      return std::make_unique<CsvWriter>(meaning);
    case PredictionFormat::json_lines:
      return std::make_unique<JsonLinesWriter>(meaning);
    case PredictionFormat::json:
      return std::make_unique<JsonWriter>(meaning, checkpoint);
    case PredictionFormat::npy:
      return std::make_unique<NpyWriter>(meaning, samples);
  }
  return nullptr;
}

}  // namespace trainctl
