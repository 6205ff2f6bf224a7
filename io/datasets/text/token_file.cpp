// Writes trainctl's token files, and opens token files by their names.
#include "io/datasets/text/token_file.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/dataset.h"
#include "io/datasets/fingerprint.h"
#include "io/datasets/text/mapped_file.h"
#include "io/datasets/text/megatron.h"

namespace trainctl {
namespace {

constexpr std::int64_t id_bytes_of(bool narrow) { return narrow ? 2 : 4; }

// The end of a token file.
struct TokenFooter {
  char magic[8] = {'t', 'c', 't', 'o', 'k', 'e', 'n', '1'};
  std::int64_t id_bytes = 0, count = 0, documents = 0, largest = 0;
  std::int64_t unknown = 0;  // how many ids are the vocabulary's unknown token
  std::int64_t reserved = 0;
  std::uint64_t hash = 0;  // of the bytes before it

  std::uint64_t computed_hash() const { return xxh3(this, sizeof *this - sizeof hash); }
};
static_assert(sizeof(TokenFooter) == 64);

// The bytes of the ids and what fills them up to a multiple of 8.
std::int64_t padded_ids(std::int64_t count, std::int64_t id_bytes) {
  return round_up(checked_multiply(count, id_bytes), 8);
}

[[noreturn]] void refuse_damaged(const std::string& path) { data_error(path, "is damaged"); }

}  // namespace

TokenFileWriter::TokenFileWriter(OutputFile& file, std::int64_t vocabulary_size, std::optional<TokenId> unknown)
    : file_(file), narrow_(vocabulary_size <= 65536), unknown_(unknown) {}

void TokenFileWriter::add(const std::vector<TokenId>& ids, const std::vector<std::size_t>& ends) {
  for (const std::size_t end : ends) end_document(count_ + static_cast<std::int64_t>(end));
  for (const TokenId id : ids) largest_ = std::max<std::int64_t>(largest_, id);
  if (unknown_) unknown_count_ += std::count(ids.begin(), ids.end(), *unknown_);
  const auto bytes = std::ssize(ids) * id_bytes_of(narrow_);
  if (narrow_) {
    words_.assign(ids.begin(), ids.end());
    file_.write(words_.data(), bytes);
  } else {
    file_.write(ids.data(), bytes);
  }
  count_ += std::ssize(ids);
}

void TokenFileWriter::end_document(std::int64_t end) {
  if (end > (ends_.empty() ? 0 : ends_.back())) ends_.push_back(end);
}

void TokenFileWriter::finish() {
  end_document(count_);
  TokenFooter footer;
  footer.id_bytes = id_bytes_of(narrow_);
  footer.count = count_;
  footer.documents = std::ssize(ends_);
  footer.largest = largest_;
  footer.unknown = unknown_count_;
  footer.hash = footer.computed_hash();
  constexpr char zeros[8] = {};
  file_.write(zeros, padded_ids(count_, footer.id_bytes) - count_ * footer.id_bytes);
  file_.write(ends_.data(), std::ssize(ends_) * static_cast<std::int64_t>(sizeof(std::int64_t)));
  file_.write(&footer, sizeof footer);
}

TokenStream open_token_file(const std::string& path) {
  const Bytes bytes = map_file(path);
  TokenFooter footer;
  constexpr auto footer_bytes = static_cast<std::int64_t>(sizeof footer);
  if (bytes.size() < footer_bytes) refuse_damaged(path);
  bytes.read(bytes.size() - footer_bytes, &footer, footer_bytes);
  const bool known = std::memcmp(footer.magic, TokenFooter().magic, sizeof footer.magic) == 0 &&
                     footer.hash == footer.computed_hash() && (footer.id_bytes == 2 || footer.id_bytes == 4) &&
                     footer.count >= 0 && footer.documents >= 0;
  if (!known) refuse_damaged(path);
  const std::int64_t ids = padded_ids(footer.count, footer.id_bytes), ends = checked_multiply(footer.documents, 8);
  if (checked_add(checked_add(ids, ends), footer_bytes) != bytes.size()) refuse_damaged(path);
  TokenStream stream;
  stream.tokens = {path,
                   {footer.count},
                   footer.id_bytes == 2 ? ElementType::uint16 : ElementType::uint32,
                   false,
                   bytes.slice(0, footer.count * footer.id_bytes)};
  stream.documents = DocumentEnds(bytes.slice(ids, ends));
  stream.largest = footer.largest;
  stream.unknown = footer.unknown;
  return stream;
}

bool is_token_file(const std::string& path) { return has_ending(path, {".bin", ".npy"}); }

static TokenStream open_plain_tokens(const std::string& path, TokenType type) {
  TokenStream stream;
  if (has_ending(path, {".npy"})) {
    stream.tokens = read_npy(path);
    if (!is_integer(stream.tokens.type) || stream.tokens.shape.rank() != 1) {
      data_error(
          path,
          format("must hold whole numbers of one dimension, but its shape is {}{}", to_string(stream.tokens.shape),
                 is_integer(stream.tokens.type) ? "" : ", and its values are no whole numbers"),
          "save the ids of all documents one after another: numpy.save(FILE, ids.astype(numpy.uint16))");
    }
    stream.offset = InputFile(path).size() - stream.tokens.bytes.size();
    return stream;
  }
  const std::string stem = path.substr(0, path.size() - std::strlen(".bin"));
  const std::string index = stem + (exists(stem + ".IDX") ? ".IDX" : ".idx");
  if (exists(index)) return open_megatron(path, index);
  const Bytes bytes = map_file(path);
  const ElementType element = type == TokenType::uint16 ? ElementType::uint16 : ElementType::uint32;
  const std::int64_t each = size_of(element);
  if (bytes.size() % each != 0) {
    data_error(path, format("has {} bytes, which is no multiple of the {} bytes of an id", bytes.size(), each),
               each == 4 ? "copy the file again, or leave out `dtype: uint32`" : "copy the file again");
  }
  stream.tokens = {path, {bytes.size() / each}, element, false, bytes};
  return stream;
}

// Whether every second id of the beginning is 0, and others are not: the ids have four bytes.
static bool looks_twice_as_wide(const Array& tokens) {
  constexpr std::int64_t fewest = 32, most = 1 << 16;
  const std::int64_t count = std::min(tokens.shape[0], most);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  convert(tokens, 0, count, ids.data());
  bool any = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 2 == 1 && ids[i] != 0) return false;
    any = any || ids[i] != 0;
  }
  return any && count >= fewest;
}

TokenStream open_foreign_tokens(const std::string& path, TokenType type) {
  TokenStream stream = open_plain_tokens(path, type);
  const bool by_option = has_ending(path, {".bin"}) && stream.offset == 0 && stream.documents.size() == 0;
  if (by_option && stream.tokens.type == ElementType::uint16 && looks_twice_as_wide(stream.tokens)) {
    stream.warning = format("{}: every second id is 0, as if its ids had four bytes: set `dtype: uint32`", path);
  }
  stream.fingerprint = format("{} {:016x}", static_cast<int>(stream.tokens.type), content_hash(stream.tokens.bytes));
  return stream;
}

}  // namespace trainctl
