// The placement cases of ops on images, and of normalizations.
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/global_max_pool2d.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/graph/ops/normalization/batch_norm_pool.h"
#include "core/graph/ops/normalization/group_norm.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/normalization/synchronized_batch_norm.h"
#include "test/core/backend/placement_cases.h"

namespace trainctl::test {

void add_convolutions(Cases& cases, DType dtype) {
  const Window window{{2, 2}, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
  const CaseInput x{{{4, 6, 4, 8}, dtype}}, dy{{{4, 6, 4, 6}, dtype}}, bias{{{6}, floats}};
  const ActivationFunction relu{ActivationKind::relu};
  for (const std::int64_t groups : {1, 2}) {
    const int ways = groups == 1 ? 5 : 3;
    const std::string group = groups == 1 ? "" : " in groups";
    const CaseInput kernel{{{2, 2, 8 / groups, 6}, floats}};
    const auto grad_input = [=](bool add) {
      return [=](const Types& in) {
        const Shape input{in[0].shape[0], 6, 4, in[1].shape[2] * groups};
        require(in[0].shape[3] == in[1].shape[3], "dy and the kernel do not fit");
        return std::make_shared<Conv2dGradInput>(window, groups, input, add);
      };
    };
    cases.push_back({"conv2d" + group, {x, kernel, bias}, always_a<Conv2d>(window, groups), ways});
    cases.push_back({"conv2d_grad_input" + group, {dy, kernel}, grad_input(false), ways});
    cases.push_back({"conv2d_grad_input add" + group, {dy, kernel, x}, grad_input(true), ways});
    cases.push_back(
        {"conv2d_grad_weights" + group, {x, dy}, always_a<Conv2dGradWeights>(window, groups, true, groups == 2), ways});
  }
  const CaseInput kernel{{{2, 2, 8, 6}, floats}};
  cases.push_back({"conv2d without bias", {x, kernel}, always_a<Conv2d>(window, 1), 5});
  cases.push_back({"conv2d relu", {x, kernel, bias}, always_a<Conv2d>(window, 1, relu), 3});

  const Window steps{{1, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 1}};
  const CaseInput sequence{{{4, 1, 6, 8}, dtype}}, dsequence{{{4, 1, 6, 6}, dtype}}, flat{{{2, 8, 6}, floats}};
  cases.push_back({"conv2d of sequences", {sequence, flat, bias}, always_a<Conv2d>(steps, 1), 5});
  cases.push_back({"conv2d relu of sequences", {sequence, flat, bias}, always_a<Conv2d>(steps, 1, relu), 3});
  const auto by_sequence = [=](const Types& in) {
    require(in[0].shape[3] == in[1].shape[2], "dy and the kernel do not fit");
    return std::make_shared<Conv2dGradInput>(steps, 1, Shape{in[0].shape[0], 1, 6, in[1].shape[1]});
  };
  cases.push_back({"conv2d_grad_input of sequences", {dsequence, flat}, by_sequence, 5});
  cases.push_back({"conv2d_grad_weights of sequences",
                   {sequence, dsequence},
                   always_a<Conv2dGradWeights>(steps, std::int64_t{1}, true, true, true),
                   5});
}

void add_volume_convolutions(Cases& cases, DType dtype) {
  const Window3d window{{2, 1, 2}, {1, 1, 2}, {1, 1, 1}, {0, 0, 1}, {1, 0, 0}};
  const CaseInput x{{{4, 3, 2, 5, 8}, dtype}}, dy{{{4, 3, 2, 3, 6}, dtype}}, bias{{{6}, floats}};
  const ActivationFunction relu{ActivationKind::relu};
  for (const std::int64_t groups : {1, 2}) {
    const int ways = groups == 1 ? 5 : 3;
    const std::string group = groups == 1 ? "" : " in groups";
    const CaseInput kernel{{{2, 1, 2, 8 / groups, 6}, floats}};
    const auto grad_input = [=](bool add) {
      return [=](const Types& in) {
        const Shape input{in[0].shape[0], 3, 2, 5, in[1].shape[3] * groups};
        require(in[0].shape[4] == in[1].shape[4], "dy and the kernel do not fit");
        return std::make_shared<Conv3dGradInput>(window, groups, input, add);
      };
    };
    cases.push_back({"conv3d" + group, {x, kernel, bias}, always_a<Conv3d>(window, groups), ways});
    cases.push_back({"conv3d_grad_input" + group, {dy, kernel}, grad_input(false), ways});
    cases.push_back({"conv3d_grad_input add" + group, {dy, kernel, x}, grad_input(true), ways});
    cases.push_back(
        {"conv3d_grad_weights" + group, {x, dy}, always_a<Conv3dGradWeights>(window, groups, true, groups == 2), ways});
  }
  cases.push_back(
      {"conv3d relu", {x, {{{2, 1, 2, 8, 6}, floats}}, bias}, always_a<Conv3d>(window, std::int64_t{1}, relu), 3});
}

void add_pooling(Cases& cases, DType dtype) {
  const Window window{{2, 2}, {2, 2}, {1, 1}, {}, {}};
  const CaseInput x{{{4, 4, 8, 6}, dtype}}, dy{{{4, 2, 4, 6}, dtype}}, winners{{{4, 2, 4, 6}, DType::uint8}, 0, 4};
  for (const PoolMode mode : {PoolMode::max, PoolMode::average}) {
    const bool max = mode == PoolMode::max;
    cases.push_back({"pool2d", {x}, always_a<Pool2d>(mode, window, true), max ? 3 : 4});
    std::vector<CaseInput> inputs{dy};
    if (max) inputs.push_back(winners);
    const auto gradient = [=](const Types& in) {
      return std::make_shared<Pool2dGrad>(mode, window, Shape{in[0].shape[0], 4, 8, in[0].shape[3]});
    };
    cases.push_back({"pool2d_grad", inputs, gradient, 4});
  }
  const auto spread = [](const Types& in) {
    return std::make_shared<GlobalAveragePool2dGrad>(Shape{in[0].shape[0], 4, 8, in[0].shape[1]});
  };
  cases.push_back({"global_average_pool2d", {x}, always_a<GlobalAveragePool2d>(), 4});
  cases.push_back({"global_average_pool2d_grad", {{{{4, 6}, dtype}}}, spread, 4});
  const auto to_winners = [](const Types& in) {
    return std::make_shared<GlobalMaxPool2dGrad>(Shape{in[0].shape[0], 4, 8, in[0].shape[1]});
  };
  cases.push_back({"global_max_pool2d", {x}, always_a<GlobalMaxPool2d>(true), 3});
  cases.push_back({"global_max_pool2d_grad", {{{{4, 6}, dtype}}, {{{4, 6}, DType::int32}, 0, 32}}, to_winners, 4});
}

void add_normalisation(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 2, 4, 16}, dtype}}, channel{{{16}, floats}}, variance{{{16}, floats}, 0.5};
  const CaseInput bits{{{4, 2, 4, 2}, DType::uint8}, 0, 256};
  const BatchNormAttributes plain{}, relu{.relu = true}, bare{.scale = false, .center = false},
      residual{.residual = true, .relu = true};
  cases.push_back({"batch_norm", {x, channel, channel}, always_a<BatchNorm>(plain), 3});
  cases.push_back({"batch_norm bare", {x}, always_a<BatchNorm>(bare), 3});
  cases.push_back({"batch_norm residual", {x, channel, channel, x}, always_a<BatchNorm>(residual), 3});
  cases.push_back(
      {"batch_norm_inference", {x, channel, channel, channel, variance, x}, always_a<BatchNormInference>(residual), 5});
  cases.push_back(
      {"batch_norm_inference_grad", {x, channel, variance}, always_a<BatchNormInferenceGrad>(1e-3f, true), 6});
  for (const bool add : {false, true}) {
    cases.push_back({"batch_norm_grad", {x, x, channel, channel, variance}, always_a<BatchNormGrad>(plain, add), 4});
  }
  cases.push_back(
      {"batch_norm_grad relu", {x, x, channel, channel, channel, variance}, always_a<BatchNormGrad>(relu, true), 4});
  cases.push_back(
      {"batch_norm_grad bits", {x, x, bits, channel, channel, variance}, always_a<BatchNormGrad>(residual, true), 4});
  const CaseInput odd{{{4, 6}, dtype}}, six{{{6}, floats}}, six_variance{{{6}, floats}, 0.5};
  cases.push_back(
      {"batch_norm_grad y", {odd, odd, odd, six, six, six_variance}, always_a<BatchNormGrad>(residual, true), 4});
  const CaseInput mask{{{4, 2, 4}, DType::uint8}, 0, 2}, row_mask{{{4}, DType::uint8}, 0, 2}, count{{{}, floats}, 5};
  BatchNormAttributes masked{}, masked_residual = residual;
  masked.masked = masked_residual.masked = true;
  cases.push_back({"batch_norm masked", {x, channel, channel, mask}, always_a<BatchNorm>(masked), 3, floats, false});
  cases.push_back({"batch_norm masked residual",
                   {x, channel, channel, mask, x},
                   always_a<BatchNorm>(masked_residual),
                   3,
                   floats,
                   false});
  cases.push_back({"batch_norm masked rows", {odd, six, six, row_mask}, always_a<BatchNorm>(masked), 3, floats, false});
  cases.push_back({"batch_norm_grad masked",
                   {x, x, bits, channel, channel, variance, mask, count},
                   always_a<BatchNormGrad>(masked_residual, true),
                   4,
                   floats,
                   false});

  const Window window{{2, 2}, {2, 2}, {1, 1}, {}, {}};
  const CaseInput pooled{{{4, 1, 2, 16}, dtype}}, winners{{{4, 1, 2, 16}, DType::uint8}, 0, 4};
  cases.push_back({"batch_norm_pool", {x, channel, channel}, always_a<BatchNormPool>(relu, window), 3});
  const auto gradient = [=](const Types& in) {
    return std::make_shared<BatchNormPoolGrad>(relu, window, in[2].shape, true);
  };
  cases.push_back({"batch_norm_pool_grad", {pooled, winners, x, channel, channel, channel, variance}, gradient, 4});

  const CaseInput rows{{{4, 2, 6}, dtype}}, row{{{4, 2}, floats}}, spread{{{4, 2}, floats}, 0.5};
  cases.push_back({"layer_norm", {rows, six, six}, always_a<LayerNorm>(LayerNormAttributes{}), 3});
  const LayerNormAttributes rms{{.center = false}, false};
  cases.push_back({"layer_norm of squares", {rows, six}, always_a<LayerNorm>(rms), 3});
  cases.push_back(
      {"layer_norm_grad of squares", {rows, rows, six, row, spread}, always_a<LayerNormGrad>(rms, true), 4});
  cases.push_back(
      {"layer_norm_grad", {rows, rows, six, row, spread}, always_a<LayerNormGrad>(LayerNormAttributes{}, true), 4});
  const LayerNormAttributes of_sum{{}, true, true};
  cases.push_back({"layer_norm of a sum", {rows, rows, six, six}, always_a<LayerNorm>(of_sum), 3});
  auto adding = std::make_shared<LayerNormGrad>(LayerNormAttributes{}, false);
  adding->adds = true;
  cases.push_back({"layer_norm_grad that adds", {rows, rows, six, row, spread, rows}, always(adding), 4});
  const CaseInput groups{{{4, 3}, floats}}, deviations{{{4, 3}, floats}, 0.5}, images{{{4, 2, 4, 6}, dtype}};
  const GroupNormAttributes three{{}, 3};
  cases.push_back({"group_norm", {images, six, six}, always_a<GroupNorm>(three), 2});
  for (const bool add : {false, true}) {
    cases.push_back(
        {"group_norm_grad", {images, images, six, groups, deviations}, always_a<GroupNormGrad>(three, add), 3});
  }
}

void add_synchronized_normalisation(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 2, 4, 16}, dtype}}, channel{{{16}, floats}}, variance{{{16}, floats}, 0.5};
  const CaseInput bits{{{4, 2, 4, 2}, DType::uint8}, 0, 256}, numbers{{{4}, DType::int64}, 0, 1000};
  const CaseInput all{{{6, 16}, floats}, 1}, own{{{3, 16}, floats}, 1}, share{{{}, floats}, 0.25},
      sums{{{2, 16}, floats}};
  const CaseInput mask{{{4, 2, 4}, DType::uint8}, 0, 2};
  const BatchNormAttributes plain{}, relu{.relu = true}, residual{.residual = true, .relu = true};
  BatchNormAttributes masked = relu;
  masked.masked = true;
  cases.push_back({"batch_moments", {x, numbers}, always_a<BatchMoments>(false), 3, floats, false});
  cases.push_back({"batch_moments masked", {x, numbers, mask}, always_a<BatchMoments>(true), 3, floats, false});
  cases.push_back({"synchronized_batch_norm masked",
                   {x, channel, channel, mask, channel, variance, share},
                   always_a<SynchronizedBatchNorm>(masked, MeshAxis::data, 2),
                   3});
  cases.push_back({"synchronized_batch_norm_grad masked",
                   {x, x, channel, channel, channel, variance, share, sums, mask},
                   always_a<SynchronizedBatchNormGrad>(masked),
                   4});
  cases.push_back({"merge_moments", {all, own}, always_a<MergeMoments>(), 3});
  const auto norm = always_a<SynchronizedBatchNorm>(residual, MeshAxis::data, 2);
  cases.push_back({"synchronized_batch_norm", {x, channel, channel, channel, variance, share, x}, norm, 3});
  for (const bool add : {false, true}) {
    cases.push_back({"synchronized_batch_norm_sums",
                     {x, x, channel, channel, variance},
                     always_a<SynchronizedBatchNormSums>(plain, add),
                     4});
  }
  cases.push_back({"synchronized_batch_norm_sums bits",
                   {x, x, bits, channel, channel, variance},
                   always_a<SynchronizedBatchNormSums>(residual, true),
                   4});
  cases.push_back({"synchronized_batch_norm_grad",
                   {x, x, channel, channel, channel, variance, share, sums},
                   always_a<SynchronizedBatchNormGrad>(relu),
                   4});
}

}  // namespace trainctl::test
