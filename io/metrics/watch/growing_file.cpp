// Reads from the end of the last read on.
#include "io/metrics/watch/growing_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/files.h"

namespace trainctl {
namespace {

constexpr std::int64_t usual_block = 4 << 20;
constexpr std::int64_t longest_line = 256 << 20;  // a confusion matrix has the square of the number of classes
constexpr std::size_t tail_bytes = 256;
constexpr FileRole watched{ErrorKind::config};

// Opens the file; returns null if it does not exist, or is removed meanwhile.
std::unique_ptr<InputFile> open_if_there(const std::string& path) {
  if (!exists(path, watched)) return nullptr;
  try {
    return std::make_unique<InputFile>(path, watched);
  } catch (const Error&) {
    if (!exists(path, watched)) return nullptr;
    throw;
  }
}

}  // namespace

bool GrowingFile::has_known_tail(const InputFile& file) const {
  if (file.size() < offset_) return false;
  std::string now(tail_.size(), '\0');
  const auto bytes = static_cast<std::int64_t>(tail_.size());
  now.resize(static_cast<std::size_t>(file.read_some(offset_ - bytes, now.data(), bytes)));
  return now == tail_;
}

GrowingFile::News GrowingFile::read() {
  News news;
  const std::unique_ptr<InputFile> file = open_if_there(path_);
  if (!file || !has_known_tail(*file)) {
    news.anew = offset_ > 0;
    offset_ = 0;
    tail_.clear();
  }
  if (!file) return news;
  for (std::int64_t block = usual_block;; block *= 4) {
    std::string text(static_cast<std::size_t>(std::clamp<std::int64_t>(file->size() - offset_, 0, block)), '\0');
    const auto wanted = static_cast<std::int64_t>(text.size());
    text.resize(static_cast<std::size_t>(file->read_some(offset_, text.data(), wanted)));
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      news.lines.push_back(text.substr(begin, end - begin));
    }
    if (begin == 0 && wanted == block) {  // the line may go on
      if (block < longest_line) continue;
      throw Error(ErrorKind::config, SourceLocation{path_}, "has a line that is too long for a run's record",
                  "name the directory of a run");
    }
    offset_ += static_cast<std::int64_t>(begin);
    tail_ = begin == 0 ? tail_ : text.substr(begin - std::min(begin, tail_bytes), std::min(begin, tail_bytes));
    news.more = wanted == block;
    return news;
  }
}

}  // namespace trainctl
