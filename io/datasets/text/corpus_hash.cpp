// Hashes files on all cores, and keeps the hash.
#include "io/datasets/text/corpus_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <vector>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/text/ordered_work.h"
#include "io/datasets/usable_cores.h"

namespace trainctl {
namespace {

constexpr std::int64_t hashed_block = 8 << 20;  // bytes that a thread hashes at once
constexpr std::size_t hash_digits = 64;

// The paths, sizes and times of change of all files; empty if one of them changed so recently that its time does not
// tell whether it changes again.
std::optional<std::string> stamp_of(const Corpus& corpus) {
  constexpr std::int64_t settled = 2;  // seconds
  const std::int64_t now = std::time(nullptr);
  std::string stamp;
  for (const CorpusFile& file : corpus.files) {
    struct stat status {};
    if (stat(file.path.c_str(), &status) != 0 || status.st_mtim.tv_sec + settled > now) return std::nullopt;
    stamp += format("{}\n{} {} {}.{}\n", file.path, static_cast<int>(file.kind), status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec);
  }
  return stamp;
}

struct HashedBlock {
  const CorpusFile* file;
  std::int64_t offset, bytes;
};

std::string hash_contents(const Corpus& corpus) {
  std::size_t number = 0;
  std::int64_t offset = 0;
  std::string hashes;
  const auto next = [&]() -> std::optional<HashedBlock> {
    for (; number < corpus.files.size(); ++number, offset = 0) {
      const CorpusFile& file = corpus.files[number];
      if (offset == 0) hashes += format("{} {}\n", static_cast<int>(file.kind), file.bytes);
      if (offset >= file.bytes) continue;
      const HashedBlock block{&file, offset, std::min(hashed_block, file.bytes - offset)};
      offset += block.bytes;
      return block;
    }
    return std::nullopt;
  };
  std::string blocks;
  work_in_order(
      usable_cores(), next,
      [] {
        return [content = std::string()](HashedBlock& block) mutable {
          content.resize(static_cast<std::size_t>(block.bytes));
          const InputFile file(block.file->path, data_role);
          file.read(block.offset, content.data(), block.bytes);
          return xxh3(content.data(), content.size());
        };
      },
      [&](std::uint64_t hash) { blocks += format("{:016x}\n", hash); });
  hashes += blocks;
  return sha256(hashes.data(), hashes.size());
}

}  // namespace

std::string corpus_hash(const Corpus& corpus, const std::string& folder) {
  const std::optional<std::string> stamp = stamp_of(corpus);
  const std::string path =
      stamp ? format("{}/corpus-{}", folder, sha256(stamp->data(), stamp->size()).substr(0, 32)) : "";
  if (stamp && exists(path)) {
    const std::string kept = read_file(path, 1 << 12);
    if (kept.size() == hash_digits) return kept;
  }
  std::string hash = hash_contents(corpus);
  if (stamp) {
    try {
      write_file(path, hash);
    } catch (const Error& error) {
      log::debug(format("the hash of the text is not kept: {}", error.what()));
    }
  }
  return hash;
}

}  // namespace trainctl
