// Reads tokenizer files, and encodes a text with those that are read.
#include <memory>
#include <string>
#include <vector>

#include "io/text/files/sentencepiece.h"
#include "io/text/files/tiktoken.h"
#include "io/text/files/tokenizer_json.h"
#include "io/text/tokenizer.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

void encode_and_decode(const Tokenizer& tokenizer) {
  constexpr std::string_view text = "A truth's 123 \n\n  caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd <s>[CLS] sing";
  for (const SpecialText special : {SpecialText::recognized, SpecialText::plain}) {
    std::vector<TokenId> ids;
    tokenizer.make_encoder(special)->encode(text, ids);
    for (const TokenId id : ids) expect(id >= 0 && id < tokenizer.vocabulary_size(), "an id is not in the vocabulary");
    tokenizer.decode(ids);
  }
}

}  // namespace

void fuzz_tokenizer_json(std::string_view bytes) { encode_and_decode(*read_tokenizer_json(bytes, "tokenizer.json")); }

void fuzz_tiktoken(std::string_view bytes) {
  if (looks_like_ranks(bytes)) encode_and_decode(*read_ranks(bytes, "x.tiktoken", "cl100k_base"));
}

void fuzz_sentencepiece(std::string_view bytes) {
  if (looks_like_sentencepiece(bytes)) encode_and_decode(*read_sentencepiece(bytes, "x.model"));
}

}  // namespace trainctl::fuzz
