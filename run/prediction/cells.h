// What is told of an output's answer for a sample, in columns: of classes the likeliest and the probabilities of all,
// of an image's pixels the share of each class, of a sequence the class of each step, of values themselves, and of
// images of values their mean and bounds.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "run/prediction/meaning.h"

namespace trainctl {

// The columns of a CSV, and a sample's fields, without quotes. `values` is what OutputMeaning::values_of() gives.
std::vector<std::string> csv_titles(const OutputMeaning& meaning);
std::vector<std::string> csv_fields(const OutputMeaning& meaning, const std::vector<float>& values);

// The columns of a table for people, and a sample's cells: of classes no more than the five likeliest.
std::vector<TextTable::Column> table_columns(const OutputMeaning& meaning);
std::vector<std::string> table_cells(const OutputMeaning& meaning, const std::vector<float>& values);

// An object: prediction and probabilities, shares, predictions, values, or mean, min and max.
Json answer_json(const OutputMeaning& meaning, const std::vector<float>& values);

// The number of the likeliest class of each position.
std::vector<std::size_t> likeliest_classes(const OutputMeaning& meaning, const std::vector<float>& values);

}  // namespace trainctl
