// Formats answers in columns.
#include "run/prediction/cells.h"

#include <algorithm>
#include <numeric>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/graph/ops/losses/ctc.h"

namespace trainctl {
namespace {

// The indices of the `count` largest values, the largest first.
std::vector<std::size_t> largest_of(const std::vector<float>& values, std::size_t count) {
  std::vector<std::size_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  indices.resize(std::min(indices.size(), count));
  return indices;
}

// The share of the positions at which each class is the likeliest.
std::vector<float> shares_of(const OutputMeaning& meaning, const std::vector<float>& values) {
  std::vector<float> shares(meaning.names.size());
  const std::vector<std::size_t> classes = likeliest_classes(meaning, values);
  for (const std::size_t k : classes) shares[k] += 1;
  for (float& share : shares) share /= static_cast<float>(classes.size());
  return shares;
}

// The kinds of answers, which differ in their columns.
enum class Form { classes, decoded, sequence, shares, values, image };

Form form_of(const OutputMeaning& meaning) {
  if (!meaning.has_classes()) return meaning.names.empty() ? Form::image : Form::values;
  if (meaning.is_decoded()) return Form::decoded;
  const std::int64_t rank = meaning.positions.rank();
  return rank == 0 ? Form::classes : rank == 1 ? Form::sequence : Form::shares;
}

// The sequence that greedy decoding returns, as in keras.ops.ctc_decode.
std::string decoded_text(const OutputMeaning& meaning, const std::vector<float>& values) {
  std::string text;
  int before = -1;
  for (const std::size_t likeliest : likeliest_classes(meaning, values)) {
    const int k = static_cast<int>(likeliest);
    if (ctc_appends(k, before, meaning.mask_index))
      text += (text.empty() ? "" : meaning.separator) + meaning.names[likeliest];
    before = k;
  }
  return text;
}

struct Bounds {
  float mean, least, largest;
};

Bounds bounds_of(const std::vector<float>& values) {
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {static_cast<float>(sum / static_cast<double>(values.size())), *least, *largest};
}

// The classes with the largest numbers: "seven 0.9821  one 0.0113".
std::string largest_text(const OutputMeaning& meaning, const std::vector<float>& of_classes) {
  constexpr std::size_t shown = 5;
  std::string text;
  for (const std::size_t k : largest_of(of_classes, shown)) {
    text += format("{}{} {:.4f}", text.empty() ? "" : "  ", meaning.names[k], of_classes[k]);
  }
  return text;
}

Json named_numbers(const std::vector<std::string>& names, const std::vector<float>& numbers) {
  Json json = Json::object();
  for (std::size_t k = 0; k < numbers.size(); ++k) json[names[k]] = json_number(numbers[k]);
  return json;
}

}  // namespace

std::vector<std::size_t> likeliest_classes(const OutputMeaning& meaning, const std::vector<float>& values) {
  std::vector<std::size_t> classes;
  const auto each = std::ssize(meaning.names);
  for (auto row = values.begin(); row != values.end(); row += each) {
    classes.push_back(static_cast<std::size_t>(std::max_element(row, row + each) - row));
  }
  return classes;
}

std::vector<std::string> csv_titles(const OutputMeaning& meaning) {
  std::vector<std::string> titles;
  const auto add = [&](const std::string& name) { titles.push_back(meaning.prefix() + name); };
  switch (form_of(meaning)) {
    case Form::decoded:
      add("prediction");
      break;
    case Form::classes:
      add("prediction");
      [[fallthrough]];
    case Form::shares:
    case Form::values:
      for (const std::string& name : meaning.names) add(name);
      break;
    case Form::sequence:
      for (std::int64_t step = 0; step < meaning.positions[0]; ++step) add(format("prediction_{}", step));
      break;
    case Form::image:
      for (const char* name : {"mean", "min", "max"}) add(name);
      break;
  }
  return titles;
}

std::vector<std::string> csv_fields(const OutputMeaning& meaning, const std::vector<float>& values) {
  std::vector<std::string> fields;
  const auto add_all = [&](const std::vector<float>& numbers) {
    for (const float number : numbers) fields.push_back(format("{}", number));
  };
  switch (form_of(meaning)) {
    case Form::decoded:
      fields.push_back(decoded_text(meaning, values));
      break;
    case Form::classes:
      fields.push_back(meaning.names[likeliest_classes(meaning, values)[0]]);
      add_all(values);
      break;
    case Form::shares:
      add_all(shares_of(meaning, values));
      break;
    case Form::sequence:
      for (const std::size_t k : likeliest_classes(meaning, values)) fields.push_back(meaning.names[k]);
      break;
    case Form::values:
      add_all(values);
      break;
    case Form::image: {
      const Bounds bounds = bounds_of(values);
      add_all({bounds.mean, bounds.least, bounds.largest});
      break;
    }
  }
  return fields;
}

std::vector<TextTable::Column> table_columns(const OutputMeaning& meaning) {
  const std::string prefix = meaning.prefix();
  switch (form_of(meaning)) {
    case Form::decoded:
      return {{prefix + "prediction"}};
    case Form::classes:
      return {{prefix + "prediction"}, {prefix + "probabilities"}};
    case Form::shares:
      return {{prefix + "shares of pixels"}};
    case Form::sequence:
      return {{prefix + "predictions"}};
    case Form::values:
    case Form::image:
      break;
  }
  std::vector<TextTable::Column> columns;
  for (const std::string& title : csv_titles(meaning)) columns.push_back({title, TextTable::Align::right});
  return columns;
}

std::vector<std::string> table_cells(const OutputMeaning& meaning, const std::vector<float>& values) {
  switch (form_of(meaning)) {
    case Form::decoded:
      return {decoded_text(meaning, values)};
    case Form::classes:
      return {meaning.names[likeliest_classes(meaning, values)[0]], largest_text(meaning, values)};
    case Form::shares:
      return {largest_text(meaning, shares_of(meaning, values))};
    case Form::sequence: {
      std::string text;
      for (const std::string& name : csv_fields(meaning, values)) text += (text.empty() ? "" : " ") + name;
      return {text};
    }
    case Form::values:
    case Form::image:
      break;
  }
  const Bounds bounds = bounds_of(values);
  const bool is_image = form_of(meaning) == Form::image;
  std::vector<std::string> cells;
  for (const float number : is_image ? std::vector{bounds.mean, bounds.least, bounds.largest} : values) {
    cells.push_back(format("{:.6g}", number));
  }
  return cells;
}

Json answer_json(const OutputMeaning& meaning, const std::vector<float>& values) {
  switch (form_of(meaning)) {
    case Form::decoded:
      return {{"prediction", decoded_text(meaning, values)}};
    case Form::classes:
      return {{"prediction", meaning.names[likeliest_classes(meaning, values)[0]]},
              {"probabilities", named_numbers(meaning.names, values)}};
    case Form::shares:
      return {{"shares", named_numbers(meaning.names, shares_of(meaning, values))}};
    case Form::sequence:
      return {{"predictions", csv_fields(meaning, values)}};
    case Form::values:
      return {{"values", named_numbers(meaning.names, values)}};
    case Form::image:
      break;
  }
  const Bounds bounds = bounds_of(values);
  return {{"mean", json_number(bounds.mean)}, {"min", json_number(bounds.least)}, {"max", json_number(bounds.largest)}};
}

}  // namespace trainctl
