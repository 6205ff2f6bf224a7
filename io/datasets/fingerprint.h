// The hash by which a resumed run recognizes its data: of contents, not of folder names and times, which change when
// data is copied. Reading is bounded: beyond the bound a sample of the content is read, always the same one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// A hash of the size and the content: of all bytes up to 256 MiB, otherwise of 64 MiB in pieces from the whole content.
std::uint64_t content_hash(const Bytes& bytes);

struct FileContents {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t)> path;
  bool skip_unreadable = false;  // an unreadable file then counts as one without content; otherwise its error is thrown
};

// A hash of the files' sizes and contents. Of up to 65,536 files all are looked at, otherwise 4,096 of them: their
// sizes, and at most 4 MiB of each and 256 MiB together of their contents.
std::uint64_t content_hash(const FileContents& files);

}  // namespace trainctl
