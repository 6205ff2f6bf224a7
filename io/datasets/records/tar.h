// Tar archives: the places of their files, by POSIX ustar and pax headers and GNU's long names.
//
// trainctl reads tar without a library: the reader is tested with damaged archives, of which it reports each as one
// error, and samples are read at random offsets, where libraries read an archive from front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/datasets/cursor.h"

namespace trainctl {

// A regular file in an archive: its path there, and its bytes in the archive.
struct TarMember {
  std::string name;
  std::int64_t offset = 0, size = 0;
};

// Called with every regular file of an archive, in order; it may move the cursor.
using VisitMember = std::function<void(Cursor& cursor, const TarMember& member)>;

// Passes the headers of an archive; archives that were joined are read one after another. Links, folders and devices
// are passed over. Throws Error{data}: the archive is compressed or cut off, a header is damaged, or there is no end
// mark.
void for_each_member(const std::string& path, const VisitMember& visit);

}  // namespace trainctl
