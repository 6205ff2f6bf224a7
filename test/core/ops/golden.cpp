// Reads golden values and compares results with them.
#include "test/core/ops/golden.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::test {

Value Golden::at(const std::string& name) const {
  const StoredTensor* tensor = file_.header().find(name);
  require(tensor != nullptr, "no golden value " + name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor->bytes()));
  file_.read(*tensor, bytes.data());
  return read_values({tensor->shape, tensor->dtype}, bytes.data());
}

std::vector<Value> Golden::numbered(const std::string& prefix) const {
  std::vector<Value> values;
  while (has(prefix + std::to_string(values.size()))) values.push_back(at(prefix + std::to_string(values.size())));
  return values;
}

std::set<std::string> Golden::cases() const {
  std::set<std::string> names;
  for (const StoredTensor& tensor : file_.header().tensors) names.insert(tensor.name.substr(0, tensor.name.find('/')));
  return names;
}

Value in_dtype(Value value, DType dtype) {
  value.type.dtype = dtype;
  for (double& v : value.values) v = round_to(dtype, v);
  return value;
}

double magnitude(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

Deviation deviation(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return {infinity, infinity};
  const double typical = magnitude(b);
  std::vector<double> differences;
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    differences.push_back(a[i] - b[i]);
    if (a[i] == b[i]) continue;
    const double error = std::abs(a[i] - b[i]) / (std::abs(b[i]) + typical);
    if (!std::isfinite(error)) return {infinity, infinity};
    largest = std::max(largest, error);
  }
  return {largest, largest == 0 ? 0 : magnitude(differences) / typical};
}

void check_close(const Value& got, const Value& expected, DType dtype) {
  CHECK(to_string(got.type.shape) == to_string(expected.type.shape));
  const Deviation found = deviation(got.values, expected.values);
  CHECK(found.largest < (dtype == DType::bfloat16 ? 0x1p-6 : dtype == DType::float16 ? 0x1p-8 : 5e-6));
  CHECK(found.typical < (dtype == DType::bfloat16 ? 0.011 : dtype == DType::float16 ? 0.0014 : 1e-6));
}

}  // namespace trainctl::test
