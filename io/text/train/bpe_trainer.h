// Learns the merges of a byte-pair encoding from the words of a corpus, as the trainers of `tokenizers` do.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/text/train/word_counts.h"

namespace trainctl {

struct TrainingOptions {
  std::int64_t vocabulary_size = 30000;     // merges are added until the vocabulary has this many tokens
  std::int64_t min_frequency = 0;           // a pair that occurs less often is not merged
  std::vector<std::string> special_tokens;  // get the first ids
  std::vector<std::string> alphabet;        // characters that become tokens even if the corpus lacks them
  std::string continuing_prefix;            // what characters within a word begin with, such as "##"
};

struct TrainedVocabulary {
  std::vector<std::string> tokens;                          // by id
  std::vector<std::pair<std::string, std::string>> merges;  // in the order of their ranks
};

// The pair that occurs most often is merged first; of equally frequent pairs the one with the lower ids. Words are
// UTF-8.
TrainedVocabulary train_bpe(const WordCounts& words, const TrainingOptions& options);

}  // namespace trainctl
