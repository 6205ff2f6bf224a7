// Tokenizes a corpus on all cores into a file of the cache.
#include "io/datasets/text/token_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/cache_folder.h"
#include "io/datasets/preparation.h"
#include "io/datasets/text/corpus_hash.h"
#include "io/datasets/text/ordered_work.h"
#include "io/datasets/text/token_file.h"
#include "io/datasets/usable_cores.h"

namespace trainctl {
namespace {

// The ids of a piece, and the numbers of ids after which documents end.
struct EncodedPiece {
  std::vector<TokenId> ids;
  std::vector<std::size_t> ends;
  std::int64_t bytes = 0;  // of the text, for the progress
};

// Encodes the pieces that one thread gets.
class PieceEncoder {
 public:
  explicit PieceEncoder(const Tokenization& tokenization)
      : of_(tokenization), encoder_(tokenization.tokenizer.tokenizer->make_encoder(tokenization.special)) {}

  EncodedPiece operator()(CorpusPiece& piece) {
    EncodedPiece encoded;
    for_each_text(piece, of_.format, [&](const CorpusText& text) {
      encoded.bytes += static_cast<std::int64_t>(text.text.size());
      const std::size_t first = encoded.ids.size();
      require_characters(text, piece);
      encoder_->encode(text.text, encoded.ids, piece.file->path);
      const bool plain = piece.file->kind == CorpusFileKind::plain;
      const bool begins = !plain || piece.begins_document;
      if (begins) begin_document(first, encoded);
      if (of_.end_token && of_.special == SpecialText::recognized) end_inside(first, begins, encoded);
      if (!plain || piece.ends_document) end_document(first, encoded);
    });
    return encoded;
  }

 private:
  // Refuses a text that is not UTF-8 with its place in the file, unless the vocabulary encodes bytes.
  void require_characters(const CorpusText& text, const CorpusPiece& piece) const {
    const Tokenizer& tokenizer = *of_.tokenizer.tokenizer;
    const auto invalid = tokenizer.takes_any_bytes() ? std::nullopt : find_invalid_utf8(text.text);
    if (!invalid) return;
    const auto byte = static_cast<unsigned char>(text.text[*invalid]);
    const std::string place = text.line > 0 ? format("line {}, byte {} of the text", text.line, *invalid)
                                            : format("byte {}", piece.offset + static_cast<std::int64_t>(*invalid));
    throw Error(
        ErrorKind::data, SourceLocation{piece.file->path},
        format("{} (0x{:02x}) is not UTF-8, and a {} vocabulary encodes characters", place, byte, tokenizer.kind()),
        "convert the text to UTF-8, for example with iconv, or use a byte-level vocabulary");
  }

  // Begins a document at `first`, unless its text has the token itself. A document without text leaves nothing.
  void begin_document(std::size_t first, EncodedPiece& encoded) const {
    const auto begin = encoded.ids.begin() + static_cast<std::ptrdiff_t>(first);
    if (of_.begin_token && begin != encoded.ids.end() && *begin != *of_.begin_token) {
      encoded.ids.insert(begin, *of_.begin_token);
    }
  }

  // Ends a document after each end token from `first` on, and begins the next one. Passes over the tokens with which
  // documents begin, since one token may have both purposes.
  void end_inside(std::size_t first, bool begins, EncodedPiece& encoded) const {
    const std::size_t begin = of_.begin_token ? 1 : 0;
    for (std::size_t i = first + (begins ? begin : 0); i < encoded.ids.size(); ++i) {
      if (encoded.ids[i] != *of_.end_token) continue;
      encoded.ends.push_back(i + 1);
      begin_document(i + 1, encoded);
      i += begin;
    }
  }

  // Ends a document, which began at `first` or in an earlier piece.
  void end_document(std::size_t first, EncodedPiece& encoded) const {
    const bool empty = encoded.ids.size() == first;
    const bool ended = !empty && of_.end_token && encoded.ids.back() == *of_.end_token;
    if (of_.end_token && !empty && !ended) encoded.ids.push_back(*of_.end_token);
    encoded.ends.push_back(encoded.ids.size());
  }

  const Tokenization& of_;
  std::unique_ptr<Encoder> encoder_;
};

// Tests cuts by encoding the excerpts around them apart and together.
CutTest cut_test(const Tokenization& tokenization) {
  std::shared_ptr<Encoder> encoder = tokenization.tokenizer.tokenizer->make_encoder(tokenization.special);
  return [encoder](std::string_view before, std::string_view after) {
    try {
      std::vector<TokenId> apart, together;
      encoder->encode(before, apart);
      encoder->encode(after, apart);
      encoder->encode(std::string(before) + std::string(after), together);
      return apart == together;
    } catch (const Error&) {
      return false;  // the text is not UTF-8, which the thread that encodes it reports
    }
  };
}

std::string key_of(const std::string& text_hash, const Tokenization& tokenization) {
  constexpr int version = 2;  // increased when the same text results in other tokens
  std::string key = format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", version, text_hash, tokenization.tokenizer.hash,
                           tokenization.end_token.value_or(-1), static_cast<int>(tokenization.special),
                           tokenization.format.text_column, tokenization.format.delimiter);
  if (tokenization.begin_token) key += format("{}\n", *tokenization.begin_token);
  return sha256(key.data(), key.size()).substr(0, 32);
}

// Opens a token file. Returns no value if there is none, or if it is damaged, which is logged.
std::optional<TokenStream> open_whole(const std::string& path) {
  if (!exists(path)) return std::nullopt;
  try {
    return open_token_file(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    log::warning(format("{}; the text is tokenized again", error.what()));
    return std::nullopt;
  }
}

// A lock that one process at a time holds while it makes a file of the cache.
class CacheLock {
 public:
  // Waits for the lock `path`, a file that exists while a process holds the lock or waits for it. Calls `waits` once if
  // another process holds it. A process that ends releases its lock. Throws Error{resource} if the file cannot be made.
  // If the file system has no locks, logs a warning and continues without one.
  CacheLock(const std::string& path, const std::function<void()>& waits) : path_(path) {
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      throw Error(ErrorKind::resource, SourceLocation{path},
                  "this file of the cache cannot be written: " + std::generic_category().message(errno),
                  "set `data.cache_path` to a folder that can be written");
    }
    int flags = LOCK_EX | LOCK_NB;
    while (flock(descriptor_, flags) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) {
        waits();
        flags = LOCK_EX;
        continue;
      }
      log::warning(
          format("{}: {}: several processes may prepare the same data", path, std::generic_category().message(errno)));
      return;
    }
  }
  // A process that waits for a lock whose file is removed gets this lock; a process that comes later makes a new file.
  // Both then find what this process made, or make it again: each writes under a temporary name of its own.
  ~CacheLock() {
    unlink(path_.c_str());
    close(descriptor_);
  }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

void write_tokens(const std::string& path, const Corpus& corpus, const Tokenization& tokenization,
                  const Preparation& preparation) {
  const std::int64_t all = corpus.bytes();
  constexpr std::int64_t noticeable = 10'000'000;  // bytes that take about as long as a person notices
  if (!preparation.progress && all > noticeable) log::info(format("tokenizing {} ({})", corpus.path, byte_text(all)));
  std::int64_t done = 0;
  write_file(path, all, [&](OutputFile& file) {
    const Tokenizer& tokenizer = *tokenization.tokenizer.tokenizer;
    TokenFileWriter writer(file, tokenizer.vocabulary_size(), tokenizer.unknown_token());
    CorpusPieces pieces(corpus, tokenization.format, cut_test(tokenization));
    work_in_order(
        usable_cores(),
        [&]() -> std::optional<CorpusPiece> {
          CorpusPiece piece;
          return pieces.next(piece) ? std::optional(std::move(piece)) : std::nullopt;
        },
        [&] { return PieceEncoder(tokenization); },
        [&](const EncodedPiece& encoded) {
          writer.add(encoded.ids, encoded.ends);
          done += encoded.bytes;
          if (preparation.progress) preparation.progress(std::min(done, all), all);
        });
    writer.finish();
  });
}

TokenStream cached_tokens(const Corpus& corpus, const Tokenization& tokenization, const Preparation& preparation) {
  const std::string folder = preparation.cache_folder.empty() ? default_cache_folder() : preparation.cache_folder;
  if (folder.empty()) {
    throw Error(ErrorKind::config,
                "the tokens of a text are kept in a folder, but neither XDG_CACHE_HOME nor HOME is set",
                "set `data.cache_path`");
  }
  create_folders(folder);
  const std::string key = key_of(corpus_hash(corpus, folder), tokenization);
  const std::string path = format("{}/tokens-{}", folder, key);
  std::optional<TokenStream> stream = open_whole(path);
  if (!stream) {
    const CacheLock lock(path + ".lock",
                         [] { log::info("another process is tokenizing the same text; waiting for its tokens"); });
    stream = open_whole(path);
    if (!stream) {
      write_tokens(path, corpus, tokenization, preparation);
      stream = open_token_file(path);
    }
  }
  stream->tokens.path = corpus.path;  // messages name the text
  stream->offset = -1;
  stream->fingerprint = key;
  stream->warning = corpus.left_out;
  if (stream->unknown > 0) {
    if (!stream->warning.empty()) stream->warning += "; ";
    stream->warning += format(
        "{}: {} of {} tokens {} the unknown token of {}, which loses their text; the metric bits_per_byte counts no "
        "bytes for them, so that it is too large",
        corpus.path, stream->unknown, stream->count(), stream->unknown == 1 ? "is" : "are",
        tokenization.tokenizer.path);
  }
  return std::move(*stream);
}

}  // namespace trainctl
