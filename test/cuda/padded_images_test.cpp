// Tests a network's first convolution on images that `normalize` writes with padded channels.
#include <map>

#include "core/compile/compile.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/normalization/normalize.h"
#include "test/catch.h"
#include "test/core/backend/convolution_cases.h"

namespace trainctl::test::padded_images_test {
namespace {

// A program of normalize, a convolution and the gradient of its kernel, as a step runs them.
struct FirstConvolution {
  Program program;
  std::map<std::string, TensorId> ids;
  ConvolutionCase c;

  FirstConvolution(const ConvolutionCase& convolution, DType dtype, const SampleFormat& format, bool accumulate)
      : c(convolution) {
    const auto normalize = std::make_shared<Normalize>(dtype, format);
    add("images", {c.x, format.dtype}, Role::input);
    add("x", {c.x, dtype}, Role::activation);
    add("kernel", {c.kernel(), DType::float32}, Role::parameter);
    add("bias", {{c.out}, DType::float32}, Role::parameter);
    add("y", {c.y(), dtype}, Role::activation);
    add("dy", {c.y(), dtype}, Role::activation);
    add("dkernel", {c.kernel(), DType::float32}, Role::gradient);
    add("dbias", {{c.out}, DType::float32}, Role::gradient);
    program.segments.push_back({Phase::forward,
                                {},
                                {op(normalize, {"images"}, {"x"}),
                                 op(std::make_shared<Conv2d>(c.window, 1, ActivationFunction{ActivationKind::relu}),
                                    {"x", "kernel", "bias"}, {"y"})}});
    program.segments.push_back(
        {Phase::backward,
         {},
         {op(std::make_shared<Conv2dGradWeights>(c.window, 1, true, accumulate), {"x", "dy"}, {"dkernel", "dbias"})}});
    program.schedule = {{0}, {1}};
  }

  void add(const std::string& name, const TensorType& type, Role role) {
    ids[name] = static_cast<TensorId>(program.tensors.size());
    program.tensors.push_back({.name = name, .type = type, .role = role});
  }
  Op op(std::shared_ptr<const OpDef> def, const std::vector<std::string>& inputs,
        const std::vector<std::string>& outputs) {
    Op op{std::move(def), {}, {}, "conv1", {}};
    for (const std::string& name : inputs) op.inputs.push_back(ids.at(name));
    for (const std::string& name : outputs) op.outputs.push_back(ids.at(name));
    return op;
  }

  // Compiles the program and runs it with the given values of some tensors. Returns the values of y, dkernel and dbias,
  // and adds the implementations that ran to `implementations`.
  std::map<std::string, Value> run(Backend& backend, KernelChoices& choices, const std::map<std::string, Value>& given,
                                   std::string& implementations) const {
    const PlacedProgram placed = compile({program}, backend, choices).programs.front();
    const auto stream = backend.compute_stream();
    std::vector<Memory> memory;
    std::vector<Address> addresses;
    for (const PlacedTensor& tensor : placed.tensors) {
      const Layout& layout = tensor.layout;
      memory.push_back(backend.allocate(layout.bytes));
      addresses.push_back({memory.back().get(), 0});
      const std::vector<std::byte> noise(static_cast<std::size_t>(layout.bytes), std::byte{0xff});  // NaN
      backend.copy(addresses.back().fixed, noise.data(), layout.bytes, *stream);
      stream->synchronize();
    }
    for (const auto& [name, value] : given) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(value.type.bytes()));
      write_values(value, bytes.data());
      backend.copy(addresses[static_cast<std::size_t>(ids.at(name))].fixed, bytes.data(), value.type.bytes(), *stream);
      stream->synchronize();
    }
    for (const int segment : {2, 0, 1}) {  // copies come first
      for (const auto& [op, lowering, workspace] : placed.segment(segment).ops) {
        Binding binding;
        for (TensorId id : op.inputs) binding.inputs.push_back(addresses[static_cast<std::size_t>(id)]);
        for (TensorId id : op.outputs) binding.outputs.push_back(addresses[static_cast<std::size_t>(id)]);
        memory.push_back(backend.allocate(lowering.workspace_bytes));
        binding.workspace = {memory.back().get(), 0};
        lowering.bind(binding)->run(*stream, {});
        stream->synchronize();
        implementations += lowering.implementation + "\n";
      }
    }
    std::map<std::string, Value> found;
    for (const char* name : {"y", "dkernel", "dbias"}) {
      const auto id = static_cast<std::size_t>(ids.at(name));
      const TensorType& type = program.tensors[id].type;
      std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
      backend.copy(bytes.data(), addresses[id].fixed, type.bytes(), *stream);
      stream->synchronize();
      found[name] = read_values(type, bytes.data());
    }
    return found;
  }
};

// Returns the choices with `wanted` for the images.
KernelChoices with_images(const KernelChoices& choices, const std::string& wanted) {
  std::string text = choices.text();
  const std::size_t line = text.find("normalize ");
  REQUIRE(line != std::string::npos);
  const std::size_t tab = text.find('\t', line), end = text.find('\n', tab);
  text.replace(tab + 1, end - tab - 1, wanted);
  KernelChoices changed;
  changed.add(text);
  return changed;
}

}  // namespace

TEST_CASE("a first convolution of padded images has the same values as without padding, forward and backward") {
  const auto backend = backend_under_test({});
  const Window stem{{7, 7}, {2, 2}, {1, 1}, {2, 2}, {3, 3}}, same{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const ConvolutionCase cases[] = {{"stem", {2, 17, 14, 3}, 24, 1, stem}, {"4 channels", {3, 9, 8, 4}, 5, 1, same}};
  for (const ConvolutionCase& c : cases) {
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      for (const bool accumulate : {false, true}) {
        CAPTURE(c.what, name_of(dtype), accumulate);
        SampleFormat format{accumulate ? DType::uint8 : DType::float32, {0.25f}, {-0.5f}};
        if (accumulate) {
          format.scale.clear(), format.offset.clear();
          for (int k = 0; k < static_cast<int>(c.x[3]); ++k) {
            format.scale.push_back(0.004f + 0.001f * static_cast<float>(k));
            format.offset.push_back(-0.5f + 0.1f * static_cast<float>(k));
          }
        }
        const FirstConvolution network(c, dtype, format, accumulate);
        std::map<std::string, Value> given{
            {"images", accumulate ? random_integers(c.x, DType::uint8, 1, 256) : random_value(c.x, DType::float32, 1)},
            {"kernel", random_value(c.kernel(), DType::float32, 2, -0.3, 0.3)},
            {"bias", random_value({c.out}, DType::float32, 3)},
            {"dy", random_value(c.y(), dtype, 4)}};
        if (accumulate) given["dkernel"] = random_value(c.kernel(), DType::float32, 5);
        if (accumulate) given["dbias"] = random_value({c.out}, DType::float32, 6);

        std::vector<double> x, y(given["dy"].values.size()), dkernel(given["kernel"].values.size());
        std::vector<double> dbias(static_cast<std::size_t>(c.out));
        for (std::size_t i = 0; i < given["images"].values.size(); ++i) {
          const std::size_t k = i % static_cast<std::size_t>(c.x[3]) % format.scale.size();
          x.push_back(round_to(dtype, given["images"].values[i] * format.scale[k] + format.offset[k]));
        }
        each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
          y[at_y] += x[at_x] * round_to(dtype, given["kernel"].values[at_kernel]);
          dkernel[at_kernel] += x[at_x] * given["dy"].values[at_y];
        });
        for (std::size_t i = 0; i < y.size(); ++i) {
          y[i] = std::max(y[i] + given["bias"].values[i % dbias.size()], 0.0);
          dbias[i % dbias.size()] += given["dy"].values[i];
        }
        for (std::size_t i = 0; accumulate && i < dkernel.size(); ++i) dkernel[i] += given["dkernel"].values[i];
        for (std::size_t i = 0; accumulate && i < dbias.size(); ++i) dbias[i] += given["dbias"].values[i];

        KernelChoices choices;
        std::string chosen;
        network.run(*backend, choices, given, chosen);
        for (const std::string candidate : {"padded", "logical"}) {
          CAPTURE(candidate);
          KernelChoices forced = with_images(choices, candidate);
          std::string made;
          const auto found = network.run(*backend, forced, given, made);
          CHECK((made.find(", padded") != std::string::npos) == (candidate == "padded"));
          const double tolerance = dtype == DType::bfloat16 ? 2e-2 : 3e-3;
          CHECK(largest_error(found.at("y"), y) < tolerance);
          CHECK(largest_error(found.at("dkernel"), dkernel) < tolerance);
          CHECK(largest_error(found.at("dbias"), dbias) < tolerance);
          CHECK(forced == with_images(choices, candidate));  // nothing was timed again
        }
      }
    }
  }
}

TEST_CASE("images that other ops read too, or that are in float32, are not padded") {
  const auto backend = backend_under_test({});
  const ConvolutionCase c{"3x3", {2, 8, 8, 3}, 8, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}};
  const SampleFormat format{DType::uint8, {0.004f}, {-0.5f}};
  const auto is_chosen = [&](const FirstConvolution& network) {
    KernelChoices choices;
    compile({network.program}, *backend, choices);
    return choices.text().find("normalize ") != std::string::npos;
  };
  CHECK(is_chosen(FirstConvolution(c, DType::bfloat16, format, false)));
  CHECK(!is_chosen(FirstConvolution(c, DType::float32, format, false)));
  FirstConvolution shared(c, DType::bfloat16, format, false);
  shared.add("relu", {c.x, DType::bfloat16}, Role::activation);
  shared.program.segments[1].ops.push_back(
      shared.op(std::make_shared<Activation>(ActivationFunction{ActivationKind::relu}), {"x"}, {"relu"}));
  CHECK(!is_chosen(shared));
  ConvolutionCase pointwise = c;
  pointwise.window = {};
  CHECK(!is_chosen(FirstConvolution(pointwise, DType::bfloat16, format, false)));
}

}  // namespace trainctl::test::padded_images_test
