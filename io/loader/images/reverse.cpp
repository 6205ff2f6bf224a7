// Reverses the order of pixels of three bytes each, as colour images have them.
#include "io/loader/images/reverse.h"

namespace trainctl {
namespace {

// x86-64 has byte shuffles since SSSE3, which is tested at run time; for other processors the compiler decides.
#if defined(__x86_64__)
#define TRAINCTL_BYTE_SHUFFLES [[gnu::target("ssse3")]]
bool has_byte_shuffles() {
  static const bool has = __builtin_cpu_supports("ssse3");
  return has;
}
#else
#define TRAINCTL_BYTE_SHUFFLES
constexpr bool has_byte_shuffles() { return true; }
#endif

// Reverses five pixels at a time while at least one more follows, and returns the number of reversed pixels. Each step
// reads and writes 16 bytes: the extra byte that is read belongs to the preceding pixel, and the extra byte that is
// written is overwritten by the next pixel.
TRAINCTL_BYTE_SHUFFLES std::int64_t reverse_fives(const std::byte* last, std::int64_t pixels, std::byte* to) {
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  std::int64_t i = 0;
  for (; i + 6 <= pixels; i += 5) {
    Bytes bytes;
    std::memcpy(&bytes, last - 3 * i - 13, sizeof bytes);
    bytes = __builtin_shufflevector(bytes, bytes, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    std::memcpy(to + 3 * i, &bytes, sizeof bytes);
  }
  return i;
}

}  // namespace

void reverse_triples(const std::byte* last, std::int64_t pixels, std::byte* to) {
  for (std::int64_t i = has_byte_shuffles() ? reverse_fives(last, pixels, to) : 0; i < pixels; ++i) {
    std::memcpy(to + 3 * i, last - 3 * i, 3);
  }
}

}  // namespace trainctl
