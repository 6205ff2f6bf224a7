// Standardizes texts, and counts and numbers their words.
#include "io/datasets/text/text_vectorization.h"

#include <algorithm>

namespace trainctl {
namespace {

constexpr std::string_view unknown_word = "[UNK]";
constexpr std::int32_t unknown_number = 1, first_word_number = 2;

// Keras' pattern !"#$%&()*+,-./:;<=>?@[\]^_`{|}~' has all punctuation of ASCII.
bool is_punctuation(char byte) {
  return (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') || (byte >= '[' && byte <= '`') ||
         (byte >= '{' && byte <= '~');
}

bool is_word_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

}  // namespace

std::string standardized(std::string_view text, Standardize how) {
  const bool lower = how == Standardize::lower || how == Standardize::lower_and_strip_punctuation;
  const bool strip = how == Standardize::strip_punctuation || how == Standardize::lower_and_strip_punctuation;
  std::string changed;
  changed.reserve(text.size());
  for (const char byte : text) {
    if (strip && is_punctuation(byte)) continue;
    changed += lower && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  }
  return changed;
}

void for_each_word(std::string_view text, const std::function<void(std::string_view word)>& visit) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && !is_word_space(text[end])) ++end;
    if (end > at) visit(text.substr(at, end - at));
    at = end + 1;
  }
}

WordVocabulary::WordVocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  numbers_.reserve(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    numbers_.emplace(words_[i], static_cast<std::int32_t>(i) + first_word_number);
  }
}

std::int32_t WordVocabulary::number_of(std::string_view word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? unknown_number : found->second;
}

void WordCounter::add(std::string_view text) {
  for_each_word(text, [this](std::string_view word) {
    const auto found = counts_.find(word);
    found != counts_.end() ? ++found->second : counts_.emplace(word, 1).first->second;
  });
}

WordVocabulary WordCounter::vocabulary(std::optional<std::int64_t> max_tokens) const {
  std::vector<std::pair<std::int64_t, std::string_view>> counted;
  for (const auto& [word, count] : counts_) {
    if (word != unknown_word) counted.emplace_back(count, word);
  }
  std::sort(counted.begin(), counted.end(), std::greater<>());
  if (max_tokens) counted.resize(std::min(counted.size(), static_cast<std::size_t>(*max_tokens - first_word_number)));
  std::vector<std::string> words;
  for (const auto& [count, word] : counted) words.emplace_back(word);
  return WordVocabulary(std::move(words));
}

}  // namespace trainctl
