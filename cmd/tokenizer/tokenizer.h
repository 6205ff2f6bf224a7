// The options of `trainctl tokenizer`, and its actions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/common_options.h"

namespace trainctl {

struct TokenizerOptions {
  CommonOptions common;
  std::string action;
  std::string tokenizer;           // a file, or "bytes"
  std::string encoding;            // of a rank file; empty: found out
  std::vector<std::string> files;  // texts, or ids to decode
  std::string out;                 // empty: standard output
  bool plain = false;              // encodes the texts of special tokens like other text
  bool frame = false;              // adds the ids that the tokenizer's file puts around a text
  bool force = false;
  // train
  std::string kind = "bpe", pattern = "gpt2";
  std::int64_t vocabulary_size = 32000, min_frequency = 0;
  std::vector<std::string> special;  // empty: those of the kind
  bool cased = false;
  std::string text_column = "text";
};

// Each returns the exit code.
int tokenizer_info(const TokenizerOptions& options);
int tokenizer_encode(const TokenizerOptions& options);
int tokenizer_decode(const TokenizerOptions& options);
int tokenizer_train(const TokenizerOptions& options);

}  // namespace trainctl
