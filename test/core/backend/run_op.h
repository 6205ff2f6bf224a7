// Runs one op on a backend with values given and returned in float64, whatever dtypes and layouts the kernel wants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/choices.h"
#include "core/graph/op.h"

namespace trainctl::test {

// A tensor's type and values in logical order, each representable in the dtype.
struct Value {
  TensorType type;
  std::vector<double> values;
};

// Uniform in [low, high), rounded to the dtype; the seed makes it reproducible.
Value random_value(const Shape& shape, DType dtype, std::uint64_t seed, double low = -1, double high = 1);
// Integers in [0, bound).
Value random_integers(const Shape& shape, DType dtype, std::uint64_t seed, std::int64_t bound);
// Row `number` of a value, along its last dimension.
std::vector<double> row_of(const Value& value, std::size_t number);
// A row of float32 numbers.
Value row(std::vector<double> values);
Value scalar(double value, DType dtype = DType::float32);

// The backend that this program tests: the CPU's, or CUDA's in test-cuda, which is made of the same cases.
std::unique_ptr<Backend> backend_under_test(const BackendOptions& options = {});

// Writes and reads memory in a dtype.
void write_values(const Value& value, void* memory);
Value read_values(const TensorType& type, const void* memory);
double round_to(DType dtype, double value);

// Lowers the op for inputs in their logical layouts, reorders them where the lowering asks for it, runs it once, and
// returns the outputs in logical layout. `initial` are the outputs' values before; zeros (NaN for floats) where it is
// empty. Outputs lie where the op's inputs do as OpDef::in_place() allows it, or all apart.
enum class OutputPlaces { apart, in_place };
std::vector<Value> run_op(Backend& backend, std::shared_ptr<const OpDef> def, const std::vector<Value>& inputs,
                          const std::vector<Value>& initial = {}, KernelChoices* choices = nullptr,
                          Lowering* lowering_out = nullptr, OutputPlaces places = OutputPlaces::apart);

// Largest |a - b| / (1 + |b|).
double largest_error(const Value& a, const std::vector<double>& b);

}  // namespace trainctl::test
