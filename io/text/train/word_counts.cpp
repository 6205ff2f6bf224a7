// Counts words by blocks of lines and by further texts, which threads take one after the other.
#include "io/text/train/word_counts.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

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

// Counts the words of texts in one thread.
class WordCounter {
 public:
  WordCounter(LineWords line_words, bool utf8, const std::string& kind)
      : line_words_(std::move(line_words)), utf8_(utf8), kind_(kind) {}

  void add(const Block& block) {
    std::string text(static_cast<std::size_t>(block.end - block.begin), '\0');
    block.file->read(block.begin, text.data(), block.end - block.begin);
    require_utf8(text, block.file->path(), block.begin);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      add_words(std::string_view(text).substr(at, end - at));
      at = end;
    }
  }
  void add(const Texts& texts) {
    texts([&](std::string_view text, const std::string& place) {
      require_utf8(text, place, 0);
      add_words(text);
    });
  }
  Counter counts;

 private:
  void add_words(std::string_view text) {
    line_words_(text, [this](std::string_view word) {
      const auto at = counts.find(word);
      at != counts.end() ? ++at->second : counts.emplace(word, 1).first->second;
    });
  }
  // `begin`: the place of the text in a file.
  void require_utf8(std::string_view text, const std::string& place, std::int64_t begin) const {
    const auto invalid = utf8_ ? find_invalid_utf8(text) : std::nullopt;
    if (!invalid) return;
    throw Error(ErrorKind::data, SourceLocation{place},
                format("byte {} is not UTF-8, and a {} vocabulary encodes characters",
                       begin + static_cast<std::int64_t>(*invalid), kind_),
                "convert the text to UTF-8, for example with iconv, or train a byte-level vocabulary");
  }

  LineWords line_words_;
  bool utf8_;
  const std::string& kind_;
};

// Hands the blocks of files to the threads, and then the further texts.
class Shares {
 public:
  Shares(const std::vector<Block>& blocks, const NextTexts& next) : blocks_(blocks), next_(next) {}

  // Counts the next block or texts. Returns false after the last ones, or after an error of any thread.
  bool count_next(WordCounter& counter) {
    std::unique_lock lock(mutex_);
    if (error_) return false;
    const std::size_t number = taken_++;
    try {
      std::optional<Texts> texts;
      if (number >= blocks_.size()) texts = next_ ? next_() : std::nullopt;
      if (number >= blocks_.size() && !texts) return false;
      lock.unlock();
      texts ? counter.add(*texts) : counter.add(blocks_[number]);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      // The error of the first share is reported, whichever thread finds one first.
      if (!error_ || number < failed_) error_ = std::current_exception(), failed_ = number;
      return false;
    }
    return true;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::vector<Block>& blocks_;
  const NextTexts& next_;
  std::mutex mutex_;  // of everything below
  std::size_t taken_ = 0, failed_ = 0;
  std::exception_ptr error_;
};

}  // namespace

WordCounts count_words(const std::vector<std::string>& files, const NextTexts& next, int threads,
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
  Shares shares(blocks, next);
  std::mutex mutex;  // of `total`
  Counter total;
  const auto work = [&] {
    WordCounter counter(make_line_words(), utf8, kind);
    while (shares.count_next(counter)) {
    }
    const std::lock_guard lock(mutex);
    for (auto& [word, count] : counter.counts) total[word] += count;
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  shares.rethrow();
  WordCounts sorted(total.begin(), total.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace trainctl
