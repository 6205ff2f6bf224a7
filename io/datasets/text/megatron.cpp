// Reads the index of Megatron-LM's data sets.
#include "io/datasets/text/megatron.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/checked.h"
#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/text/mapped_file.h"

namespace trainctl {
namespace {

// The beginning of an .idx file: magic word, version, type of the ids, numbers of sequences and of marks of documents.
constexpr std::string_view megatron_magic("MMIDIDX\0\0", 9);
constexpr std::int64_t version_at = 9, type_at = 17, sequences_at = 18, marks_at = 26, header_bytes = 34;

[[noreturn]] void refuse_index(const std::string& index, const std::string& what) {
  data_error(index, what, "write both files again with Megatron-LM's preprocess_data.py, or copy them again");
}

// The type of a code of the format; other codes are types that are not whole numbers.
ElementType megatron_type(int code, const std::string& index) {
  constexpr ElementType types[] = {ElementType::uint8, ElementType::int8, ElementType::int16, ElementType::int32,
                                   ElementType::int64};
  constexpr int uint16_code = 8;
  if (code >= 1 && code <= std::ssize(types)) return types[code - 1];
  if (code == uint16_code) return ElementType::uint16;
  refuse_index(index, format("says that the ids have the type {}, which is no type of whole numbers", code));
}

// Reads value i of the list of T that begins at an offset.
template <class T>
T value_at(const Bytes& bytes, std::int64_t offset, std::int64_t i = 0) {
  T value;
  bytes.read(offset + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
  return value;
}

}  // namespace

TokenStream open_megatron(const std::string& tokens, const std::string& index) {
  const Bytes bytes = map_file(index), ids = map_file(tokens);
  if (bytes.size() < header_bytes) refuse_index(index, "is cut short");
  if (std::memcmp(bytes.in_memory(), megatron_magic.data(), megatron_magic.size()) != 0) {
    refuse_index(index, "is no index of Megatron-LM: it does not begin with MMIDIDX");
  }
  const auto version = value_at<std::uint64_t>(bytes, version_at);
  if (version != 1) refuse_index(index, format("has version {}, and version 1 is read", version));
  const ElementType type = megatron_type(value_at<std::uint8_t>(bytes, type_at), index);
  const auto sequences = value_at<std::int64_t>(bytes, sequences_at), marks = value_at<std::int64_t>(bytes, marks_at);
  const std::int64_t longest = bytes.size() / 4;  // more entries than this cannot be in the file
  if (sequences < 0 || sequences > longest || marks < 1 || marks > longest) {
    refuse_index(index, format("says that it has {} sequences and {} marks of documents", sequences, marks));
  }
  const std::int64_t sizes = header_bytes, pointers = sizes + sequences * 4, documents = pointers + sequences * 8;
  const std::int64_t expected = documents + marks * 8;
  if (bytes.size() != expected) {
    refuse_index(index, format("has {} bytes, but {} sequences and {} documents take {}", bytes.size(), sequences,
                               marks - 1, expected));
  }
  const std::int64_t each = size_of(type);
  std::vector<std::int64_t> ends;
  std::int64_t count = 0, sequence = 0;
  for (std::int64_t d = 0; d < marks; ++d) {
    const auto mark = value_at<std::int64_t>(bytes, documents, d);
    if (mark < sequence || mark > sequences || (d == 0 && mark != 0) || (d == marks - 1 && mark != sequences)) {
      refuse_index(index, format("document {} begins at sequence {}, which is out of order", d, mark));
    }
    for (; sequence < mark; ++sequence) {
      const auto size = value_at<std::int32_t>(bytes, sizes, sequence);
      if (size < 0 || value_at<std::int64_t>(bytes, pointers, sequence) != count * each) {
        refuse_index(index, format("sequence {} does not follow the one before it", sequence));
      }
      count += size;
    }
    if (count > (ends.empty() ? 0 : ends.back())) ends.push_back(count);
  }
  if (count == 0) data_error(tokens, "holds no tokens");
  if (ids.size() != checked_multiply(count, each)) {
    data_error(tokens,
               format("has {} bytes, but its index {} describes {} tokens of {} bytes", ids.size(), index, count, each),
               "the files do not belong together, or one was cut short: copy both again");
  }
  TokenStream stream;
  stream.tokens = {tokens, {count}, type, false, ids};
  stream.documents = DocumentEnds(bytes_of(std::move(ends)));
  return stream;
}

}  // namespace trainctl
