// Runs one op on a backend with inputs and outputs in float64, for all dtypes and layouts that a kernel may require.
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

// Random values, uniform in [low, high) and rounded to the dtype; the same seed has the same values.
Value random_value(const Shape& shape, DType dtype, std::uint64_t seed, double low = -1, double high = 1);
// Random integers in [0, bound).
Value random_integers(const Shape& shape, DType dtype, std::uint64_t seed, std::int64_t bound);
// Row `number` of a value, along its last dimension.
std::vector<double> row_of(const Value& value, std::size_t number);
// A tensor of one dimension with float32 numbers.
Value row(std::vector<double> values);
Value scalar(double value, DType dtype = DType::float32);

// Creates the backend under test: the CPU backend, or the CUDA backend in test-cuda, which has the same cases.
std::unique_ptr<Backend> backend_under_test(const BackendOptions& options = {});

// These functions write and read values in memory in their dtype.
void write_values(const Value& value, void* memory);
Value read_values(const TensorType& type, const void* memory);
double round_to(DType dtype, double value);

// Lowers the op for inputs in their logical layouts, reorders them if the lowering requires it, runs the op once, and
// returns the outputs in logical layout. `initial` has the outputs' values before the op; an output without them is
// filled with bytes of 0xff (NaN for floats). Outputs share the memory of inputs where OpDef::in_place() allows it, or
// have memory of their own.
enum class OutputPlaces { apart, in_place };
std::vector<Value> run_op(Backend& backend, std::shared_ptr<const OpDef> def, const std::vector<Value>& inputs,
                          const std::vector<Value>& initial = {}, KernelChoices* choices = nullptr,
                          Lowering* lowering_out = nullptr, OutputPlaces places = OutputPlaces::apart);

// For the input gradient of a convolution that adds its result to another gradient: the op that only computes its
// result. Null for other ops. Backends that do not add gradients run this op and an addition, like lowering.
std::shared_ptr<const OpDef> gradient_without_sum(const OpDef& def);

// Largest |a - b| / (1 + |b|).
double largest_error(const Value& a, const std::vector<double>& b);

}  // namespace trainctl::test
