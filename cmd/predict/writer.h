// Predictions as text or bytes: a table for people, CSV, JSON lines, or an array of NumPy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/predict/meaning.h"

namespace trainctl {

enum class PredictionFormat { table, csv, json_lines, json, npy };

// "csv", "jsonl", "npy", "table"; json has no name, since --json asks for it.
std::optional<PredictionFormat> format_named(const std::string& name);

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;

  // What stands before all samples.
  virtual std::string head() = 0;
  // Of the next sample, by meaning.names; `values` is empty where it could not be read.
  virtual std::string sample(const std::string& input, const std::vector<float>& values) = 0;
  // What stands behind all.
  virtual std::string tail() { return ""; }
};

// For so many samples. `checkpoint` is that of which the document tells.
std::unique_ptr<PredictionWriter> make_writer(PredictionFormat format, const OutputMeaning& meaning,
                                              std::int64_t samples, const std::string& checkpoint);

}  // namespace trainctl
