// Holds back the bytes of an unfinished character at the end of a text that grows.
#pragma once

#include <string>

namespace trainctl {

// The number of bytes at the end of `text`, 0 to 3, that begin a character whose other bytes are missing.
std::size_t unfinished_bytes(const std::string& text);

// The unfinished character at the end of a stream of bytes.
class Utf8Tail {
 public:
  // Appends the bytes to `text`, after those held back, up to the last finished character.
  void add(std::string_view bytes, std::string& text);
  // Appends the bytes that are held back.
  void finish(std::string& text) { text += held_, held_.clear(); }

 private:
  std::string held_;
};

}  // namespace trainctl
