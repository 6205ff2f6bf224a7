// Tests copy_all with copies of many sizes and alignments: it writes their target ranges and no other bytes.
#include <cstring>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::copies_test {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 3, 16, 17, 64, 255, 4096, 5003, 70001};
constexpr std::int64_t offsets[] = {0, 1, 4, 8};  // bytes from an address that is aligned to 16 bytes

struct Part {
  std::int64_t to = 0, from = 0, bytes = 0;
};

// Returns copies of every size at every pair of offsets, one after the other; `bytes` becomes the size of the source
// and of the target.
std::vector<Part> make_parts(std::int64_t& bytes) {
  std::vector<Part> parts;
  bytes = 0;
  for (const std::int64_t size : sizes) {
    for (const std::int64_t to : offsets) {
      for (const std::int64_t from : offsets) {
        parts.push_back({bytes + to, bytes + from, size});
        bytes += (size + 16 + 15) / 16 * 16;
      }
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("copy_all writes its target ranges and nothing else") {
  const auto backend = backend_under_test({});
  const auto stream = backend->compute_stream();
  std::int64_t bytes = 0;
  const std::vector<Part> parts = make_parts(bytes);
  std::vector<std::byte> values(static_cast<std::size_t>(bytes)), before(values.size(), std::byte{0xee}), got(before);
  std::uint32_t state = 1;
  for (std::byte& value : values) value = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  std::vector<std::byte> expected = before;
  for (const Part& part : parts) {
    std::memcpy(expected.data() + part.to, values.data() + part.from, static_cast<std::size_t>(part.bytes));
  }

  const Memory on_host = backend->allocate_host(bytes), on_device = backend->allocate(bytes);
  const Memory more_on_device = backend->allocate(bytes);
  const std::pair<const Memory*, const Memory*> ways[] = {
      {&on_host, &on_device}, {&on_device, &on_host}, {&on_device, &more_on_device}};
  for (const auto& [from, to] : ways) {
    for (const std::size_t at_once : {std::size_t{1}, std::size_t{5}, parts.size()}) {
      backend->copy(from->get(), values.data(), bytes, *stream);
      backend->copy(to->get(), before.data(), bytes, *stream);
      for (std::size_t first = 0; first < parts.size(); first += at_once) {
        std::vector<CopyRange> some;
        for (std::size_t i = first; i < std::min(first + at_once, parts.size()); ++i) {
          some.push_back({to->get() + parts[i].to, from->get() + parts[i].from, parts[i].bytes});
        }
        backend->copy_all(some, *stream);
      }
      backend->copy(got.data(), to->get(), bytes, *stream);
      stream->synchronize();
      CHECK(got == expected);
    }
  }
}

}  // namespace trainctl::test::copies_test
