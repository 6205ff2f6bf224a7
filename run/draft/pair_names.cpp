// Compares the words of names with lists of usual ones.
#include "run/draft/pair_names.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file_names.h"

namespace trainctl {
namespace {

using Words = std::vector<std::string>;
using KnownNames = std::vector<std::pair<std::string_view, std::string_view>>;

// The words of a name in lower case: "DIV2K_train_HR" has div2k, train and hr.
Words name_words(const std::string& name) {
  Words words(1);
  for (const char c : lower_case(name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string joined_words(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "_") + word;
  return text;
}

// The words of a name that another name has not.
Words own_words(const std::string& name, const std::string& other) {
  Words words = name_words(name);
  const Words others = name_words(other);
  std::erase_if(words, [&](const std::string& word) { return std::ranges::find(others, word) != others.end(); });
  return words;
}

bool are_known(const KnownNames& known, const std::string& images, const std::string& targets) {
  const auto has = [&](const std::string& one, const std::string& other) {
    return std::ranges::find(known, std::pair<std::string_view, std::string_view>(one, other)) != known.end();
  };
  return has(joined_words(name_words(images)), joined_words(name_words(targets))) ||
         has(joined_words(own_words(images, targets)), joined_words(own_words(targets, images)));
}

bool has_word_for_targets(const Words& words) {
  static const Words known{"clean", "sharp", "gt", "hr", "high", "target", "targets", "clear", "groundtruth", "truth"};
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return std::ranges::find(known, word) != known.end(); });
}

}  // namespace

bool are_names_of_pairs(const std::string& images, const std::string& targets) {
  static const KnownNames known{
      {"input", "target"},  {"inputs", "targets"}, {"image", "target"},       {"images", "targets"},
      {"input", "output"},  {"inputs", "outputs"}, {"noisy", "clean"},        {"noise", "clean"},
      {"lr", "hr"},         {"lowres", "highres"}, {"low_res", "high_res"},   {"source", "target"},
      {"blurred", "sharp"}, {"blur", "sharp"},     {"input", "gt"},           {"hazy", "clear"},
      {"hazy", "gt"},       {"degraded", "clean"}, {"input", "ground_truth"}, {"gray", "color"},
      {"grey", "color"},    {"gray", "colour"},    {"grey", "colour"}};
  return are_known(known, images, targets);
}

bool are_in_order(const std::string& images, const std::string& targets) {
  static const KnownNames known{{"low", "high"}, {"small", "large"}};
  return are_names_of_pairs(images, targets) || are_known(known, images, targets) ||
         (has_word_for_targets(own_words(targets, images)) && !has_word_for_targets(own_words(images, targets)));
}

}  // namespace trainctl
