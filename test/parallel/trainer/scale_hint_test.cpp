// Tests that the advice on a first loss that is far too high fits the kind of data.
#include "parallel/trainer/hooks/scale_hint.h"

#include "core/program/program.h"
#include "test/catch.h"

namespace trainctl::scale_hint_test {
namespace {

Program reading(const std::vector<TensorType>& inputs) {
  Program program;
  for (const TensorType& type : inputs) {
    program.batch.inputs.push_back(program.add("input", type.shape, type.dtype, Role::input));
  }
  return program;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the advice on a first loss that is far too high fits images, columns, sequences and tokens") {
  const std::string images = scale_advice(reading({{{8, 28, 28, 1}, DType::uint8}}));
  CHECK(contains(images, "rescale: 1/255"));
  const std::string columns = scale_advice(reading({{{8, 12}, DType::float32}}));
  CHECK(contains(columns, "standardize: true"));
  CHECK_FALSE(contains(columns, "255"));
  const std::string sequences = scale_advice(reading({{{8, 100, 3}, DType::float32}}));
  CHECK(contains(sequences, "normalize: measured"));
  CHECK_FALSE(contains(sequences, "255"));
  const std::string tokens = scale_advice(reading({{{8, 64}, DType::int32}}));
  CHECK(contains(tokens, "initializers"));
  CHECK_FALSE(contains(tokens, "normalize"));
  // Numbers of categories beside columns of numbers: the columns need the scale.
  CHECK(scale_advice(reading({{{8}, DType::int32}, {{8, 12}, DType::float32}})) == columns);
}

}  // namespace trainctl::scale_hint_test
