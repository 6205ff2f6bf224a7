// Formats an output's answer for a sample in columns: for classes the likeliest one and the probabilities of all, for
// an image's pixels the share of each class, for a sequence the class of each step or, for the loss ctc, the decoded
// sequence, for values the values, and for images of values their mean and bounds.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "run/prediction/meaning.h"

namespace trainctl {

// The columns of a CSV file, and a sample's fields, without quotes. `values`: from OutputMeaning::values_of().
std::vector<std::string> csv_titles(const OutputMeaning& meaning);
std::vector<std::string> csv_fields(const OutputMeaning& meaning, const std::vector<float>& values);

// The columns of a table for people, and a sample's cells, with at most the five likeliest classes.
std::vector<TextTable::Column> table_columns(const OutputMeaning& meaning);
std::vector<std::string> table_cells(const OutputMeaning& meaning, const std::vector<float>& values);

// A JSON object: prediction and probabilities, shares, predictions, values, or mean, min and max.
Json answer_json(const OutputMeaning& meaning, const std::vector<float>& values);

// The number of the likeliest class of each position.
std::vector<std::size_t> likeliest_classes(const OutputMeaning& meaning, const std::vector<float>& values);

}  // namespace trainctl
