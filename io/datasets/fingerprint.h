// Computes the hash by which a resumed run recognizes its data. It covers contents, not folder names and times, which
// change when data is copied. Of large data only a sample of the content is read, always the same one.
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

// Returns a hash of the files' sizes and contents. It covers all files if there are at most 65,536, otherwise 4,096 of
// them: all their sizes, and at most 4 MiB of the content of each and 256 MiB in all.
std::uint64_t content_hash(const FileContents& files);

}  // namespace trainctl
