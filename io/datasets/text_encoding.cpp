// Tells encodings of text apart by their first bytes.
#include "io/datasets/text_encoding.h"

#include <algorithm>

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// The name of the encoding; null for others than UTF-16 and UTF-32.
const char* wide_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return "UTF-16";
  const std::size_t looked_at = std::min<std::size_t>(text.size(), 64), half = looked_at / 2;
  const auto zeros = [&](std::size_t first) {
    std::size_t found = 0;
    for (std::size_t i = first; i < looked_at; i += 2) found += text[i] == '\0';
    return found;
  };
  if (half < 2 || zeros(0) + zeros(1) < half - half / 4) return nullptr;
  return zeros(1) > zeros(0) ? "UTF-16LE" : "UTF-16BE";
}

}  // namespace

void refuse_wide_encoding(const std::string& path, std::string_view first_bytes) {
  const char* encoding = wide_encoding(first_bytes);
  if (encoding == nullptr) return;
  data_error(path, format("is text in the encoding {}, but must be UTF-8", encoding),
             format("convert it: iconv -f {} -t UTF-8 {} > {}", encoding, shell_word(path),
                    shell_word(name_of_copy(path, "utf8"))));
}

}  // namespace trainctl
