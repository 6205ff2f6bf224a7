// Reads tokenizer.json, the file of the library `tokenizers`: byte-level BPE, BPE, WordPiece, Unigram and WordLevel.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/text/tokenizer.h"

namespace trainctl {

// A file whose long lists are read apart from the rest.
struct TokenizerJson {
  std::string path;
  std::vector<std::pair<std::string, TokenId>> vocabulary;  // model.vocab, an object
  std::vector<std::pair<std::string, double>> scores;       // model.vocab, a list: Unigram
  std::vector<std::pair<std::string, std::string>> merges;  // model.merges
  std::unique_ptr<Json> rest;                               // all else
  TokenizerJson();
  TokenizerJson(TokenizerJson&&) noexcept;
  ~TokenizerJson();
};

// Parses a file in memory in proportion to its length. Throws Error{data} with the position of a mistake.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& path);

// The tokenizer of a file. Throws Error{data} that names a part that is wrong or not supported.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text, const std::string& path);

}  // namespace trainctl
