// Token files in the user's cache: the text of a corpus is tokenized once, and later starts map the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "io/datasets/text/corpus.h"
#include "io/datasets/text/text_tokenizer.h"
#include "io/datasets/text/token_stream.h"

namespace trainctl {

struct Preparation;

// What the tokens of a corpus depend on besides its text.
struct Tokenization {
  TextTokenizer tokenizer;
  std::optional<TokenId> begin_token;        // the first token of every document, if there is one
  std::optional<TokenId> end_token;          // the last token of every document, if there is one
  SpecialText special = SpecialText::plain;  // recognized: `end_token` in a text also ends a document
  CorpusFormat format;
};

// Opens the token file of a corpus, and makes it first if the cache has none: on all cores, under a lock that processes
// of other hosts respect if they share the folder, and so that the file is whole or absent. The same text, tokenizer
// and options give the same tokens for any number of cores. A damaged file is made again, with a warning. The text is
// only read again if a file's size or time of change differ from those of the last start. Throws Error{data} for text
// that cannot be tokenized, Error{config} if there is no folder, and Error{resource} if the file cannot be written.
TokenStream cached_tokens(const Corpus& corpus, const Tokenization& tokenization, const Preparation& preparation);

// Tokenizes a corpus into the file `path`.
void write_tokens(const std::string& path, const Corpus& corpus, const Tokenization& tokenization,
                  const Preparation& preparation);

}  // namespace trainctl
