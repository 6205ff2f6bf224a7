// Trains a vocabulary from the files of a corpus, and writes it as a tokenizer.json that `tokenizers` reads, too.
#pragma once

#include <string>
#include <vector>

#include "io/text/split/splitter.h"
#include "io/text/train/bpe_trainer.h"
#include "io/text/train/word_counts.h"

namespace trainctl {

enum class VocabularyKind { bpe, word_piece };

struct VocabularyRequest {
  VocabularyKind kind = VocabularyKind::bpe;  // bpe: byte-level
  std::vector<std::string> files;             // of plain text, which are counted line by line
  NextTexts texts = {};                       // further texts
  Pattern pattern = Pattern::gpt2;            // bpe: how texts are split into words; not cl100k
  bool lower_case = true;                     // word_piece: letters become lower case and lose their accents
  int threads = 1;
  std::int64_t vocabulary_size = 30000, min_frequency = 0;
  std::vector<std::string> special_tokens;  // word_piece: [UNK] must be one of them
};

struct TrainedTokenizer {
  std::string json;                                // the content of tokenizer.json
  std::int64_t tokens = 0, merges = 0, words = 0;  // words: how many different ones the corpus has
};

// Throws Error{data} if a file cannot be read, is not UTF-8 (word_piece), or the corpus has no words; Error{config} if
// the vocabulary is too small for its special tokens and characters.
TrainedTokenizer train_tokenizer(const VocabularyRequest& request);

}  // namespace trainctl
