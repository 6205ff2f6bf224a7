// Lists the op cases; their inputs and expected values are in test/golden.
#include "test/core/ops/op_cases.h"

#include <utility>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/gated_linear_unit.h"
#include "core/graph/ops/elementwise/noise.h"
#include "core/graph/ops/elementwise/prelu.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/global_max_pool2d.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/graph/ops/matmul.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/normalization/group_norm.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/normalization/synchronized_batch_norm.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/recurrent.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/rotary.h"
#include "core/graph/ops/training/update.h"
#include "core/layers/window.h"

namespace trainctl::test {
namespace {

// Activations after dense: those that can be fused with it, and two that cannot.
constexpr ActivationKind after_dense[] = {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::gelu,
                                          ActivationKind::silu, ActivationKind::tanh,       ActivationKind::sigmoid};

// Makes a case of one op that reads all inputs, optionally with an activation after it.
OpCase one(std::string name, std::string inputs, std::shared_ptr<const OpDef> def,
           ActivationKind function = ActivationKind::none) {
  return {std::move(name), std::move(inputs), [def = std::move(def), function](Graph& graph, const Ids& ids) {
            return Ids{append(graph, function, append(graph, def, ids, "op"))};
          }};
}

void add_element_wise(std::vector<OpCase>& cases) {
  for (ActivationKind kind : activation_kinds) {
    cases.push_back(
        one("activation_" + std::string(name_of(kind)), "x", std::make_shared<Activation>(ActivationFunction{kind})));
  }
  cases.push_back(one("activation_leaky_relu_slope", "x",
                      std::make_shared<Activation>(ActivationFunction{ActivationKind::leaky_relu, 0.125f})));
  for (const char* name : {"softmax_2", "softmax_10", "softmax_33"}) {
    cases.push_back(one(name, "x", std::make_shared<Softmax>()));
  }
  for (ActivationKind kind : {ActivationKind::none, ActivationKind::relu, ActivationKind::tanh}) {
    cases.push_back(one("add_" + std::string(name_of(kind)), "xx", std::make_shared<Add>(), kind));
  }
  cases.push_back(one("multiply", "xx", std::make_shared<Multiply>(), ActivationKind::tanh));
  cases.push_back(one("multiply_channels_c5", "xx", std::make_shared<MultiplyChannels>()));
  cases.push_back(one("multiply_channels_c72", "xx", std::make_shared<MultiplyChannels>()));
  cases.push_back({"square", "x", [](Graph& graph, const Ids& ids) {
                     return Ids{append(graph, std::make_shared<Multiply>(), {ids[0], ids[0]}, "square")};
                   }});
  cases.push_back(one("scale_by", "x", std::make_shared<ScaleBy>(-1.5f)));
  cases.push_back({"normalize", "x", [](Graph& graph, const Ids& ids) {
                     const SampleFormat format{{}, {0.5f, -2, 1.25f}, {1, 0.25f, -3}};
                     return Ids{append(graph, std::make_shared<Normalize>(graph.compute, format), ids, "scaled")};
                   }});
  cases.push_back(one("maximum", "xx", std::make_shared<Extremum>(Extreme::largest)));
  cases.push_back(one("minimum", "xx", std::make_shared<Extremum>(Extreme::smallest)));
  cases.push_back(one("permute_2_1", "x", std::make_shared<Permute>(std::vector<std::int64_t>{0, 2, 1})));
  cases.push_back(one("permute_3_1_2", "x", std::make_shared<Permute>(std::vector<std::int64_t>{0, 3, 1, 2})));
  cases.push_back(one("permute_2_1_3", "x", std::make_shared<Permute>(std::vector<std::int64_t>{0, 2, 1, 3})));
  cases.push_back(one("permute_4_2_1_3", "x", std::make_shared<Permute>(std::vector<std::int64_t>{0, 4, 2, 1, 3})));
  cases.push_back(one("gaussian_noise", "xcc", std::make_shared<GaussianNoise>(0.5f, 0x123456789u, 77u)));
  cases.push_back(
      one("spatial_dropout", "xcc", std::make_shared<Dropout>(0.375f, 0x123456789u, 77u, DropoutUnit::channel)));
  cases.push_back(
      one("stochastic_depth", "xcc", std::make_shared<Dropout>(0.375f, 0x123456789u, 77u, DropoutUnit::sample)));
  cases.push_back({"cast", "f",
                   [](Graph& graph, const Ids& ids) {
                     const TensorId half = append(graph, std::make_shared<Cast>(DType::bfloat16), ids, "half");
                     return Ids{append(graph, std::make_shared<Cast>(DType::float32), {half}, "whole")};
                   },
                   false});
  cases.push_back(one("concatenate_two", "xx", std::make_shared<Concatenate>()));
  cases.push_back(one("concatenate_three", "xxx", std::make_shared<Concatenate>()));
  cases.push_back(one("reshape", "x", std::make_shared<Reshape>(Shape{3, 40}), ActivationKind::relu));
  cases.push_back(one("dropout", "xcc", std::make_shared<Dropout>(0.375f, 0x123456789u, 77u)));
  for (const ActivationKind kind : {ActivationKind::none, ActivationKind::sigmoid, ActivationKind::silu,
                                    ActivationKind::gelu, ActivationKind::gelu_tanh, ActivationKind::relu}) {
    cases.push_back(one("gated_linear_unit_" + std::string(name_of(kind)), "xx",
                        std::make_shared<GatedLinearUnit>(ActivationFunction{kind})));
  }
  cases.push_back({"embedding", "cp", [](Graph& graph, const Ids& ids) {
                     return Ids{append(graph, std::make_shared<Embedding>(graph.compute), ids, "rows")};
                   }});
  cases.push_back({"skip", "xp", [](Graph& graph, const Ids& ids) {
                     Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
                     const TensorId branch = append(graph, std::make_shared<Conv2d>(window, 1), ids, "conv");
                     return Ids{append(graph, std::make_shared<Add>(), {branch, ids[0]}, "sum")};
                   }});
}

RotaryAttributes rotary(std::int64_t head_size, std::int64_t width, RotaryPairs pairs = RotaryPairs::halves) {
  return {.head_size = head_size, .width = width, .pairs = pairs};
}

void add_positions(std::vector<OpCase>& cases) {
  const auto add = [&](const char* name, const char* inputs, const RotaryAttributes& a) {
    cases.push_back(one(name, inputs, std::make_shared<Rotary>(a)));
  };
  add("rotary", "x", rotary(16, 16));
  add("rotary_part", "x", rotary(10, 6));
  add("rotary_neighbours", "x", rotary(16, 16, RotaryPairs::neighbours));
  add("rotary_neighbours_part", "x", rotary(7, 6, RotaryPairs::neighbours));
  add("rotary_documents", "xc", rotary(8, 8));
  RotaryAttributes linear = rotary(16, 16), llama3 = rotary(32, 32);
  linear.scaling = RotaryScaling::linear;
  linear.factor = 4;
  add("rotary_linear", "x", linear);
  llama3.base = 500'000;
  llama3.scaling = RotaryScaling::llama3;
  llama3.factor = 8;
  llama3.original_positions = 256;
  add("rotary_llama3", "x", llama3);
  for (const char* name : {"position_embedding", "position_embedding_long"}) {
    cases.push_back(one(name, "xp", std::make_shared<PositionEmbedding>(true)));
  }
  // The positions alone, times x, so that both have gradients; and their sum with x, which is fused.
  cases.push_back({"position_embedding_alone", "xp", [](Graph& graph, const Ids& ids) {
                     const TensorId rows = append(graph, std::make_shared<PositionEmbedding>(false), ids, "rows");
                     return Ids{append(graph, std::make_shared<Multiply>(), {rows, ids[0]}, "product")};
                   }});
  cases.push_back({"position_embedding", "xp", [](Graph& graph, const Ids& ids) {
                     const TensorId rows = append(graph, std::make_shared<PositionEmbedding>(false), ids, "rows");
                     return Ids{append(graph, std::make_shared<Add>(), {ids[0], rows}, "sum")};
                   }});
  // A table that embeds tokens and, transposed, gives their logits.
  cases.push_back({"tied_embedding", "cp", [](Graph& graph, const Ids& ids) {
                     TensorId x = append(graph, std::make_shared<Embedding>(graph.compute), ids, "rows");
                     x = append(graph, std::make_shared<Activation>(ActivationFunction{ActivationKind::tanh}), {x},
                                "tanh");
                     return Ids{append(graph, std::make_shared<DenseGradInput>(), {x, ids[1]}, "logits")};
                   }});
  cases.push_back({"transposed_dense_sum", "xpx", [](Graph& graph, const Ids& ids) {
                     const TensorId y = append(graph, std::make_shared<DenseGradInput>(), {ids[0], ids[1]}, "product");
                     return Ids{append(graph, std::make_shared<Add>(), {y, ids[2]}, "sum")};
                   }});
}

void add_dense(std::vector<OpCase>& cases) {
  for (const char* name : {"dense_small", "dense_wide", "dense_one", "dense_sequence", "dense_image"}) {
    cases.push_back(one(name, "xpp", std::make_shared<Dense>()));
    cases.push_back(one(std::string(name) + "_no_bias", "xp", std::make_shared<Dense>()));
  }
  cases.push_back(one("einsum_dense_heads", "xpp", std::make_shared<Dense>()));
  cases.push_back({"einsum_dense_join", "xpp", [](Graph& graph, const Ids& ids) {
                     const TensorId x = append(graph, std::make_shared<Reshape>(Shape{3, 5, 8}), {ids[0]}, "flat");
                     return Ids{append(graph, std::make_shared<Dense>(), {x, ids[1], ids[2]}, "product")};
                   }});
  cases.push_back(one("einsum_dense_transposed", "xp", std::make_shared<DenseGradInput>()));
  cases.push_back(one("matmul", "xx", std::make_shared<Matmul>(false, false)));
  cases.push_back(one("matmul_scores", "xx", std::make_shared<Matmul>(false, true)));
  cases.push_back(one("matmul_sums", "xx", std::make_shared<Matmul>(true, false)));
  cases.push_back(one("matmul_transposed", "xx", std::make_shared<Matmul>(true, true)));
  cases.push_back(one("matmul_row", "xx", std::make_shared<Matmul>(false, true)));
  cases.push_back({"matmul_square", "x", [](Graph& graph, const Ids& ids) {
                     return Ids{append(graph, std::make_shared<Matmul>(false, true), {ids[0], ids[0]}, "square")};
                   }});
  for (ActivationKind kind : after_dense) {
    const std::string name = "dense_" + std::string(name_of(kind));
    cases.push_back(one(name, "xpp", std::make_shared<Dense>(), kind));
    if (!can_be_fused(kind)) continue;
    cases.push_back({name + "_dense", "xpppp", [kind](Graph& graph, const Ids& ids) {
                       const auto dense = std::make_shared<Dense>();
                       const TensorId hidden = append(graph, dense, {ids[0], ids[1], ids[2]}, "first");
                       return Ids{append(graph, dense, {append(graph, kind, hidden), ids[3], ids[4]}, "second")};
                     }});
  }
}

void add_pooling(std::vector<OpCase>& cases) {
  struct Pool {
    const char* name;
    Window window;
    Padding padding;
  };
  const Pool pools[] = {{"2x2", {{2, 2}, {2, 2}, {1, 1}, {}, {}}, PaddingMode::valid},
                        {"3x3_stride_2_same", {{3, 3}, {2, 2}, {1, 1}, {}, {}}, PaddingMode::same},
                        {"3x2_stride_1", {{3, 2}, {1, 1}, {1, 1}, {}, {}}, PaddingMode::same},
                        {"padding_1", {{3, 3}, {2, 3}, {1, 1}, {}, {}}, Size2d{1, 1}}};
  for (const PoolMode mode : {PoolMode::max, PoolMode::average}) {
    const bool max = mode == PoolMode::max;
    for (Pool pool : pools) {
      require(!resolve_padding(pool.window, pool.padding, {8, 7}, "window"), pool.name);
      for (const char* channels : {"_c3", "_c16"}) {
        cases.push_back({std::string(max ? "max" : "average") + "_pool2d_" + pool.name + channels, "x",
                         [=](Graph& graph, const Ids& ids) {
                           const auto def = std::make_shared<Pool2d>(mode, pool.window, true);
                           std::vector<std::string> names{"output"};
                           if (max) names.push_back("winners");
                           return Ids{graph.outputs[0] = graph.add_op(def, ids, "pool", {}, names)[0]};
                         }});
      }
    }
  }
  for (const char* name : {"global_average_pool2d_c5", "global_average_pool2d_c32"}) {
    cases.push_back(one(name, "x", std::make_shared<GlobalAveragePool2d>()));
  }
  for (const char* name : {"global_max_pool2d_c5", "global_max_pool2d_c16"}) {
    cases.push_back({name, "x", [](Graph& graph, const Ids& ids) {
                       const auto def = std::make_shared<GlobalMaxPool2d>(true);
                       return Ids{graph.outputs[0] = graph.add_op(def, ids, "pool", {}, {"output", "winners"})[0]};
                     }});
  }
}

// Batch normalisation of the first inputs, then the sum with the last input if `residual`, then ReLU if `relu`.
OpCase batch_norm(std::string name, std::string inputs, BatchNormAttributes attributes, bool residual, bool relu) {
  return {std::move(name), std::move(inputs), [=](Graph& graph, const Ids& ids) {
            Ids operands(ids.begin(), ids.end() - (residual ? 1 : 0));
            const auto def = std::make_shared<BatchNorm>(attributes);
            Ids outputs = graph.add_op(def, operands, "norm", {}, {"output", "mean", "variance"});
            for (int i : {1, 2}) graph.statistics.push_back({no_tensor, outputs[static_cast<std::size_t>(i)]});
            if (residual) outputs[0] = append(graph, std::make_shared<Add>(), {ids.back(), outputs[0]}, "sum");
            outputs[0] = append(graph, relu ? ActivationKind::relu : ActivationKind::none, outputs[0]);
            graph.outputs[0] = outputs[0];
            return outputs;
          }};
}

// The same normalisation by the ops of synchronized batch normalisation, with one rank.
OpCase synchronized_batch_norm(std::string name, std::string inputs, BatchNormAttributes attributes, bool residual,
                               bool relu) {
  return {std::move(name), std::move(inputs), [=](Graph& graph, const Ids& ids) {
            const TensorType numbers{{graph.tensor(ids[0]).type.shape[0]}, DType::int64};
            const TensorId samples = append(graph, std::make_shared<ZeroInput>(numbers), {}, "samples");
            const TensorId own = append(graph, std::make_shared<BatchMoments>(), {ids[0], samples}, "moments");
            const auto merged =
                graph.add_op(std::make_shared<MergeMoments>(), {own, own}, "merged", {}, {"mean", "variance", "share"});
            for (int i : {0, 1}) graph.statistics.push_back({no_tensor, merged[static_cast<std::size_t>(i)]});
            Ids operands(ids.begin(), ids.end() - (residual ? 1 : 0));
            operands.insert(operands.end(), merged.begin(), merged.end());
            const auto def = std::make_shared<SynchronizedBatchNorm>(attributes, MeshAxis::data, 1);
            TensorId y = append(graph, def, operands, "norm");
            if (residual) y = append(graph, std::make_shared<Add>(), {ids.back(), y}, "sum");
            y = append(graph, relu ? ActivationKind::relu : ActivationKind::none, y);
            graph.outputs[0] = y;
            return Ids{y, merged[0], merged[1]};
          }};
}

void add_normalisation(std::vector<OpCase>& cases) {
  cases.push_back(batch_norm("batch_norm", "xpp", {}, false, false));
  cases.push_back(batch_norm("batch_norm_no_scale", "xp", {.scale = false}, false, false));
  cases.push_back(batch_norm("batch_norm_no_center", "xp", {.center = false}, false, false));
  cases.push_back(batch_norm("batch_norm_no_scale_no_center", "x", {.scale = false, .center = false}, false, false));
  cases.push_back(batch_norm("batch_norm_rows", "xpp", {.epsilon = 1e-5f}, false, false));
  cases.push_back(batch_norm("batch_norm_relu", "xpp", {}, false, true));
  cases.push_back(batch_norm("batch_norm_residual_relu", "xppx", {}, true, true));
  cases.push_back(synchronized_batch_norm("batch_norm", "xpp", {}, false, false));
  cases.push_back(synchronized_batch_norm("batch_norm_no_scale", "xp", {.scale = false}, false, false));
  cases.push_back(synchronized_batch_norm("batch_norm_no_center", "xp", {.center = false}, false, false));
  cases.push_back(synchronized_batch_norm("batch_norm_rows", "xpp", {.epsilon = 1e-5f}, false, false));
  cases.push_back(synchronized_batch_norm("batch_norm_relu", "xpp", {}, false, true));
  cases.push_back(synchronized_batch_norm("batch_norm_residual_relu", "xppx", {}, true, true));
}

// A normalisation by a sample's own statistics.
template <class Norm, class Attributes>
OpCase norm(std::string name, std::string inputs, Attributes attributes) {
  return {std::move(name), std::move(inputs), [=](Graph& graph, const Ids& ids) {
            const auto def = std::make_shared<Norm>(attributes);
            return Ids{graph.outputs[0] = graph.add_op(def, ids, "norm", {}, {"output", "mean", "rstd"})[0]};
          }};
}

OpCase layer_norm(std::string name, std::string inputs, LayerNormAttributes attributes) {
  return norm<LayerNorm>(std::move(name), std::move(inputs), attributes);
}

// Layer normalisation of the sum of the first two inputs. If `again`, its result is added to that sum, so that the sum
// has two readers.
OpCase norm_of_sum(std::string name, std::string inputs, LayerNormAttributes attributes, bool again) {
  return {std::move(name), std::move(inputs), [=](Graph& graph, const Ids& ids) {
            const TensorId sum = append(graph, std::make_shared<Add>(), {ids[0], ids[1]}, "sum");
            Ids operands(ids.begin() + 1, ids.end());
            operands[0] = sum;
            const auto def = std::make_shared<LayerNorm>(attributes);
            const TensorId y = graph.add_op(def, operands, "norm", {}, {"output", "mean", "rstd"})[0];
            if (!again) return Ids{graph.outputs[0] = y};
            return Ids{append(graph, std::make_shared<Add>(), {sum, y}, "result")};
          }};
}

void add_layer_normalisation(std::vector<OpCase>& cases) {
  cases.push_back(layer_norm("layer_norm", "xpp", {}));
  cases.push_back(layer_norm("layer_norm_no_scale", "xp", {{.scale = false}}));
  cases.push_back(layer_norm("layer_norm_no_center", "xp", {{.center = false}}));
  cases.push_back(layer_norm("layer_norm_bare", "x", {{.scale = false, .center = false}}));
  cases.push_back(layer_norm("layer_norm_sequence", "xpp", {{.epsilon = 1e-5f}}));
  cases.push_back(layer_norm("rms_norm", "xp", {{.epsilon = 1e-6f, .center = false}, false}));
  cases.push_back(layer_norm("rms_norm_sequence", "xp", {{.epsilon = 1e-5f, .center = false}, false}));
  cases.push_back(layer_norm("rms_norm_shifted", "xpp", {{.epsilon = 1e-3f}, false}));
  cases.push_back(layer_norm("rms_norm_bare", "x", {{.scale = false, .center = false}, false}));
  cases.push_back(norm_of_sum("layer_norm_of_sum", "xxpp", {{.epsilon = 1e-5f}}, true));
  cases.push_back(norm_of_sum("layer_norm_of_sum_once", "xxpp", {{.epsilon = 1e-5f}}, false));
  cases.push_back(norm_of_sum("rms_norm_of_sum", "xxp", {{.epsilon = 1e-5f, .center = false}, false}, true));
}

OpCase group_norm(std::string name, std::string inputs, std::int64_t groups, NormAttributes attributes = {}) {
  return norm<GroupNorm>(std::move(name), std::move(inputs), GroupNormAttributes{attributes, groups});
}

void add_group_norm_and_prelu(std::vector<OpCase>& cases) {
  cases.push_back(group_norm("group_norm", "xpp", 3));
  cases.push_back(group_norm("group_norm_no_scale", "xp", 3, {.scale = false}));
  cases.push_back(group_norm("group_norm_no_center", "xp", 3, {.center = false}));
  cases.push_back(group_norm("group_norm_bare", "x", 3, {.scale = false, .center = false}));
  cases.push_back(group_norm("group_norm_32", "xpp", 32));
  cases.push_back(group_norm("group_norm_one", "xpp", 1, {.epsilon = 1e-5f}));
  cases.push_back(group_norm("group_norm_of_channels", "xpp", 5));
  cases.push_back(group_norm("group_norm_rows", "xpp", 4));
  cases.push_back(one("prelu", "xp", std::make_shared<PRelu>(false)));
  cases.push_back(one("prelu_rows", "xp", std::make_shared<PRelu>(false)));
  cases.push_back(one("prelu_shared_c5", "xp", std::make_shared<PRelu>(true)));
  cases.push_back(one("prelu_shared_c16", "xp", std::make_shared<PRelu>(true)));
}

// A recurrent layer: the product of the input, then the steps.
OpCase recurrent(std::string name, RecurrentAttributes attributes, bool bias) {
  const bool recurrent_bias = bias && attributes.cell == RecurrentCell::gru;
  return {std::move(name),
          recurrent_bias ? "xpppp"
          : bias         ? "xppp"
                         : "xpp",
          [=](Graph& graph, const Ids& ids) {
            const auto product_end = ids.begin() + (bias ? 3 : 2);
            Ids operands{append(graph, std::make_shared<Dense>(), Ids(ids.begin(), product_end), "product")};
            operands.insert(operands.end(), product_end, ids.end());
            const auto def = std::make_shared<Recurrent>(attributes, true);
            const std::vector<std::string> names{"output", "gates", "memories", "states"};
            return Ids{graph.outputs[0] = graph.add_op(def, operands, "steps", {}, names)[0]};
          }};
}

// A recurrent layer that begins with the last states of another one.
OpCase encoder_decoder(RecurrentCell cell) {
  const bool lstm = cell == RecurrentCell::lstm, gru = cell == RecurrentCell::gru;
  return {std::string(name_of(cell)) + "_encoder_decoder", gru ? "xppppxpppp" : "xpppxppp",
          [=](Graph& graph, const Ids& ids) {
            const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
            const auto operands = [&](auto begin) {
              Ids all{append(graph, std::make_shared<Dense>(), Ids(begin, begin + 3), "product")};
              all.insert(all.end(), begin + 3, begin + (middle - ids.begin()));
              return all;
            };
            const RecurrentAttributes first{.cell = cell, .sequences = false, .returns_c = lstm};
            std::vector<std::string> names{"output", "gates", "memories", "states"};
            if (lstm) names.emplace_back("cell_state");
            const auto states =
                graph.add_op(std::make_shared<Recurrent>(first, true), operands(ids.begin()), "encoder", {}, names);
            Ids inputs = operands(middle);
            inputs.push_back(states[0]);
            if (lstm) inputs.push_back(states.back());
            const RecurrentAttributes second{.cell = cell, .begins = true};
            names.resize(4);
            const auto def = std::make_shared<Recurrent>(second, true);
            return Ids{graph.outputs[0] = graph.add_op(def, inputs, "decoder", {}, names)[0]};
          }};
}

void add_recurrent(std::vector<OpCase>& cases) {
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple}) {
    const std::string name(name_of(cell));
    cases.push_back(recurrent(name, {cell}, true));
    cases.push_back(recurrent(name + "_last", {.cell = cell, .sequences = false}, true));
    cases.push_back(recurrent(name + "_backwards_no_bias", {.cell = cell, .backwards = true}, false));
    cases.push_back(recurrent(name + "_last_backwards", {.cell = cell, .sequences = false, .backwards = true}, true));
    cases.push_back(recurrent(name + "_two_steps", {cell}, true));
    cases.push_back(encoder_decoder(cell));
    cases.push_back(recurrent(name + "_both_ways", {.cell = cell, .backwards = true, .reversed = true}, true));
  }
}

void add_borders(std::vector<OpCase>& cases) {
  for (const char* channels : {"_c3", "_c16"}) {
    const Borders borders{{1, 2}, {0, 3}};
    cases.push_back(one(std::string("pad2d") + channels, "x", std::make_shared<Pad2d>(borders)));
    cases.push_back(one(std::string("crop2d") + channels, "x", std::make_shared<Crop2d>(borders)));
  }
  const auto upsample = [&](const char* name, Size2d factors, Interpolation how) {
    cases.push_back(one(name, "x", std::make_shared<Upsample2d>(factors, how)));
  };
  upsample("upsample2d_nearest_c3", {2, 3}, Interpolation::nearest);
  upsample("upsample2d_nearest_c16", {2, 2}, Interpolation::nearest);
  upsample("upsample2d_bilinear_c3", {3, 2}, Interpolation::bilinear);
  upsample("upsample2d_bilinear_c16", {2, 2}, Interpolation::bilinear);
  upsample("upsample2d_bilinear_row", {4, 5}, Interpolation::bilinear);
}

// Batch normalisation, ReLU and max pooling, as many networks begin.
OpCase normalised_pooling(const std::string& name, Size2d size, Padding padding) {
  return {name, "xpp", [=](Graph& graph, const Ids& ids) {
            const Shape& x = graph.tensor(ids[0]).type.shape;
            Window window{size, {2, 2}, {1, 1}, {}, {}};
            require(!resolve_padding(window, padding, {x[1], x[2]}, "window"), name);
            Ids outputs = batch_norm("", "", {}, false, true).build(graph, ids);
            outputs[0] = graph.outputs[0] = graph.add_op(std::make_shared<Pool2d>(PoolMode::max, window, true),
                                                         {outputs[0]}, "pool", {}, {"output", "winners"})[0];
            return outputs;
          }};
}

void add_normalised_pooling(std::vector<OpCase>& cases) {
  cases.push_back(normalised_pooling("batch_norm_relu_max_pool_c5", {2, 2}, PaddingMode::valid));
  cases.push_back(normalised_pooling("batch_norm_relu_max_pool_c16", {3, 3}, PaddingMode::same));
}

}  // namespace

TensorId append(Graph& graph, std::shared_ptr<const OpDef> def, Ids inputs, const std::string& name) {
  return graph.outputs[0] = graph.add_op(std::move(def), std::move(inputs), name, {})[0];
}

TensorId append(Graph& graph, ActivationKind kind, TensorId x) {
  if (kind == ActivationKind::none) return x;
  return append(graph, std::make_shared<Activation>(ActivationFunction{kind}), {x}, "function");
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> list;
    add_element_wise(list);
    add_positions(list);
    add_dense(list);
    add_convolutions(list);
    add_pooling(list);
    add_normalisation(list);
    add_normalised_pooling(list);
    add_layer_normalisation(list);
    add_group_norm_and_prelu(list);
    add_recurrent(list);
    add_attention(list);
    add_borders(list);
    return list;
  }();
  return cases;
}

}  // namespace trainctl::test
