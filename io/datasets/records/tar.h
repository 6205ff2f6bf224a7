// Finds the files in tar archives. Supports POSIX ustar and pax headers and GNU's long names.
//
// trainctl reads tar without a library: the reader reports a damaged archive as one error, which is tested, and samples
// are read at random offsets, whereas libraries read an archive from front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/datasets/cursor.h"

namespace trainctl {

// A regular file in an archive: its path, and the offset and number of its bytes in the archive.
struct TarMember {
  std::string name;
  std::int64_t offset = 0, size = 0;
};

// A function that is called for every regular file of an archive, in order; it may move the cursor.
using VisitMember = std::function<void(Cursor& cursor, const TarMember& member)>;

// Reads the headers of an archive and calls visit() for its regular files. Concatenated archives are read one after
// another. Links, folders and devices are skipped. Throws Error{data} if the archive is compressed or truncated, a
// header is damaged, or the end mark is missing.
void for_each_member(const std::string& path, const VisitMember& visit);

}  // namespace trainctl
