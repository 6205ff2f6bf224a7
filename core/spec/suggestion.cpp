// Finds similar names: by the words of other frameworks, by common beginnings and endings, and by edit distance.
#include "core/spec/suggestion.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace trainctl {
namespace {

// A name in lower case and without '-' and '_'.
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '-' && c != '_') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

// Words of PyTorch, Keras and everyday use, folded, and the corresponding names of this program.
constexpr std::array<std::pair<std::string_view, std::string_view>, 47> foreign_words{{
    {"gpu", "cuda"},
    {"linear", "dense"},
    {"fc", "dense"},
    {"fullyconnected", "dense"},
    {"batchnorm", "batch_normalization"},
    {"batchnorm1d", "batch_normalization"},
    {"batchnorm2d", "batch_normalization"},
    {"batchnorm3d", "batch_normalization"},
    {"syncbatchnorm", "batch_normalization"},
    {"layernorm", "layer_normalization"},
    {"groupnorm", "group_normalization"},
    {"maxpool2d", "max_pooling2d"},
    {"maxpool1d", "max_pooling1d"},
    {"maxpool3d", "max_pooling3d"},
    {"avgpool2d", "average_pooling2d"},
    {"avgpool1d", "average_pooling1d"},
    {"avgpool3d", "average_pooling3d"},
    {"globalaveragepool", "global_average_pooling2d"},
    {"globalavgpool2d", "global_average_pooling2d"},
    {"adaptiveavgpool2d", "global_average_pooling2d"},
    {"adaptiveavgpool3d", "global_average_pooling3d"},
    {"adaptivemaxpool2d", "global_max_pooling2d"},
    {"convtranspose1d", "conv1d_transpose"},
    {"convtranspose2d", "conv2d_transpose"},
    {"convtranspose3d", "conv3d_transpose"},
    {"upsample", "upsampling2d"},
    {"dropout2d", "spatial_dropout"},
    {"dropout3d", "spatial_dropout"},
    {"concat", "concatenate"},
    {"cat", "concatenate"},
    {"transpose", "permute"},
    {"relu6", "activation"},
    {"leakyrelu", "leaky_relu"},
    {"selu", "activation"},
    {"gelu", "activation"},
    {"silu", "activation"},
    {"swish", "activation"},
    {"tanh", "activation"},
    {"sigmoid", "activation"},
    {"softplus", "activation"},
    {"crossentropyloss", "sparse_categorical_crossentropy"},
    {"crossentropy", "sparse_categorical_crossentropy"},
    {"nllloss", "sparse_categorical_crossentropy"},
    {"bcewithlogitsloss", "binary_crossentropy"},
    {"mseloss", "mean_squared_error"},
    {"l1loss", "mean_absolute_error"},
    {"iou", "mean_iou"},
}};

// The edit distance that counts a swap of two adjacent characters as one edit. Upper and lower case are equal, and so
// are '-' and '_'.
std::size_t distance(std::string_view a, std::string_view b) {
  auto fold = [](char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const bool same = fold(a[i - 1]) == fold(b[j - 1]);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1])) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

std::string by_foreign_word(std::string_view name, const std::vector<std::string>& names) {
  const std::string word = folded(name);
  const auto found =
      std::find_if(foreign_words.begin(), foreign_words.end(), [&](const auto& pair) { return pair.first == word; });
  if (found == foreign_words.end()) return "";
  const auto known = std::find(names.begin(), names.end(), found->second);
  return known == names.end() ? "" : *known;
}

std::string by_beginning(std::string_view name, const std::vector<std::string>& names) {
  const auto begins = [&](const std::string& candidate) { return !name.empty() && candidate.starts_with(name); };
  if (std::count_if(names.begin(), names.end(), begins) != 1) return "";
  return *std::find_if(names.begin(), names.end(), begins);
}

// The nearest name that differs by at most `max_edits` edits.
std::string by_distance(std::string_view name, const std::vector<std::string>& names, std::size_t max_edits) {
  constexpr std::size_t longest = 100;  // longer names are not misspellings
  if (name.size() > longest) return "";
  std::string best;
  std::size_t best_distance = max_edits + 1;
  for (const std::string& candidate : names) {
    const std::size_t found = distance(name, candidate);
    if (found < best_distance && found < std::max(name.size(), candidate.size())) {  // else no letter is equal
      best_distance = found;
      best = candidate;
    }
  }
  return best;
}

// The longest of `names` that `name` ends with, as whole words: "categorical_accuracy" ends with "accuracy".
std::string by_last_words(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  for (const std::string& candidate : names) {
    if (name.size() > candidate.size() && name.ends_with("_" + candidate) && candidate.size() > best.size())
      best = candidate;
  }
  return best;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t typing_error = 2;
  const std::size_t max_edits = std::max<std::size_t>(1, name.size() / 3);
  std::string found = by_foreign_word(name, names);
  if (found.empty()) found = by_beginning(name, names);
  if (found.empty()) found = by_distance(name, names, std::min(max_edits, typing_error));
  if (found.empty()) found = by_last_words(name, names);
  return found.empty() ? by_distance(name, names, max_edits) : found;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  const std::string near = nearest(name, names);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace trainctl
