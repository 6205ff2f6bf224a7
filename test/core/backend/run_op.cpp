// Runs one op on a backend.
#include "test/core/backend/run_op.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/program/program.h"

namespace trainctl::test {
namespace {

// Rounds to nearest even in float64, independently of the conversion in core.
std::uint16_t to_bfloat16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7fc0;
  const double low = std::bit_cast<float>(bits & 0xffff0000u),
               high = std::bit_cast<float>((bits & 0xffff0000u) + 0x10000u);
  const double below = std::abs(value - low), above = std::abs(high - value);
  const bool up = above < below || (above == below && ((bits >> 16) & 1) != 0);
  return static_cast<std::uint16_t>((bits >> 16) + (up ? 1 : 0));
}

// Rounds to a multiple of the distance between neighbouring float16 numbers, which is constant below 2^-14.
double to_float16(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), -14) - 10);
  const double rounded = std::nearbyint(value / step) * step;
  return std::abs(rounded) < 65536 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

std::uint16_t float16_bits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::abs(to_float16(value));
  if (std::isnan(size)) return 0x7e00;
  if (std::isinf(size)) return sign | 0x7c00;
  const int exponent = size == 0 ? -15 : std::max(std::ilogb(size), -15);
  const double mantissa = exponent < -14 ? std::ldexp(size, 24) : std::ldexp(size, 10 - exponent) - 1024;
  return static_cast<std::uint16_t>(sign | std::max(exponent + 15, 0) << 10 | static_cast<int>(mantissa));
}

double from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31  ? (mantissa == 0 ? std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::quiet_NaN())
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
void put(void* memory, std::size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(memory) + i * sizeof(T), &value, sizeof(T));
}
template <class T>
T get(const void* memory, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(memory) + i * sizeof(T), sizeof(T));
  return value;
}

std::vector<std::byte> bytes_of(const Value& value) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(value.type.bytes()));
  write_values(value, bytes.data());
  return bytes;
}

template <class Gradient>
std::shared_ptr<const OpDef> without_sum(const OpDef& def) {
  const auto* gradient = dynamic_cast<const Gradient*>(&def);
  if (gradient == nullptr || !gradient->accumulate) return nullptr;
  return std::make_shared<Gradient>(gradient->window, gradient->groups, gradient->input);
}

}  // namespace

double round_to(DType dtype, double value) {
  if (dtype == DType::bfloat16) return std::bit_cast<float>(static_cast<std::uint32_t>(to_bfloat16(value)) << 16);
  if (dtype == DType::float16) return to_float16(value);
  return dtype == DType::float32 ? static_cast<double>(static_cast<float>(value)) : value;
}

Value random_value(const Shape& shape, DType dtype, std::uint64_t seed, double low, double high) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> distribution(low, high);
  Value value{{shape, dtype}, std::vector<double>(static_cast<std::size_t>(shape.count()))};
  for (double& v : value.values) v = round_to(dtype, distribution(engine));
  return value;
}

Value random_integers(const Shape& shape, DType dtype, std::uint64_t seed, std::int64_t bound) {
  Value value = random_value(shape, DType::float64, seed, 0, static_cast<double>(bound));
  value.type.dtype = dtype;
  for (double& v : value.values) v = std::floor(v);
  return value;
}

std::vector<double> row_of(const Value& value, std::size_t number) {
  const std::int64_t width = value.type.shape.back();
  const auto first = value.values.begin() + static_cast<std::ptrdiff_t>(number) * width;
  return {first, first + width};
}

Value row(std::vector<double> values) {
  Value value{{Shape{static_cast<std::int64_t>(values.size())}, DType::float32}, std::move(values)};
  for (double& v : value.values) v = round_to(DType::float32, v);
  return value;
}

Value scalar(double value, DType dtype) { return {{Shape{}, dtype}, {round_to(dtype, value)}}; }

void write_values(const Value& value, void* memory) {
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    const double v = value.values[i];
    switch (value.type.dtype) {
      case DType::float32:
        put(memory, i, static_cast<float>(v));
        break;
      case DType::bfloat16:
        put(memory, i, to_bfloat16(v));
        break;
      case DType::float16:
        put(memory, i, float16_bits(v));
        break;
      case DType::int32:
        put(memory, i, static_cast<std::int32_t>(v));
        break;
      case DType::int64:
        put(memory, i, static_cast<std::int64_t>(v));
        break;
      case DType::uint8:
        put(memory, i, static_cast<std::uint8_t>(v));
        break;
      default:
        require(false, "dtype of a test value");
    }
  }
}

Value read_values(const TensorType& type, const void* memory) {
  Value value{type, std::vector<double>(static_cast<std::size_t>(type.shape.count()))};
  for (std::size_t i = 0; i < value.values.size(); ++i) {
    double& v = value.values[i];
    switch (type.dtype) {
      case DType::float32:
        v = get<float>(memory, i);
        break;
      case DType::bfloat16:
        v = std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(memory, i)) << 16);
        break;
      case DType::float16:
        v = from_float16(get<std::uint16_t>(memory, i));
        break;
      case DType::uint8:
        v = get<std::uint8_t>(memory, i);
        break;
      case DType::int32:
        v = get<std::int32_t>(memory, i);
        break;
      case DType::int64:
        v = static_cast<double>(get<std::int64_t>(memory, i));
        break;
      default:
        require(false, "dtype of a test value");
    }
  }
  return value;
}

std::vector<Value> run_op(Backend& backend, std::shared_ptr<const OpDef> def, const std::vector<Value>& inputs,
                          const std::vector<Value>& initial, KernelChoices* choices, Lowering* lowering_out,
                          OutputPlaces places) {
  KernelChoices own_choices;
  KernelChoices& used = choices ? *choices : own_choices;
  const auto stream = backend.compute_stream();
  // NVIDIA's libraries, when they are loaded, may switch the thread to treat denormal numbers as zero.
  const auto keep_denormals = [] { std::fesetenv(FE_DFL_ENV); };
  keep_denormals();
  Program program;
  Op op{std::move(def), {}, {}, "op", {}};
  std::vector<TensorType> types;
  std::vector<Layout> layouts;
  for (const Value& input : inputs) {
    types.push_back(input.type);
    layouts.push_back(logical_layout(input.type));
    op.inputs.push_back(static_cast<TensorId>(program.tensors.size()));
    program.tensors.push_back({.name = "input", .type = input.type});
  }
  const std::vector<TensorType> results = op.def->outputs(types);
  for (const TensorType& type : results) {
    op.outputs.push_back(static_cast<TensorId>(program.tensors.size()));
    program.tensors.push_back({.name = "output", .type = type});
  }
  const Lowering lowering = backend.lower(op, program, layouts, used);
  if (lowering_out) *lowering_out = lowering;

  std::vector<Memory> memory;
  const auto allocate = [&](std::int64_t bytes) {
    memory.push_back(backend.allocate(bytes));
    return Address{memory.back().get(), 0};
  };
  const auto upload = [&](const std::vector<std::byte>& bytes, Address to) {
    backend.copy(to.fixed, bytes.data(), static_cast<std::int64_t>(bytes.size()), *stream);
    stream->synchronize();
  };
  const auto fill = [&](Address to, std::int64_t bytes) {  // NaN in floating-point types
    upload(std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xff}), to);
  };
  const auto reorder = [&](TensorId id, const Layout& from, const Layout& to, Address source) {
    Program with_copy = program;
    with_copy.tensors.push_back(program.tensor(id));
    with_copy.tensors.back().type.dtype = to.dtype;
    const Op copy{std::make_shared<Reorder>(to), {id}, {static_cast<TensorId>(program.tensors.size())}, "reorder", {}};
    const Lowering how = backend.lower(copy, with_copy, {from}, used);
    const Address target = allocate(to.bytes);
    how.bind({{source}, {target}, allocate(how.workspace_bytes)})->run(*stream, {});
    return target;
  };

  Binding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Address address = allocate(inputs[i].type.bytes());
    upload(bytes_of(inputs[i]), address);
    if (!(lowering.inputs[i] == layouts[i])) address = reorder(op.inputs[i], layouts[i], lowering.inputs[i], address);
    binding.inputs.push_back(address);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Address address = allocate(lowering.outputs[i].bytes);
    fill(address, lowering.outputs[i].bytes);
    if (i < initial.size() && !initial[i].values.empty()) upload(bytes_of(initial[i]), address);
    binding.outputs.push_back(address);
  }
  if (places == OutputPlaces::in_place) {
    for (const InPlace& pair : op.def->in_place()) {
      const auto input = static_cast<std::size_t>(pair.input), output = static_cast<std::size_t>(pair.output);
      const Layout &from = lowering.inputs[input], &to = lowering.outputs[output];
      if (from == to && from.bytes == to.bytes) binding.outputs[output] = binding.inputs[input];
    }
  }
  binding.workspace = allocate(lowering.workspace_bytes);
  fill(binding.workspace, lowering.workspace_bytes);
  lowering.bind(binding)->run(*stream, {});
  stream->synchronize();
  keep_denormals();

  std::vector<Value> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Address address = binding.outputs[i];
    const Layout logical = logical_layout(results[i]);
    if (!(lowering.outputs[i] == logical)) address = reorder(op.outputs[i], lowering.outputs[i], logical, address);
    std::vector<std::byte> bytes(static_cast<std::size_t>(logical.bytes));
    backend.copy(bytes.data(), address.fixed, logical.bytes, *stream);
    stream->synchronize();
    outputs.push_back(read_values(results[i], bytes.data()));
  }
  return outputs;
}

std::shared_ptr<const OpDef> gradient_without_sum(const OpDef& def) {
  const auto of_images = without_sum<Conv2dGradInput>(def);
  return of_images ? of_images : without_sum<Conv3dGradInput>(def);
}

double largest_error(const Value& a, const std::vector<double>& b) {
  if (a.values.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double error = std::abs(a.values[i] - b[i]) / (1 + std::abs(b[i]));
    if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return largest;
}

}  // namespace trainctl::test
