// Compares copies of convolutions' kernels to and from oneDNN's blocked layouts with oneDNN's reorders.
#include "core/backend/cpu/onednn/blocked_copy.h"

#include <random>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/runtime/processor.h"
#include "test/catch.h"

namespace trainctl::test::blocked_copy_test {
namespace {

using cpu::BlockedCopy;
using cpu::onednn::memory;
using Dims = cpu::onednn::Dims;

// The logical layout of a kernel (O, I, positions...): [positions..., I, O].
memory::desc logical(const Dims& dims) {
  Dims strides(dims.size());
  strides[0] = 1;
  strides[1] = dims[0];
  std::int64_t stride = dims[0] * dims[1];
  for (std::size_t axis = dims.size(); axis-- > 2; stride *= dims[axis]) strides[axis] = stride;
  return {dims, memory::data_type::f32, strides};
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// oneDNN's reorder of the values.
std::vector<float> reordered(const memory::desc& from, const memory::desc& to, std::vector<float> values) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<float> result(values.size());
  memory source(from, engine, values.data()), target(to, engine, result.data());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
  return result;
}

}  // namespace

TEST_CASE("copies of kernels to and from blocks of channels equal oneDNN's reorders") {
  if (cpu::instruction_set() != cpu::InstructionSet::avx512) return;
  using Tag = memory::format_tag;
  struct Case {
    Dims dims;
    Tag tag;
  };
  const Case cases[] = {{{32, 48, 3, 3}, Tag::OIhw16i16o},   {{64, 16, 1, 1}, Tag::OIhw16o16i},
                        {{48, 32, 2, 5}, Tag::IOhw16o16i},   {{16, 16, 3, 3}, Tag::OIhw16o16i},
                        {{512, 576, 1, 1}, Tag::OIhw16o16i},  // larger than the caches: stored past them
                        {{576, 512, 1, 1}, Tag::OIhw16i16o}, {{32, 16, 2, 3, 2}, Tag::OIdhw16i16o}};
  for (const Case& c : cases) {
    const memory::desc plain = logical(c.dims), blocked(c.dims, memory::data_type::f32, c.tag);
    const std::size_t count = plain.get_size() / sizeof(float);
    CAPTURE(c.dims);
    for (int threads : {1, 2}) {
      cpu::prepare_compute_threads(threads);
      for (bool to_blocked : {true, false}) {
        const memory::desc &from = to_blocked ? plain : blocked, &to = to_blocked ? blocked : plain;
        const std::vector<float> values = random_values(count, 1), expected = reordered(from, to, values);
        const auto copy = BlockedCopy::between(from, to);
        REQUIRE(copy);
        for (std::size_t shift : {0, 1}) {  // aligned to 64 bytes, and not
          std::vector<float> space(count + 17);
          const auto address = reinterpret_cast<std::uintptr_t>(space.data());
          float* result = space.data() + (64 - address % 64) % 64 / sizeof(float) + shift;
          copy->run(values.data(), result);
          CHECK(std::equal(expected.begin(), expected.end(), result));
        }
        if (to_blocked) continue;
        const std::vector<float> old = random_values(count, 2);
        std::vector<float> sum = old;
        copy->run(values.data(), sum.data(), true);
        for (std::size_t i = 0; i < count; ++i) REQUIRE(sum[i] == old[i] + expected[i]);
      }
    }
  }
}

TEST_CASE("kernels of other layouts and numbers of channels are left to oneDNN's reorders") {
  using Tag = memory::format_tag;
  const auto type = memory::data_type::f32;
  const Dims dims{32, 32, 3, 3}, odd{32, 24, 3, 3};
  const memory::desc blocked(dims, type, Tag::OIhw16i16o);
  CHECK_FALSE(BlockedCopy::between(logical(dims), {dims, type, Tag::OIhw8i8o}));
  CHECK_FALSE(BlockedCopy::between(logical(odd), {odd, type, Tag::OIhw16i16o}));
  CHECK_FALSE(BlockedCopy::between({dims, type, Tag::oihw}, blocked));
  CHECK_FALSE(BlockedCopy::between(blocked, {dims, type, Tag::OIhw16o16i}));
  CHECK_FALSE(BlockedCopy::between(logical(dims), {dims, memory::data_type::bf16, Tag::OIhw16i16o}));
}

}  // namespace trainctl::test::blocked_copy_test
