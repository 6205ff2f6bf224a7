// Counts words by blocks of lines, which threads take from a common list.
#include "io/text/train/word_counts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/utf8.h"

namespace trainctl {
namespace {

constexpr std::int64_t block_bytes = 8 << 20;  // what a thread reads at once

struct Block {
  const InputFile* file = nullptr;
  std::int64_t begin = 0, end = 0;
};

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Counter = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;

// The first byte after a line feed from `at` on; the file's size if there is none.
std::int64_t line_begin(const InputFile& file, std::int64_t at) {
  std::string part(1 << 16, '\0');
  while (at < file.size()) {
    const std::int64_t count = file.read_some(at, part.data(), static_cast<std::int64_t>(part.size()));
    const std::size_t end = std::string_view(part).substr(0, static_cast<std::size_t>(count)).find('\n');
    if (end != std::string_view::npos) return at + static_cast<std::int64_t>(end) + 1;
    if (count == 0) break;
    at += count;
  }
  return file.size();
}

void count_block(const Block& block, const LineWords& line_words, bool utf8, const std::string& kind, Counter& counts) {
  std::string text(static_cast<std::size_t>(block.end - block.begin), '\0');
  block.file->read(block.begin, text.data(), block.end - block.begin);
  if (const auto invalid = utf8 ? find_invalid_utf8(text) : std::nullopt) {
    throw Error(ErrorKind::data, SourceLocation{block.file->path()},
                format("byte {} is not UTF-8, and a {} vocabulary encodes characters",
                       block.begin + static_cast<std::int64_t>(*invalid), kind),
                "convert the text to UTF-8, for example with iconv, or train a byte-level vocabulary");
  }
  const auto found = [&counts](std::string_view word) {
    const auto at = counts.find(word);
    at != counts.end() ? ++at->second : counts.emplace(word, 1).first->second;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    line_words(std::string_view(text).substr(at, end - at), found);
    at = end;
  }
}

}  // namespace

WordCounts count_words(const std::vector<std::string>& files, int threads,
                       const std::function<LineWords()>& make_line_words, bool utf8, const std::string& kind) {
  std::vector<std::unique_ptr<InputFile>> open;
  std::vector<Block> blocks;
  for (const std::string& path : files) {
    open.push_back(std::make_unique<InputFile>(path, FileRole{ErrorKind::data, "give the paths of text files"}));
    for (std::int64_t at = 0; at < open.back()->size();) {
      const std::int64_t end = line_begin(*open.back(), std::min(at + block_bytes, open.back()->size()));
      blocks.push_back({open.back().get(), at, end});
      at = end;
    }
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // of `total` and `error`
  Counter total;
  std::exception_ptr error;
  std::size_t error_block = blocks.size();
  const auto work = [&] {
    const LineWords line_words = make_line_words();
    Counter counts;
    for (std::size_t i = next++; i < blocks.size(); i = next++) {
      try {
        count_block(blocks[i], line_words, utf8, kind, counts);
      } catch (...) {  // the error of the first block is reported, whichever thread finds one first
        const std::lock_guard lock(mutex);
        if (i < error_block) error = std::current_exception(), error_block = i;
        return;
      }
    }
    const std::lock_guard lock(mutex);
    for (auto& [word, count] : counts) total[word] += count;
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
  WordCounts sorted(total.begin(), total.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace trainctl
