// Computes the hash with which a resumed run recognizes its data. The hash covers contents, not folder names and times,
// which change when data is copied. For large data, only a part of the content is read, which is always the same part.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// Returns a hash of the size and the content. Content of up to 256 MiB is read in full; of larger content, 64 MiB are
// read in pieces that are spread over it.
std::uint64_t content_hash(const Bytes& bytes);

struct FileContents {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t)> path;
  bool skip_unreadable =
      false;  // true: an unreadable file counts as a file without content; false: its error is thrown
};

// Returns a hash of the files' sizes and contents. The hash covers all files if there are at most 65,536, otherwise
// 4,096 files: their sizes, and at most 4 MiB of the content of each file and 256 MiB in all.
std::uint64_t content_hash(const FileContents& files);

}  // namespace trainctl
