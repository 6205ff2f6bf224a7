// Lowers convolutions over images with padded channels to convolutions with the padded number of channels.
#include "core/backend/cuda/cudnn/padded_images.h"

#include <set>
#include <utility>

#include "core/backend/cuda/choice/op_timer.h"
#include "core/backend/cuda/device/channel_padding.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/single_op.h"
#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"

namespace trainctl::cuda {
namespace {

TensorType with_channels(TensorType type, std::size_t dimension, std::int64_t channels) {
  std::vector<std::int64_t> sizes = type.shape.sizes();
  sizes[dimension] = channels;
  return {Shape(std::move(sizes)), type.dtype};
}

// A kernel, and functions that queue further work before and after it.
template <class Before, class After>
class Around final : public Kernel {
 public:
  Around(Binding binding, Before before, std::unique_ptr<Kernel> kernel, After after)
      : binding_(std::move(binding)), before_(before), kernel_(std::move(kernel)), after_(after) {}

  void run(Stream& stream, const Slot& slot) override {
    before_(Buffers{{binding_, slot}, stream_of(stream)});
    kernel_->run(stream, slot);
    after_(Buffers{{binding_, slot}, stream_of(stream)});
  }

 private:
  Binding binding_;
  Before before_;
  std::unique_ptr<Kernel> kernel_;
  After after_;
};

template <class Before, class After>
std::unique_ptr<Kernel> around(const Binding& binding, Before before, std::unique_ptr<Kernel> kernel, After after) {
  return std::make_unique<Around<Before, After>>(binding, before, std::move(kernel), after);
}

const auto no_work = [](const Buffers&) {};

Lowering lower_forward(const LowerContext& context) {
  const TensorType &x = context.input(0), &kernel = context.input(1);
  const std::int64_t channels = x.shape.back(), rows = kernel.shape.count() / channels;
  std::vector<TensorType> types{with_channels(x, 3, padded_channels), with_channels(kernel, 2, padded_channels)};
  if (context.op.inputs.size() > 2) types.push_back(context.input(2));
  const SingleOp single(context.op.def, types, context.op.name, context.op.location);
  const Lowering inner =
      lower_conv2d({{single.op, single.program, single.present, context.choices}, context.device, context.plans});
  const Layout& wanted = inner.inputs[1];
  require(inner.inputs[0] == single.present[0] && wanted.format == "ohwi",
          "the convolution reads its kernel in a layout other than ohwi");

  Lowering lowering = inner;
  lowering.implementation += ", padded";
  lowering.inputs[0] = padded_layout(x);
  lowering.inputs[1] = {wanted.dtype, wanted.format, kernel.shape.count() * size_of(wanted.dtype)};
  const std::int64_t kernel_bytes = workspace_section(wanted.bytes);
  lowering.workspace_bytes += kernel_bytes;
  lowering.bind = [=, dtype = wanted.dtype, bind = inner.bind](const Binding& binding) {
    Binding inside = binding;
    inside.inputs[1] = binding.workspace;
    inside.workspace = binding.workspace + kernel_bytes;
    const auto pad = [=](const Buffers& p) {
      pad_channels(dtype, p.in<void>(1), rows, channels, padded_channels, p.workspace<void>(), p.stream);
    };
    return around(binding, pad, bind(inside), no_work);
  };
  return lowering;
}

Lowering lower_gradient(const LowerContext& context) {
  const auto& def = context.op.as<Conv2dGradWeights>();
  const TensorType& x = context.input(0);
  const std::vector<TensorType> types{with_channels(x, 3, padded_channels), context.input(1)};
  const SingleOp single(std::make_shared<Conv2dGradWeights>(def.window, def.groups, def.bias, false), types,
                        context.op.name, context.op.location);
  const Lowering inner = lower_conv2d_grad_weights(
      {{single.op, single.program, single.present, context.choices}, context.device, context.plans});
  require(inner.inputs[0] == single.present[0], "the convolution reads images in a layout other than the logical one");

  Lowering lowering = inner;
  lowering.implementation += ", padded";
  lowering.inputs[0] = padded_layout(x);
  lowering.outputs = context.logical().outputs;
  std::vector<std::int64_t> offsets;  // offsets of the inner op's outputs in the workspace
  std::int64_t bytes = 0;
  for (const Layout& output : inner.outputs) {
    offsets.push_back(bytes);
    bytes += workspace_section(output.bytes);
  }
  lowering.workspace_bytes += bytes;
  const Shape& kernel = context.output(0).shape;
  lowering.bind = [=, bind = inner.bind, add = def.accumulate, bias = def.bias, out = kernel.back(),
                   kept = kernel[2] * kernel[3], count = kernel.count()](const Binding& binding) {
    Binding inside = binding;
    for (std::size_t i = 0; i < offsets.size(); ++i) inside.outputs[i] = binding.workspace + offsets[i];
    inside.workspace = binding.workspace + bytes;
    const auto keep = [=](const Buffers& p) {
      keep_first(p.workspace<float>(offsets[0]), padded_channels * out, kept, count, add, p.out<float>(0), p.stream);
      if (bias) keep_first(p.workspace<float>(offsets[1]), out, out, out, add, p.out<float>(1), p.stream);
    };
    return around(binding, no_work, bind(inside), keep);
  };
  return lowering;
}

// The ops that read the images, each op once. Empty if one of these ops is not a convolution that can read padded
// images.
std::vector<const Op*> readers_of(const Program& program, TensorId images) {
  std::vector<const Op*> readers;
  std::set<std::pair<std::string, std::string_view>> known;
  for (const Segment& segment : program.segments) {
    for (const Op& op : segment.ops) {
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] != images) continue;
        const auto reads = [&](const auto* def) {
          return def != nullptr && i == 0 && def->groups == 1 && def->window.size != Window{}.size;
        };
        if (!reads(op.get_if<Conv2d>()) && !reads(op.get_if<Conv2dGradWeights>())) {
          return {};
        }
        if (known.emplace(op.name, op.def->kind()).second) readers.push_back(&op);
      }
    }
  }
  return readers;
}

// The key of the choice, which contains everything that the choice depends on except the hardware.
std::string key_of(const LowerContext& context, const std::vector<const Op*>& readers) {
  const auto text = [](const TensorType& type) { return format("{}:{}", name_of(type.dtype), to_string(type.shape)); };
  std::string key = format("{} {} ->", context.op.def->kind(), text(context.input(0)));
  for (const Op* reader : readers) {
    key += format(" {} {} {}", text(context.output(0)), reader->def->kind(), reader->def->attributes());
    key += " " + text(context.program.tensor(reader->outputs[0]).type);
  }
  return key + context.device.options().text();
}

// Seconds of the op, as `lower` lowers it, and of its readers together.
double seconds(const LowerContext& context, const std::vector<const Op*>& readers, bool padded,
               const std::function<Lowering(bool)>& lower) {
  double total = measure_op(context, lower(padded));
  for (const Op* reader : readers) {
    std::vector<Layout> present;
    for (TensorId id : reader->inputs) present.push_back(logical_layout(context.program.tensor(id).type));
    if (padded) present[0] = padded_layout(context.output(0));
    const LowerContext inner{{*reader, context.program, present, context.choices}, context.device, context.plans};
    total += measure_op(inner, lower_op(inner));
  }
  return total;
}

}  // namespace

Layout padded_layout(const TensorType& images) {
  const std::int64_t pixels = images.shape.count() / images.shape.back();
  return {images.dtype, "nhw8", pixels * padded_channels * size_of(images.dtype)};
}

bool is_padded(const Layout& layout) { return layout.format == "nhw8"; }

bool writes_padded(const LowerContext& context, const std::function<Lowering(bool padded)>& lower) {
  const TensorType& images = context.output(0);
  const bool half = images.dtype == DType::bfloat16 || images.dtype == DType::float16;
  if (!half || images.shape.rank() != 4 || (images.shape.back() != 3 && images.shape.back() != 4)) return false;
  const std::vector<const Op*> readers = readers_of(context.program, context.op.outputs[0]);
  if (readers.empty()) return false;
  const std::string names[] = {"logical", "padded"};
  const auto time = [&](std::size_t i) { return seconds(context, readers, i == 1, lower); };
  return choose(context, key_of(context, readers), context.label() + " and the ops that read its output", names,
                time) == 1;
}

Lowering lower_on_padded(const LowerContext& context) {
  const bool forward = context.op.get_if<Conv2d>() != nullptr;
  return forward ? lower_forward(context) : lower_gradient(context);
}

}  // namespace trainctl::cuda
