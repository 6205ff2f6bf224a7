// Writes the CUDA C++ source of elementwise kernels.
#include "core/backend/cuda/runtime_compiled/source.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/backend/cuda/runtime_compiled/prelude.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
    case DType::int32:
      return "int";
    case DType::uint8:
      return "unsigned char";
    default:
      require(false, "elementwise: CUDA has no kernel for this dtype");
      return "";
  }
}

// In the order of ScalarFunction: the values of functions of the operands A, B and C. Inputs and constants have none.
constexpr std::string_view patterns[] = {"",
                                         "",
                                         "-A",
                                         "fabsf(A)",
                                         "sign_of(A)",
                                         "expf(A)",
                                         "expm1f(A)",
                                         "logf(A)",
                                         "log1pf(A)",
                                         "sqrtf(A)",
                                         "rsqrtf(A)",
                                         "1.0f / A",
                                         "sinf(A)",
                                         "cosf(A)",
                                         "tanf(A)",
                                         "atanf(A)",
                                         "tanhf(A)",
                                         "sigmoid_of(A)",
                                         "softplus_of(A)",
                                         "erff(A)",
                                         "floorf(A)",
                                         "ceilf(A)",
                                         "rintf(A)",
                                         "truth(A == 0)",
                                         "truth(A != A)",
                                         "truth(fabsf(A) <= 3.40282347e38f)",
                                         "A",
                                         "A + B",
                                         "A - B",
                                         "A * B",
                                         "A / B",
                                         "powf(A, B)",
                                         "maximum_of(A, B)",
                                         "minimum_of(A, B)",
                                         "mod_of(A, B)",
                                         "rintf((A - mod_of(A, B)) / B)",
                                         "truth(A < B)",
                                         "truth(A <= B)",
                                         "truth(A == B)",
                                         "truth(A != B)",
                                         "truth(A != 0 && B != 0)",
                                         "truth(A != 0 || B != 0)",
                                         "truth((A != 0) != (B != 0))",
                                         "A != 0 ? B : C"};
static_assert(std::size(patterns) == static_cast<std::size_t>(ScalarFunction::where) + 1);

// The value of a step that computes, from the values v0, v1, ... of other steps.
std::string value_of(const ScalarStep& step) {
  std::string text;
  for (const char c : patterns[static_cast<std::size_t>(step.function)]) {
    if (c >= 'A' && c <= 'C') {
      text += format("v{}", step.operands[static_cast<std::size_t>(c - 'A')]);
    } else {
      text += c;
    }
  }
  return text;
}

// The function `run`, which computes the results y0, y1, ... of one element from its inputs x0, x1, ...
std::string run_function(const ElementwiseProgram& program) {
  std::string parameters, body;
  for (int i = 0; i < program.inputs; ++i) parameters += format("{}float x{}", i > 0 ? ", " : "", i);
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    parameters += format("{}float& y{}", parameters.empty() ? "" : ", ", r);
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const ScalarStep& step = program.steps[i];
    std::string text;
    if (step.function == ScalarFunction::input) {
      text = format("x{}", step.index);
    } else if (step.function == ScalarFunction::constant) {
      const auto constant = static_cast<float>(step.value);
      text = format("__uint_as_float(0x{:08x}u) /* {} */", std::bit_cast<std::uint32_t>(constant), constant);
    } else {
      text = value_of(step);
    }
    body += format("  const float v{} = {};\n", i, text);
  }
  for (std::size_t r = 0; r < program.results.size(); ++r) body += format("  y{} = v{};\n", r, program.results[r]);
  return format("__device__ inline void run({}) {{\n{}}}\n", parameters, body);
}

// Writes the kernel: a loop over packs of `width` neighbouring elements.
class KernelWriter {
 public:
  explicit KernelWriter(const ElementwiseKernelSpec& spec) : spec_(spec), view_(spec.view) {
    const auto is_short = [](DType dtype) { return size_of(dtype) == 2; };
    const bool any_short = std::any_of(spec.inputs.begin(), spec.inputs.end(), is_short) ||
                           std::any_of(spec.outputs.begin(), spec.outputs.end(), is_short);
    width_ = any_short ? 8 : 4;
    has_rest_ = view_.is_flat() && view_.count() >= width_ && view_.count() % width_ != 0;
    while (!has_rest_ && view_.sizes.back() % width_ != 0) width_ /= 2;
  }

  std::int64_t packs() const { return (view_.count() + width_ - 1) / width_; }

  std::string text() const {
    const bool wide = view_.count() >= std::int64_t{1} << 30;
    std::string text = format("using Index = unsigned {};\n", wide ? "long long" : "int");
    text += format("struct Arguments {{\n  const void* inputs[{}];\n  void* outputs[{}];\n}};\n",
                   std::max<std::size_t>(1, spec_.inputs.size()), spec_.outputs.size());
    text += format("extern \"C\" __global__ void __launch_bounds__({}) {}(const Arguments of) {{\n",
                   elementwise_kernel_threads, elementwise_kernel_name);
    text += "  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;\n";
    text += format(
        "  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < {}; i += step) {{\n", packs());
    text += format("    const Index element = i * {};\n", width_);
    if (has_rest_) text += rest();
    text += pack();
    return text + "  }\n}\n";
  }

 private:
  bool is_same_in_pack(std::size_t input) const { return view_.strides[input].back() == 0; }

  std::string address(std::size_t input) const {
    return format("static_cast<const {}*>(of.inputs[{}])", type_name(spec_.inputs[input]), input);
  }
  std::string target(std::size_t output) const {
    return format("static_cast<{}*>(of.outputs[{}])", type_name(spec_.outputs[output]), output);
  }

  // The sum of the coordinates times the strides of an input.
  std::string offset(std::size_t input) const {
    std::string sum;
    for (std::size_t d = 0; d < view_.sizes.size(); ++d) {
      const std::int64_t stride = view_.strides[input][d];
      if (stride != 0) sum += format("{}at{} * {}", sum.empty() ? "" : " + ", d, stride);
    }
    return sum.empty() ? "0" : sum;
  }

  // The coordinates at0, at1, ... of an element.
  std::string coordinates() const {
    if (view_.sizes.size() == 1) return "    const Index at0 = element;\n";
    std::string text = "    Index rest = element;\n";
    for (std::size_t d = view_.sizes.size(); d-- > 1;) {
      text += format("    const Index at{} = rest % {};\n    rest /= {};\n", d, view_.sizes[d], view_.sizes[d]);
    }
    return text + "    const Index at0 = rest;\n";
  }

  // Computes the pack at `element`.
  std::string pack() const {
    std::string text = coordinates(), arguments;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const bool same = is_same_in_pack(i);
      if (same) text += format("    const float x{} = float_of({}[{}]);\n", i, address(i), offset(i));
      if (!same) {
        text +=
            format("    float x{}[{}];\n    read<{}>({} + ({}), x{});\n", i, width_, width_, address(i), offset(i), i);
      }
      arguments += format("{}x{}{}", arguments.empty() ? "" : ", ", i, same ? "" : "[k]");
    }
    for (std::size_t r = 0; r < spec_.outputs.size(); ++r) {
      text += format("    float y{}[{}];\n", r, width_);
      arguments += format("{}y{}[k]", arguments.empty() ? "" : ", ", r);
    }
    text += format("#pragma unroll\n    for (int k = 0; k < {}; ++k) run({});\n", width_, arguments);
    for (std::size_t r = 0; r < spec_.outputs.size(); ++r) {
      text += format("    write<{}>(y{}, {} + element);\n", width_, r, target(r));
    }
    return text;
  }

  // Computes the last elements, which are fewer than a pack, one by one.
  std::string rest() const {
    std::string text = format("    if (element + {} > {}) {{\n      for (Index k = element; k < {}; ++k) {{\n", width_,
                              view_.count(), view_.count());
    std::string arguments;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      arguments += format("{}float_of({}[k])", arguments.empty() ? "" : ", ", address(i));
    }
    for (std::size_t r = 0; r < spec_.outputs.size(); ++r) {
      text += format("        float y{};\n", r);
      arguments += format("{}y{}", arguments.empty() ? "" : ", ", r);
    }
    text += format("        run({});\n", arguments);
    for (std::size_t r = 0; r < spec_.outputs.size(); ++r) text += format("        set({}[k], y{});\n", target(r), r);
    return text + "      }\n      break;\n    }\n";
  }

  const ElementwiseKernelSpec& spec_;
  const BroadcastView& view_;
  int width_ = 1;          // of a pack
  bool has_rest_ = false;  // whether the last pack is incomplete
};

}  // namespace

ElementwiseSource elementwise_source(const ElementwiseKernelSpec& spec) {
  const KernelWriter writer(spec);
  return {std::string(source_prelude) + "\n" + run_function(spec.program) + "\n" + writer.text(), writer.packs()};
}

}  // namespace trainctl::cuda
