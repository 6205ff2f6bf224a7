// Predictions as text or bytes: a table for people, CSV, JSON lines, or an array of NumPy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/prediction/meaning.h"

namespace trainctl {

enum class PredictionFormat { table, csv, json_lines, json, npy };

// "csv", "jsonl", "npy", "table"; json has no name, since --json asks for it.
std::optional<PredictionFormat> format_named(const std::string& name);

// By output: of an only one, or of several.
using OutputMeanings = std::vector<OutputMeaning>;
// Of a sample, by output: what OutputMeaning::values_of() gives. Empty where the sample could not be read.
using Answers = std::vector<std::vector<float>>;

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;

  // What stands before all samples.
  virtual std::string head() = 0;
  // Of the next sample.
  virtual std::string sample(const std::string& input, const Answers& answers) = 0;
  // What stands behind all.
  virtual std::string tail() { return ""; }
};

// For so many samples; `outputs` must outlive it. `checkpoint` is that of which the document tells. npy is for
// one output.
std::unique_ptr<PredictionWriter> make_writer(PredictionFormat format, const OutputMeanings& outputs,
                                              std::int64_t samples, const std::string& checkpoint);

}  // namespace trainctl
