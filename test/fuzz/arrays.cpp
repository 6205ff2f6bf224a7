// Reads arrays: idx, npy, npz and zip.
#include <algorithm>
#include <array>

#include "io/datasets/arrays/array.h"
#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/arrays/zip.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

// Reads the first and the last values of an array.
void read_values(const Array& array) {
  const std::int64_t count = array.shape.count();
  expect(array.bytes.size() == count * array.element_bytes(), "the size of an array differs from its shape");
  std::array<float, 100> values{};
  std::array<std::int64_t, 100> numbers{};
  const std::int64_t some = std::min<std::int64_t>(count, std::ssize(values));
  for (const std::int64_t first : {std::int64_t{0}, count - some}) {
    convert(array, first, some, values.data());
    if (is_integer(array.type)) convert(array, first, some, numbers.data());
  }
}

}  // namespace

void fuzz_idx(std::string_view bytes) { read_values(read_idx(file_of(bytes, "x.idx"))); }

void fuzz_npy(std::string_view bytes) { read_values(read_npy(file_of(bytes, "x.npy"))); }

void fuzz_npz(std::string_view bytes) {
  const std::string path = file_of(bytes, "x.npz");
  has_npz_array(path, "y");
  read_values(read_npz(path, "x"));
}

void fuzz_zip(std::string_view bytes) {
  const Bytes archive = in_memory(bytes);
  const std::vector<ZipMember> members = list_zip(archive, "x.zip");
  for (std::size_t i = 0; i < std::min<std::size_t>(4, members.size()); ++i) {
    expect(zip_prefix(archive, members[i], 100, "x.zip").size() <= 100, "a prefix is too long");
    expect(zip_bytes(archive, members[i], "x.zip").size() == members[i].size, "a member has another size");
  }
}

}  // namespace trainctl::fuzz
