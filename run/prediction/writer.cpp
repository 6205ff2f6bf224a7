// Implements the formats of predictions.
#include "run/prediction/writer.h"

#include <limits>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "core/base/utf8.h"
#include "io/datasets/arrays/npy.h"
#include "run/prediction/cells.h"

namespace trainctl {
namespace {

// Writes the samples with their five likeliest classes, in aligned columns.
class TableWriter final : public PredictionWriter {
 public:
  explicit TableWriter(const OutputMeanings& outputs) : outputs_(outputs), table_(columns(outputs)) {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const Answers& answers) override {
    std::vector<std::string> cells{input};
    if (answers.empty()) cells.push_back("cannot be read");
    for (std::size_t i = 0; i < answers.size(); ++i) {
      for (std::string& cell : table_cells(outputs_[i], answers[i])) cells.push_back(std::move(cell));
    }
    cells.resize(columns(outputs_).size());
    table_.add(std::move(cells));
    return "";
  }
  std::string tail() override { return table_.text(); }

 private:
  static std::vector<TextTable::Column> columns(const OutputMeanings& outputs) {
    std::vector<TextTable::Column> all{{"input"}};
    for (const OutputMeaning& meaning : outputs) {
      for (TextTable::Column& column : table_columns(meaning)) all.push_back(std::move(column));
    }
    return all;
  }

  const OutputMeanings& outputs_;
  TextTable table_;
};

// Quotes a field by RFC 4180.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

class CsvWriter final : public PredictionWriter {
 public:
  explicit CsvWriter(const OutputMeanings& outputs) : outputs_(outputs) {}

  std::string head() override {
    std::string line = "input";
    for (const OutputMeaning& meaning : outputs_) {
      for (const std::string& title : csv_titles(meaning)) line += "," + field(title);
    }
    return line + "\n";
  }
  std::string sample(const std::string& input, const Answers& answers) override {
    std::string line = field(input);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (answers.empty()) {
        line += std::string(csv_titles(outputs_[i]).size(), ',');
        continue;
      }
      for (const std::string& text : csv_fields(outputs_[i], answers[i])) line += "," + field(text);
    }
    return line + "\n";
  }

 private:
  const OutputMeanings& outputs_;
};

// A single output's answer is added to the object itself; the answers of several outputs are in "outputs", by name.
Json to_json(const OutputMeanings& outputs, const std::string& input, const Answers& answers) {
  Json json{{"input", valid_utf8(input)}};  // file names may be other bytes
  if (answers.empty()) {
    json["error"] = "cannot be read";
    return json;
  }
  if (outputs.size() == 1) {
    json.update(answer_json(outputs[0], answers[0]));
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      json["outputs"][outputs[i].output] = answer_json(outputs[i], answers[i]);
    }
  }
  return json;
}

class JsonLinesWriter final : public PredictionWriter {
 public:
  explicit JsonLinesWriter(const OutputMeanings& outputs) : outputs_(outputs) {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const Answers& answers) override {
    return json_line(to_json(outputs_, input, answers));
  }

 private:
  const OutputMeanings& outputs_;
};

// Writes one document after all samples, so that an error before the end is printed alone.
class JsonWriter final : public PredictionWriter {
 public:
  JsonWriter(const OutputMeanings& outputs, const std::string& checkpoint)
      : outputs_(outputs), document_{{"ok", true}, {"checkpoint", checkpoint}, {"predictions", Json::array()}} {}

  std::string head() override { return ""; }
  std::string sample(const std::string& input, const Answers& answers) override {
    document_["predictions"].push_back(to_json(outputs_, input, answers));
    return "";
  }
  std::string tail() override { return json_line(document_); }

 private:
  const OutputMeanings& outputs_;
  Json document_;
};

// float32 [samples, values of a sample...] as an .npy file; NaN for samples that cannot be read.
class NpyWriter final : public PredictionWriter {
 public:
  NpyWriter(const OutputMeaning& meaning, std::int64_t samples)
      : shape_(meaning.values.with_front(samples)), values_(static_cast<std::size_t>(meaning.values.count())) {}

  std::string head() override { return npy_header("<f4", shape_); }
  std::string sample(const std::string&, const Answers& answers) override {
    const std::vector<float> none(values_, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float>& row = answers.empty() ? none : answers[0];
    return {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)};
  }

 private:
  Shape shape_;
  std::size_t values_;
};

}  // namespace

std::optional<PredictionFormat> format_named(const std::string& name) {
  if (name == "table") return PredictionFormat::table;
  if (name == "csv") return PredictionFormat::csv;
  if (name == "jsonl") return PredictionFormat::json_lines;
  if (name == "npy") return PredictionFormat::npy;
  return {};
}

std::unique_ptr<PredictionWriter> make_writer(PredictionFormat format, const OutputMeanings& outputs,
                                              std::int64_t samples, const std::string& checkpoint) {
  switch (format) {
    case PredictionFormat::table:
      return std::make_unique<TableWriter>(outputs);
    case PredictionFormat::csv:
      return std::make_unique<CsvWriter>(outputs);
    case PredictionFormat::json_lines:
      return std::make_unique<JsonLinesWriter>(outputs);
    case PredictionFormat::json:
      return std::make_unique<JsonWriter>(outputs, checkpoint);
    case PredictionFormat::npy:
      return std::make_unique<NpyWriter>(outputs[0], samples);
  }
  return nullptr;
}

}  // namespace trainctl
