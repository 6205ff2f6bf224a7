// Reads corpora of text, and Megatron-LM's token files.
#include <algorithm>
#include <string>
#include <vector>

#include "io/datasets/text/corpus.h"
#include "io/datasets/text/megatron.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

// Reads the texts of a file, with the names of their classes if `has_classes`.
void read_texts(const std::string& path, bool has_classes) {
  const Corpus corpus = find_corpus(path);
  const CorpusFormat format{.text_column = "text", .class_column = has_classes ? "label" : ""};
  CorpusPieces pieces(corpus, format, [](std::string_view, std::string_view) { return true; });
  for (CorpusPiece piece; pieces.next(piece);) {
    std::int64_t line = 0;
    for_each_text(piece, format, [&](const CorpusText& text) {
      expect(text.line > line, "the lines of texts do not ascend");
      line = text.line;
    });
  }
}

}  // namespace

// The number of bytes decides whether the texts have classes.
void fuzz_json_lines(std::string_view bytes) { read_texts(file_of(bytes, "x.jsonl"), bytes.size() % 2 == 1); }
void fuzz_text_table(std::string_view bytes) { read_texts(file_of(bytes, "texts.csv"), bytes.size() % 2 == 1); }

// The first byte is the size of the .bin file, and the others are the index.
void fuzz_megatron(std::string_view bytes) {
  if (bytes.empty()) return;
  std::string ids(static_cast<unsigned char>(bytes[0]), '\0');
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<char>(37 * i + 5);
  const std::string tokens = file_of(ids, "x.bin"), index = file_of(bytes.substr(1), "x.idx");
  const TokenStream stream = open_megatron(tokens, index);
  const std::int64_t count = stream.count();
  expect(stream.documents.size() > 0 && stream.documents.end(stream.documents.size() - 1) == count,
         "the documents do not end with the tokens");
  for (std::int64_t token = 0; token < count; ++token) {
    const std::int64_t document = stream.documents.document_of(token);
    expect(stream.documents.begin(document) <= token && token < stream.documents.end(document),
           "a token is in no document");
  }
  find_id_beyond(stream, 0, count, 100);
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  read_tokens(stream, 0, count, 1 << 30, "the embedding", "use a larger one", values.data());
}

}  // namespace trainctl::fuzz
