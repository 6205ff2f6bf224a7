// Recognizes the kind of a tokenizer file by its first bytes.
#include "io/text/load.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "io/text/files/bytes.h"
#include "io/text/files/sentencepiece.h"
#include "io/text/files/tiktoken.h"
#include "io/text/files/tokenizer_json.h"

namespace trainctl {

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content, const std::string& path,
                                          const std::string& encoding) {
  const bool ranks = looks_like_ranks(content);
  if (!encoding.empty() && !ranks) {
    throw Error(ErrorKind::config, "an encoding is named, but " + path + " is no rank file of tiktoken",
                "leave the encoding out");
  }
  if (ranks) return read_ranks(content, path, encoding);
  if (looks_like_sentencepiece(content)) return read_sentencepiece(content, path);
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && content[first] == '{') return read_tokenizer_json(content, path);
  const bool blank = first == std::string_view::npos;
  throw Error(ErrorKind::data, SourceLocation{path}, blank ? "is empty" : "this is no tokenizer file that is known",
              "give a tokenizer.json, a rank file of tiktoken, a model of SentencePiece, or the word bytes");
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name, const std::string& encoding) {
  if (name == "bytes") {
    if (!encoding.empty()) throw Error(ErrorKind::config, "the vocabulary of bytes has no encoding", "leave it out");
    return make_bytes();
  }
  const std::string content = read_file(name, largest_tokenizer_file,
                                        {ErrorKind::data, "give the path of a tokenizer file, or the word bytes"});
  return read_tokenizer(content, name, encoding);
}

}  // namespace trainctl
