// What a data set's content is recognised by when a run goes on: not names of folders and times, which change when data
// is copied. Reading is bounded: of what is beyond the bound a sample is read, the same one every time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/datasets/bytes.h"

namespace trainctl {

// A hash of size and content: of all bytes up to 256 MiB, otherwise of 64 MiB of them in pieces from all over.
std::uint64_t content_hash(const Bytes& bytes);

struct FileContents {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t)> path;
  bool skip_unreadable = false;  // such a file counts as one without content; otherwise it throws
};

// A hash of the files' sizes and contents. Of up to 65,536 files all sizes and up to 256 MiB of content are read,
// otherwise those of 4,096 of them; of each file at most 4 MiB.
std::uint64_t content_hash(const FileContents& files);

}  // namespace trainctl
