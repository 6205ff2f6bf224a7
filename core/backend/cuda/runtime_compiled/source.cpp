// Writes the CUDA C++ source of elementwise kernels.
#include "core/backend/cuda/runtime_compiled/source.h"

#include <algorithm>
#include <bit>

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

// The value of a function of the expressions a, b and c.
std::string call_of(ScalarFunction function, const std::string& a, const std::string& b, const std::string& c) {
  using enum ScalarFunction;
  const auto call = [&](std::string_view name) {
    return operands_of(function) == 1 ? format("{}({})", name, a) : format("{}({}, {})", name, a, b);
  };
  const auto infix = [&](std::string_view sign) { return format("{} {} {}", a, sign, b); };
  const auto truth = [](const std::string& condition) { return format("truth({})", condition); };
  switch (function) {
    case input:
    case constant:
      break;
    case negative:
      return format("-{}", a);
    case abs:
      return call("fabsf");
    case sign:
      return call("sign_of");
    case exp:
      return call("expf");
    case expm1:
      return call("expm1f");
    case log:
      return call("logf");
    case log1p:
      return call("log1pf");
    case sqrt:
      return call("sqrtf");
    case rsqrt:
      return call("rsqrtf");
    case reciprocal:
      return format("1.0f / {}", a);
    case sin:
      return call("sinf");
    case cos:
      return call("cosf");
    case tan:
      return call("tanf");
    case arctan:
      return call("atanf");
    case tanh:
      return call("tanhf");
    case sigmoid:
      return call("sigmoid_of");
    case softplus:
      return call("softplus_of");
    case erf:
      return call("erff");
    case floor:
      return call("floorf");
    case ceil:
      return call("ceilf");
    case round:
      return call("rintf");
    case logical_not:
      return truth(format("{} == 0", a));
    case isnan:
      return truth(format("{0} != {0}", a));
    case isfinite:
      return truth(format("fabsf({}) <= 3.40282347e38f", a));
    case add:
      return infix("+");
    case subtract:
      return infix("-");
    case multiply:
      return infix("*");
    case divide:
      return infix("/");
    case power:
      return call("powf");
    case maximum:
      return call("maximum_of");
    case minimum:
      return call("minimum_of");
    case mod:
      return call("mod_of");
    case floor_divide:
      return format("floorf({} / {})", a, b);
    case less:
      return truth(infix("<"));
    case less_equal:
      return truth(infix("<="));
    case equal:
      return truth(infix("=="));
    case not_equal:
      return truth(infix("!="));
    case logical_and:
      return truth(format("{} != 0 && {} != 0", a, b));
    case logical_or:
      return truth(format("{} != 0 || {} != 0", a, b));
    case logical_xor:
      return truth(format("({} != 0) != ({} != 0)", a, b));
    case where:
      return format("{} != 0 ? {} : {}", a, b, c);
  }
  require(false, "elementwise: CUDA has no function for this step");
  return "";
}

// The function `run`, which computes the results y0, y1, ... of one element from its inputs x0, x1, ...
std::string run_function(const ElementwiseProgram& program) {
  std::string parameters, body;
  for (int i = 0; i < program.inputs; ++i) parameters += format("{}float x{}", i > 0 ? ", " : "", i);
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    parameters += format("{}float& y{}", parameters.empty() ? "" : ", ", r);
  }
  const auto value = [](int step) { return step < 0 ? std::string() : format("v{}", step); };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const ScalarStep& step = program.steps[i];
    std::string text;
    if (step.function == ScalarFunction::input) {
      text = format("x{}", step.index);
    } else if (step.function == ScalarFunction::constant) {
      const auto constant = static_cast<float>(step.value);
      text = format("__uint_as_float(0x{:08x}u) /* {} */", std::bit_cast<std::uint32_t>(constant), constant);
    } else {
      text = call_of(step.function, value(step.operands[0]), value(step.operands[1]), value(step.operands[2]));
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
