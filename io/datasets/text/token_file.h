// Token files: trainctl's own, which it writes for a corpus, and those that other programs write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/datasets/text/token_stream.h"
#include "io/text/tokenizer.h"

namespace trainctl {

class OutputFile;

// The types of ids in a .bin file.
enum class TokenType { uint16, uint32 };

// Writes trainctl's own token file into an OutputFile: the ids as uint16 or uint32, the ends of the documents as int64,
// and a footer of 64 bytes with the counts, the largest id and a hash of the footer. All numbers are little-endian.
class TokenFileWriter {
 public:
  // A vocabulary of at most 65,536 ids takes two bytes for each id. The file tells how often `unknown` occurs.
  TokenFileWriter(OutputFile& file, std::int64_t vocabulary_size, std::optional<TokenId> unknown);

  // Adds ids. Documents end after the first n of them, for each n in `ends`; a document without ids is left out.
  void add(const std::vector<TokenId>& ids, const std::vector<std::size_t>& ends);
  // Ends the last document, and writes the documents and the footer.
  void finish();

 private:
  void end_document(std::int64_t end);

  OutputFile& file_;
  bool narrow_;
  std::optional<TokenId> unknown_;
  std::int64_t count_ = 0, unknown_count_ = 0, largest_ = -1;
  std::vector<std::int64_t> ends_;
  std::vector<std::uint16_t> words_;  // reused
};

// Maps a file that TokenFileWriter wrote. Throws Error{data} if it is damaged.
TokenStream open_token_file(const std::string& path);

// Whether a file name is that of ids that another program wrote: .bin or .npy.
bool is_token_file(const std::string& path);

// Maps ids that another program wrote: an .npy file of whole numbers of one dimension, or a .bin file of plain numbers
// of the type `type`. If an .idx file of the same name lies beside a .bin file, they are Megatron-LM's indexed data set
// (megatron/core/datasets/indexed_dataset.py), which tells the type and the documents. Throws Error{data} if a file is
// cut short, does not hold whole numbers or does not fit the other one.
TokenStream open_foreign_tokens(const std::string& path, TokenType type);

}  // namespace trainctl
