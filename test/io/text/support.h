// Shared by the tests of tokenizers: the files of test/golden/tokenizers, and ids of texts.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl::test {

inline std::string golden_path(const std::string& name) {
  return std::string(TRAINCTL_SOURCE_DIR) + "/test/golden/tokenizers/" + name;
}

inline std::string golden(const std::string& name) {
  std::ifstream file(golden_path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text,
                                   SpecialText special = SpecialText::recognized) {
  std::vector<TokenId> ids;
  tokenizer.make_encoder(special)->encode(text, ids);
  return ids;
}

}  // namespace trainctl::test
