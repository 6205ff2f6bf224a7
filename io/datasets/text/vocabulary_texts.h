// The texts of corpora from which a vocabulary is trained.
#pragma once

#include <string>
#include <vector>

#include "io/datasets/text/corpus.h"
#include "io/text/train/word_counts.h"

namespace trainctl {

struct VocabularyTexts {
  std::vector<std::string> files;     // of plain text
  NextTexts next;                     // the texts of .jsonl and .csv files; empty if there are none
  std::vector<std::string> left_out;  // which files are not read, a sentence each
};

// Finds the texts that `dataset: text` would read at these paths, each of which is a file or a folder. Throws
// Error{data} if nothing is there, and for token files.
VocabularyTexts find_vocabulary_texts(const std::vector<std::string>& paths, const CorpusFormat& format);

}  // namespace trainctl
