// The op cases of convolutions over images, sequences and volumes (test/golden/convolutions.py).
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/window.h"
#include "test/core/ops/op_cases.h"

namespace trainctl::test {
namespace {

// A convolution whose padding is resolved for its input, as layers do it.
struct Convolution {
  std::string name;
  Size2d size{3, 3};
  Padding padding = PaddingMode::same;
  Size2d strides{1, 1}, dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  ActivationKind function = ActivationKind::none;

  OpCase make() const {
    return {name, bias ? "xpp" : "xp", [how = *this](Graph& graph, const Ids& ids) {
              const Shape& x = graph.tensor(ids[0]).type.shape;
              Window window{how.size, how.strides, how.dilation, {}, {}};
              require(!resolve_padding(window, how.padding, {x[1], x[2]}, "kernel"), how.name);
              const TensorId y = append(graph, std::make_shared<Conv2d>(window, how.groups), ids, "conv");
              return Ids{append(graph, how.function, y)};
            }};
  }
};

void add_image_convolutions(std::vector<OpCase>& cases) {
  constexpr auto valid = PaddingMode::valid;
  for (const Convolution& convolution : {
           Convolution{.name = "conv2d_3x3"},
           Convolution{.name = "conv2d_3x3_wide"},
           Convolution{.name = "conv2d_no_bias", .bias = false},
           Convolution{.name = "conv2d_1x1", .size = {1, 1}},
           Convolution{.name = "conv2d_valid", .size = {5, 3}, .padding = valid},
           Convolution{.name = "conv2d_stride_2_same", .strides = {2, 2}},
           Convolution{.name = "conv2d_strides_2_3", .size = {4, 3}, .strides = {2, 3}},
           Convolution{
               .name = "conv2d_stride_2_1x1", .size = {1, 1}, .padding = valid, .strides = {2, 2}, .bias = false},
           Convolution{.name = "conv2d_even_kernel", .size = {2, 4}},
           Convolution{.name = "conv2d_padding_2_1", .padding = Size2d{2, 1}},
           Convolution{.name = "conv2d_dilation_2", .dilation = {2, 2}},
           Convolution{.name = "conv2d_dilation_2_1", .size = {3, 2}, .padding = valid, .dilation = {2, 1}},
           Convolution{.name = "conv2d_groups_2", .groups = 2},
           Convolution{.name = "conv2d_depthwise", .groups = 8},
           Convolution{.name = "conv2d_depthwise_stride", .strides = {2, 2}, .groups = 6},
           Convolution{.name = "conv2d_depthwise_multiplier", .groups = 4},
           Convolution{.name = "conv2d_groups_stride", .strides = {2, 2}, .groups = 3},
           Convolution{.name = "conv2d_grey", .size = {5, 5}},
           Convolution{.name = "conv2d_relu", .function = ActivationKind::relu},
           Convolution{.name = "conv2d_leaky_relu", .strides = {2, 2}, .function = ActivationKind::leaky_relu},
           Convolution{.name = "conv2d_tanh", .padding = valid, .function = ActivationKind::tanh},
           Convolution{.name = "conv2d_sigmoid", .function = ActivationKind::sigmoid},
           Convolution{.name = "conv2d_silu", .function = ActivationKind::silu},
       }) {
    cases.push_back(convolution.make());
  }
}

// A convolution over sequences as images one pixel high, with `before` zero steps at the start and `after` at the end.
struct SequenceConvolution {
  std::string name;
  std::int64_t size = 3, before = 0, after = 0, stride = 1, dilation = 1, groups = 1;
  ActivationKind function = ActivationKind::none;

  OpCase make() const {
    return {name, "xpp", [how = *this](Graph& graph, const Ids& ids) {
              const Shape x = graph.tensor(ids[0]).type.shape;
              const Window window{{1, how.size}, {1, how.stride}, {1, how.dilation}, {0, how.before}, {0, how.after}};
              const auto images = std::make_shared<Reshape>(Shape{x[0], 1, x[1], x[2]});
              TensorId y = append(graph, images, {ids[0]}, "images");
              y = append(graph, std::make_shared<Conv2d>(window, how.groups), {y, ids[1], ids[2]}, "conv");
              y = append(graph, how.function, y);
              const Shape shape = graph.tensor(y).type.shape;
              return Ids{append(graph, std::make_shared<Reshape>(Shape{shape[0], shape[2], shape[3]}), {y}, "steps")};
            }};
  }
};

void add_sequence_convolutions(std::vector<OpCase>& cases) {
  for (const SequenceConvolution& convolution : {
           SequenceConvolution{.name = "conv1d", .before = 1, .after = 1},
           SequenceConvolution{.name = "conv1d_causal", .before = 4, .dilation = 2},
           SequenceConvolution{.name = "conv1d_groups_stride", .size = 4, .stride = 2, .groups = 2},
           SequenceConvolution{.name = "conv1d_1", .size = 1, .function = ActivationKind::tanh},
       }) {
    cases.push_back(convolution.make());
  }
}

// A convolution over volumes whose padding is resolved for its input, as layers do it.
struct VolumeConvolution {
  std::string name;
  Size3d size{3, 3, 3};
  Padding3d padding = PaddingMode::same;
  Size3d strides{1, 1, 1}, dilation{1, 1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  ActivationKind function = ActivationKind::none;

  OpCase make() const {
    return {name, bias ? "xpp" : "xp", [how = *this](Graph& graph, const Ids& ids) {
              const Shape& x = graph.tensor(ids[0]).type.shape;
              Window3d window{how.size, how.strides, how.dilation, {}, {}};
              require(!resolve_padding(window, how.padding, {x[1], x[2], x[3]}, "kernel"), how.name);
              const TensorId y = append(graph, std::make_shared<Conv3d>(window, how.groups), ids, "conv");
              return Ids{append(graph, how.function, y)};
            }};
  }
};

void add_volume_convolutions(std::vector<OpCase>& cases) {
  constexpr auto valid = PaddingMode::valid;
  for (const VolumeConvolution& convolution : {
           VolumeConvolution{.name = "conv3d"},
           VolumeConvolution{.name = "conv3d_scan", .padding = valid, .function = ActivationKind::relu},
           VolumeConvolution{.name = "conv3d_tubelets", .size = {2, 4, 4}, .padding = valid, .strides = {2, 4, 4}},
           VolumeConvolution{.name = "conv3d_strides_same", .size = {3, 2, 4}, .strides = {2, 3, 2}},
           VolumeConvolution{.name = "conv3d_dilation", .size = {3, 2, 3}, .dilation = {2, 1, 3}, .bias = false},
           VolumeConvolution{.name = "conv3d_groups", .size = {2, 3, 3}, .groups = 3, .function = ActivationKind::tanh},
           VolumeConvolution{.name = "conv3d_padding", .padding = Size3d{1, 0, 2}},
           VolumeConvolution{.name = "conv3d_1", .size = {1, 1, 1}},
       }) {
    cases.push_back(convolution.make());
  }
}

// A transposed convolution to images of `size`, which a convolution with the window maps back to the size of its input.
OpCase transposed_convolution(const std::string& name, const Window& window, Size2d size, bool bias = true,
                              ActivationKind function = ActivationKind::none) {
  return {name, bias ? "xpp" : "xp", [=](Graph& graph, const Ids& ids) {
            const Shape& x = graph.tensor(ids[0]).type.shape;
            const Shape y{x[0], size[0], size[1], graph.tensor(ids[1]).type.shape[2]};
            TensorId result =
                append(graph, std::make_shared<Conv2dGradInput>(window, 1, y), {ids[0], ids[1]}, "transposed");
            if (bias) result = append(graph, std::make_shared<AddBias>(), {result, ids[2]}, "bias");
            return Ids{append(graph, function, result)};
          }};
}

// A transposed convolution to volumes of `size`.
OpCase transposed_volumes(const std::string& name, const Window3d& window, Size3d size, bool bias) {
  return {name, bias ? "xpp" : "xp", [=](Graph& graph, const Ids& ids) {
            const std::int64_t samples = graph.tensor(ids[0]).type.shape[0];
            const Shape y{samples, size[0], size[1], size[2], graph.tensor(ids[1]).type.shape[3]};
            TensorId result =
                append(graph, std::make_shared<Conv3dGradInput>(window, 1, y), {ids[0], ids[1]}, "transposed");
            if (bias) result = append(graph, std::make_shared<AddBias>(), {result, ids[2]}, "bias");
            return Ids{result};
          }};
}

void add_transposed_convolutions(std::vector<OpCase>& cases) {
  const auto tanh = ActivationKind::tanh;
  const Window same{{3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}, even{{4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  cases.push_back(transposed_convolution("conv2d_transpose_same", same, {8, 10}));
  cases.push_back(transposed_convolution("conv2d_transpose_valid", {{4, 3}, {2, 1}, {1, 1}, {}, {}}, {10, 5}));
  cases.push_back(transposed_convolution("conv2d_transpose_gaps", {{2, 2}, {3, 2}, {1, 1}, {}, {}}, {9, 8}));
  cases.push_back(
      transposed_convolution("conv2d_transpose_dilation", {{3, 2}, {1, 1}, {2, 3}, {2, 1}, {2, 2}}, {5, 4}, false));
  cases.push_back(transposed_convolution("conv2d_transpose_tanh", even, {6, 6}, true, tanh));
  const Window3d volume{{3, 3, 2}, {2, 2, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  cases.push_back(transposed_volumes("conv3d_transpose_same", volume, {4, 6, 4}, true));
  const Window3d gaps{{2, 1, 3}, {3, 2, 2}, {1, 1, 1}, {}, {}};
  cases.push_back(transposed_volumes("conv3d_transpose_gaps", gaps, {6, 6, 5}, false));
}

}  // namespace

void add_convolutions(std::vector<OpCase>& cases) {
  add_image_convolutions(cases);
  add_sequence_convolutions(cases);
  add_volume_convolutions(cases);
  add_transposed_convolutions(cases);
}

}  // namespace trainctl::test
