// A stream of tokens: the ids of all documents of a corpus, one document after another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/datasets/arrays/array.h"

namespace trainctl {

// The ends of documents in a stream: document d has the tokens [begin(d), end(d)).
class DocumentEnds {
 public:
  DocumentEnds() = default;
  // `ends` holds one int64 for each document, in ascending order.
  explicit DocumentEnds(Bytes ends) : ends_(std::move(ends)) {}

  std::int64_t size() const { return ends_.size() / static_cast<std::int64_t>(sizeof(std::int64_t)); }
  std::int64_t end(std::int64_t document) const;
  std::int64_t begin(std::int64_t document) const { return document == 0 ? 0 : end(document - 1); }
  // The document that holds a token: the first one that ends after it.
  std::int64_t document_of(std::int64_t token) const;

 private:
  Bytes ends_;
};

// The tokens of a file, and what the file says about them.
struct TokenStream {
  Array tokens;                         // whole numbers [count]
  DocumentEnds documents;               // without documents if the file does not tell where they end
  std::optional<std::int64_t> largest;  // the largest id, if the file tells it
  std::int64_t unknown = 0;             // how many ids are the vocabulary's unknown token, if the file tells it
  std::int64_t offset = 0;              // bytes of the file before its first token, for messages; -1: made of text
  std::string fingerprint;              // hash of the tokens, or of what they were made of
  std::string warning;                  // text for the user about what was not read; may be empty

  std::int64_t count() const { return tokens.shape[0]; }
};

// Finds the first id in [first, first + count) that is below 0 or not below `limit`; returns its position, or no value.
std::optional<std::int64_t> find_id_beyond(const TokenStream& stream, std::int64_t first, std::int64_t count,
                                           std::int64_t limit);

// Writes the ids [first, first + count) to `to`. Throws Error{data} with file and offset if one of them is not in
// [0, limit); `owner` names what has `limit` ids ("the embedding"), and `remedy` says what to do.
void read_tokens(const TokenStream& stream, std::int64_t first, std::int64_t count, std::int64_t limit,
                 const char* owner, const char* remedy, std::int32_t* to);

// Throws the Error{data} for the id at a position of the stream.
[[noreturn]] void refuse_id(const TokenStream& stream, std::int64_t position, std::int64_t limit, const char* owner,
                            const char* remedy);

}  // namespace trainctl
