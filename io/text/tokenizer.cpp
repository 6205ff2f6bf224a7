// Decodes whole sequences, and refuses texts and ids that a tokenizer does not know.
#include "io/text/tokenizer.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  const std::unique_ptr<Decoder> decoder = make_decoder();
  for (const TokenId id : ids) decoder->decode(id, text);
  decoder->finish(text);
  return text;
}

void require_utf8(std::string_view text, const std::string& name, const std::string& kind) {
  if (const auto offset = find_invalid_utf8(text)) {
    throw Error(ErrorKind::data, SourceLocation{name},
                format("byte {} (0x{:02x}) is not UTF-8, and a {} vocabulary encodes characters", *offset,
                       static_cast<unsigned char>(text[*offset]), kind),
                "convert the text to UTF-8, for example with iconv, or use a byte-level vocabulary");
  }
}

void throw_no_token(TokenId id, std::int64_t vocabulary_size) {
  throw Error(
      ErrorKind::data, format("no token has the id {}", id),
      format("the ids of this vocabulary are 0 to {}: use the tokenizer that encoded the text", vocabulary_size - 1));
}

}  // namespace trainctl
