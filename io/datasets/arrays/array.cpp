// Converts the elements of stored arrays.
#include "io/datasets/arrays/array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/base/format.h"
#include "io/datasets/arrays/float32.h"

namespace trainctl {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
T load(const std::byte* from, bool swap) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

// The bits of a float16, for which C++20 has no type.
struct Float16 {
  std::uint16_t bits;

  template <class To>
  explicit operator To() const {
    return static_cast<To>(from_float16(bits));
  }
};

// Returns the index of an element as NumPy writes it: [2, 0, 7].
std::string index_text(const Shape& shape, std::int64_t element) {
  std::string text;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    text = std::to_string(element % shape[i]) + (text.empty() ? "" : ", ") + text;
    element /= shape[i];
  }
  return "[" + text + "]";
}

// Throws NonFiniteError if a finite element became infinite.
void check_range(const Array& array, const std::byte* from, std::int64_t first, std::int64_t count, const float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isinf(to[i])) continue;
    const auto value = load<double>(from + i * static_cast<std::int64_t>(sizeof(double)), array.big_endian);
    if (std::isinf(value)) continue;
    throw NonFiniteError(
        ErrorKind::data, SourceLocation{array.path},
        format("holds {} at index {}, which is {}", value, index_text(array.shape, first + i), beyond_float32));
  }
}

// Converts `count` elements at `from`, the first of which is element `first` of the array.
template <class T, class To>
void convert_elements(const Array& array, const std::byte* from, std::int64_t first, std::int64_t count, To* to) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(load<T>(from + i * each, array.big_endian));
  if constexpr (std::is_same_v<T, double> && std::is_same_v<To, float>) check_range(array, from, first, count, to);
}

template <class T, class To>
void convert_as(const Array& array, std::int64_t first, std::int64_t count, To* to) {
  constexpr auto each = static_cast<std::int64_t>(sizeof(T));
  if (const std::byte* memory = array.bytes.in_memory()) {
    return convert_elements<T>(array, memory + first * each, first, count, to);
  }
  std::byte piece[16384];
  constexpr std::int64_t max_elements = sizeof piece / each;
  for (std::int64_t done = 0; done < count; done += max_elements) {
    const std::int64_t now = std::min(max_elements, count - done);
    array.bytes.read((first + done) * each, piece, now * each);
    convert_elements<T>(array, piece, first + done, now, to + done);
  }
}

template <class To>
void convert_to(const Array& array, std::int64_t first, std::int64_t count, To* to) {
  switch (array.type) {
    case ElementType::uint8:
      return convert_as<std::uint8_t>(array, first, count, to);
    case ElementType::int8:
      return convert_as<std::int8_t>(array, first, count, to);
    case ElementType::uint16:
      return convert_as<std::uint16_t>(array, first, count, to);
    case ElementType::int16:
      return convert_as<std::int16_t>(array, first, count, to);
    case ElementType::uint32:
      return convert_as<std::uint32_t>(array, first, count, to);
    case ElementType::int32:
      return convert_as<std::int32_t>(array, first, count, to);
    case ElementType::uint64:
      return convert_as<std::uint64_t>(array, first, count, to);
    case ElementType::int64:
      return convert_as<std::int64_t>(array, first, count, to);
    case ElementType::float32:
      return convert_as<float>(array, first, count, to);
    case ElementType::float64:
      return convert_as<double>(array, first, count, to);
    case ElementType::float16:
      return convert_as<Float16>(array, first, count, to);
  }
}

}  // namespace

std::int64_t size_of(ElementType type) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::int8:
      return 1;
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::float16:
      return 2;
    case ElementType::uint32:
    case ElementType::int32:
    case ElementType::float32:
      return 4;
    case ElementType::uint64:
    case ElementType::int64:
    case ElementType::float64:
      return 8;
  }
  return 0;
}

void convert(const Array& array, std::int64_t first, std::int64_t count, float* to) {
  convert_to(array, first, count, to);
}
void convert(const Array& array, std::int64_t first, std::int64_t count, std::int64_t* to) {
  require(is_integer(array.type), "the labels are not integers");
  convert_to(array, first, count, to);
}

std::int64_t checked_bytes(const Shape& shape, std::int64_t element_bytes, const std::string& path) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 60;
  std::int64_t bytes = element_bytes;
  for (std::int64_t size : shape.sizes()) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes) || bytes > max_bytes) {
      data_error(path, "its header has an impossible shape", "get the file again");
    }
  }
  return bytes;
}

}  // namespace trainctl
