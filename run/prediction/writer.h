// Writes predictions as text or bytes: a table for people, CSV, JSON lines, JSON, or a NumPy array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/prediction/meaning.h"

namespace trainctl {

enum class PredictionFormat { table, csv, json_lines, json, npy };

// The format of this name: "csv", "jsonl", "npy" or "table"; json has none, since --json asks for it.
std::optional<PredictionFormat> format_named(const std::string& name);

// The meanings of all outputs.
using OutputMeanings = std::vector<OutputMeaning>;
// The results of OutputMeaning::values_of() for a sample, by output. Empty if the sample could not be read.
using Answers = std::vector<std::vector<float>>;

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;

  // The text before all samples.
  virtual std::string head() = 0;
  // The text of the next sample.
  virtual std::string sample(const std::string& input, const Answers& answers) = 0;
  // The text after all samples.
  virtual std::string tail() { return ""; }
};

// Creates a writer for `samples` samples; `outputs` must outlive it. `checkpoint`: the path that a JSON document
// contains. npy supports one output only.
std::unique_ptr<PredictionWriter> make_writer(PredictionFormat format, const OutputMeanings& outputs,
                                              std::int64_t samples, const std::string& checkpoint);

}  // namespace trainctl
