// Tells encodings of text, and files that are not text, apart by their first bytes.
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

struct Signature {
  std::string_view bytes, what, remedy;
};

// The first bytes of files that are mistaken for text.
constexpr Signature signatures[] = {
    {"\xFF\xD8\xFF", "a JPEG image", ""},
    {"\x89PNG\r\n", "a PNG image", ""},
    {"GIF87a", "a GIF image", ""},
    {"GIF89a", "a GIF image", ""},
    {"\x93NUMPY", "an array of NumPy", ""},
    {"\x89HDF\r\n", "an HDF5 file", ""},
    {"%PDF-", "a PDF file", ""},
    {"PAR1\x15", "a table of Parquet", ""},
    {"PK\x03\x04", "a zip archive or a file of Excel", "unpack the archive (unzip), or write the table as CSV"},
    {"\x1F\x8B", "compressed by gzip", "unpack it (gunzip)"},
    {"BZh91AY&SY", "compressed by bzip2", "unpack it (bunzip2)"},
    {"\xFD\x37zXZ", "compressed by xz", "unpack it (unxz)"},
};

}  // namespace

void refuse_other_than_text(const std::string& path, std::string_view first_bytes) {
  for (const Signature& signature : signatures) {
    if (!first_bytes.starts_with(signature.bytes)) continue;
    data_error(path, format("is {}, not text", signature.what), std::string(signature.remedy));
  }
  const char* encoding = wide_encoding(first_bytes);
  if (encoding == nullptr) return;
  data_error(path, format("is text in the encoding {}, but must be UTF-8", encoding),
             format("convert it: iconv -f {} -t UTF-8 {} > {}", encoding, shell_word(path),
                    shell_word(name_of_copy(path, "utf8"))));
}

}  // namespace trainctl
