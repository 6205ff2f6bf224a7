// Keras' TextVectorization: words by their numbers in a vocabulary that is counted from the training text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainctl {

// How texts are changed before they are split into words.
enum class Standardize { lower_and_strip_punctuation, lower, strip_punctuation, none };

// Returns the text with the letters A to Z in lower case, without ASCII punctuation, or both. Like Keras, leaves all
// other characters as they are.
std::string standardized(std::string_view text, Standardize how);

// Calls visit(word) for each word of a text, which ASCII white space separates.
void for_each_word(std::string_view text, const std::function<void(std::string_view word)>& visit);

// The numbers of words: 0 fills samples, 1 stands for all unknown words, and words follow by how often they occur in
// the training text, the most frequent one first. Of words that occur equally often, the bytewise greater one is first,
// as in Keras.
class WordVocabulary {
 public:
  // `words` are those from number 2 on.
  explicit WordVocabulary(std::vector<std::string> words);

  // The number of numbers: 2 and one for each word.
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()) + 2; }
  const std::vector<std::string>& words() const { return words_; }
  std::int32_t number_of(std::string_view word) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string_view, std::int32_t> numbers_;  // the views are of words_
};

// Counts words and makes the vocabulary of at most `max_tokens` numbers, if that is given.
class WordCounter {
 public:
  void add(std::string_view text);
  WordVocabulary vocabulary(std::optional<std::int64_t> max_tokens) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace trainctl
