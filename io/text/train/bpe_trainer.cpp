// Merges the most frequent pair of adjacent symbols again and again, with a heap of pairs and the words that have them.
#include "io/text/train/bpe_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "core/base/error.h"
#include "io/text/tokenizer.h"
#include "io/text/unicode/characters.h"

namespace trainctl {
namespace {

using SymbolPair = std::pair<TokenId, TokenId>;

struct PairHash {
  std::size_t operator()(const SymbolPair& pair) const {
    const auto bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(pair.first)) << 32 |
                      static_cast<std::uint32_t>(pair.second);
    return bits * 0x9E3779B97F4A7C15ULL >> 17;
  }
};

// A pair in the heap, with the words in which it occurred when it was added.
struct Counted {
  std::int64_t count = 0;
  SymbolPair pair;
  std::vector<std::uint32_t> words;

  bool operator<(const Counted& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

class BpeTrainer {
 public:
  BpeTrainer(const WordCounts& words, const TrainingOptions& options) : options_(options), counted_(words) {}

  TrainedVocabulary train() {
    for (const std::string& token : options_.special_tokens) id_of(token);
    add_alphabet();
    split_words();
    count_pairs();
    merge_pairs();
    TrainedVocabulary result;
    result.tokens = std::move(tokens_);
    std::vector<std::pair<std::size_t, SymbolPair>> order;
    for (const auto& [pair, rank] : ranks_) order.emplace_back(rank, pair);
    std::sort(order.begin(), order.end());
    for (const auto& [rank, pair] : order) {
      result.merges.emplace_back(result.tokens[static_cast<std::size_t>(pair.first)],
                                 result.tokens[static_cast<std::size_t>(pair.second)]);
    }
    return result;
  }

 private:
  struct Word {
    std::vector<TokenId> symbols;
    std::int64_t count = 0;
  };
  // The words in which pairs occur, by their numbers.
  using Occurrences = std::map<SymbolPair, std::vector<std::uint32_t>>;

  TokenId id_of(const std::string& token) {
    const auto [at, added] = ids_.emplace(token, static_cast<TokenId>(tokens_.size()));
    if (added) tokens_.push_back(token);
    return at->second;
  }

  // The characters of the corpus and those that are asked for, in the order of their codes.
  void add_alphabet() {
    std::map<char32_t, std::string> alphabet;
    const auto add = [&alphabet](std::string_view text) {
      for (std::size_t at = 0; at < text.size();) {
        const Character character = first_character(text.substr(at));
        alphabet.emplace(character.code, text.substr(at, character.length));
        at += character.length;
      }
    };
    for (const std::string& character : options_.alphabet) add(character);
    for (const auto& [word, count] : counted_) add(word);
    for (const auto& [code, character] : alphabet) id_of(character);
  }

  void split_words() {
    for (const auto& [text, count] : counted_) {
      Word word{{}, count};
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = first_character(std::string_view(text).substr(at)).length;
        word.symbols.push_back(id_of((at > 0 ? options_.continuing_prefix : "") + text.substr(at, length)));
        at += length;
      }
      words_.push_back(std::move(word));
    }
  }

  static void add_occurrence(Occurrences& found, const SymbolPair& pair, std::uint32_t word) {
    std::vector<std::uint32_t>& words = found[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void count_pairs() {
    Occurrences found;
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const std::vector<TokenId>& symbols = words_[i].symbols;
      for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
        const SymbolPair pair(symbols[at], symbols[at + 1]);
        counts_[pair] += words_[i].count;
        add_occurrence(found, pair, i);
      }
    }
    push(found);
  }

  void push(Occurrences& found) {
    for (auto& [pair, words] : found) {
      const std::int64_t count = counts_[pair];
      if (count > 0) heap_.push({count, pair, std::move(words)});
    }
  }

  // Merges the pair within a word, and counts the pairs with its neighbours.
  void merge_word(std::uint32_t index, const SymbolPair& pair, TokenId merged, Occurrences& found) {
    Word& word = words_[index];
    std::vector<TokenId>& symbols = word.symbols;
    std::size_t to = 0;
    for (std::size_t from = 0; from < symbols.size(); ++from) {
      if (symbols[from] != pair.first || from + 1 == symbols.size() || symbols[from + 1] != pair.second) {
        symbols[to++] = symbols[from];
        continue;
      }
      if (to > 0) {
        counts_[{symbols[to - 1], pair.first}] -= word.count;
        counts_[{symbols[to - 1], merged}] += word.count;
        add_occurrence(found, {symbols[to - 1], merged}, index);
      }
      ++from;
      if (from + 1 < symbols.size()) {
        counts_[{pair.second, symbols[from + 1]}] -= word.count;
        counts_[{merged, symbols[from + 1]}] += word.count;
        add_occurrence(found, {merged, symbols[from + 1]}, index);
      }
      symbols[to++] = merged;
    }
    symbols.resize(to);
  }

  void merge_pairs() {
    for (std::size_t rank = 0;
         static_cast<std::int64_t>(tokens_.size()) < options_.vocabulary_size && !heap_.empty();) {
      Counted top = std::move(const_cast<Counted&>(heap_.top()));  // it is removed at once
      heap_.pop();
      const std::int64_t now = counts_[top.pair];
      if (top.count != now) {
        top.count = now;
        heap_.push(std::move(top));
        continue;
      }
      if (top.count < 1 || top.count < options_.min_frequency) break;
      std::string right = tokens_[static_cast<std::size_t>(top.pair.second)];
      if (right.starts_with(options_.continuing_prefix)) right.erase(0, options_.continuing_prefix.size());
      const TokenId merged = id_of(tokens_[static_cast<std::size_t>(top.pair.first)] + right);
      ranks_[top.pair] = rank++;
      Occurrences found;
      for (const std::uint32_t word : top.words) merge_word(word, top.pair, merged, found);
      push(found);
    }
  }

  const TrainingOptions& options_;
  const WordCounts& counted_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<Word> words_;
  std::unordered_map<SymbolPair, std::int64_t, PairHash> counts_;
  std::priority_queue<Counted> heap_;
  std::unordered_map<SymbolPair, std::size_t, PairHash> ranks_;
};

}  // namespace

TrainedVocabulary train_bpe(const WordCounts& words, const TrainingOptions& options) {
  return BpeTrainer(words, options).train();
}

}  // namespace trainctl
