// Finds an unfinished character at the end of a text by its lead byte.
#include "io/text/utf8_tail.h"

#include <algorithm>

namespace trainctl {

std::size_t unfinished_bytes(const std::string& text) {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= most; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte < 0xf5 && back < length ? back : 0;
  }
  return 0;
}

void Utf8Tail::add(std::string_view bytes, std::string& text) {
  held_ += bytes;
  const std::size_t rest = unfinished_bytes(held_);
  text.append(held_, 0, held_.size() - rest);
  held_.erase(0, held_.size() - rest);
}

}  // namespace trainctl
