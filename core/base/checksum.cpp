// Writes and checks the line that holds the checksum.
#include "core/base/checksum.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {
namespace {

std::string head_of(std::string_view kind, std::string_view lines) {
  return format("trainctl {} 1 {:016x}\n", kind, xxh3(lines.data(), lines.size()));
}

}  // namespace

std::string with_checksum(std::string_view kind, std::string_view lines) {
  return head_of(kind, lines) + std::string(lines);
}

std::string_view checked_lines(std::string_view kind, std::string_view text) {
  const std::size_t head = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view lines = text.substr(head);
  if (text.substr(0, head) != head_of(kind, lines)) {
    throw Error(ErrorKind::data, "its first line does not hold the checksum of the lines after it");
  }
  return lines;
}

}  // namespace trainctl
