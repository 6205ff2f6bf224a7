// The placement cases of losses, metrics, sums and updates.
#include "core/graph/ops/losses/linear_cross_entropy.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/metrics/metrics.h"
#include "core/graph/ops/metrics/token_bytes.h"
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/one_hot.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/gradients.h"
#include "core/graph/ops/training/moving_average.h"
#include "core/graph/ops/training/restore.h"
#include "core/graph/ops/training/rounded_sum.h"
#include "core/graph/ops/training/spectral_norm.h"
#include "core/graph/ops/training/tree_sum.h"
#include "test/core/backend/placement_cases.h"

namespace trainctl::test {

void add_sums(Cases& cases, DType dtype) {
  const CaseInput predictions{{{6, 4}, dtype}}, labels{{{6}, DType::int32}, 0, 4}, values{{{6, 4}, floats}, 0},
      weights{{{6}, floats}, 0.25};
  const LossRule classes = SparseCategoricalCrossentropy{}, huber = Huber{};
  for (const bool add : {false, true}) {
    cases.push_back({"loss of labels", {predictions, labels, weights}, always_a<Loss>(classes, true, add), 2});
    cases.push_back({"loss of values", {predictions, values, weights}, always_a<Loss>(huber, !add, add), 2});
    for (const MetricRule& rule : {MetricRule(Accuracy{}), MetricRule(MeanAbsoluteError{}), MetricRule(Auc{8})}) {
      const CaseInput& targets = std::holds_alternative<Accuracy>(rule) ? labels : values;
      cases.push_back({std::string(name_of(rule)), {predictions, targets, weights}, always_a<Metric>(rule, add), 2});
    }
  }
  const ByteCounts bytes = std::make_shared<const std::vector<float>>(std::vector<float>{2, 0, 1, 3});
  for (const bool add : {false, true}) {
    cases.push_back({"token_bytes", {labels, weights}, always_a<TokenBytes>(bytes, add), 2});
  }
  cases.push_back({"one_hot", {labels}, always_a<OneHot>(std::int64_t{4}), 2});
  cases.push_back({"class_sums", {predictions, labels}, always_a<ClassSums>(classes, ColumnRange{0, 4}), 2});
  // Sequences have a weight for each sample or for each position.
  const CaseInput sequences{{{4, 6, 4}, dtype}}, tokens{{{4, 6}, DType::int32}, 0, 4};
  for (const Shape& shape : {Shape{4}, Shape{4, 6}}) {
    const CaseInput each{{shape, floats}, 0.25};
    cases.push_back({"loss of sequences", {sequences, tokens, each}, always_a<Loss>(classes, true, true), 3});
    cases.push_back(
        {"accuracy of sequences", {sequences, tokens, each}, always_a<Metric>(MetricRule(Accuracy{}), false), 3});
  }
  const CaseInput each{{{4}, floats}, 0.25}, spelled{{{4, 2}, DType::int32}, 0, 4}, mask{{{4, 6}, DType::uint8}, 0, 2};
  for (const bool masked : {false, true}) {
    std::vector<CaseInput> inputs{sequences, spelled, each};
    if (masked) inputs.push_back(mask);
    const auto always = [masked](auto def) {
      def.masked = masked;
      return [def](const Types&) { return std::make_shared<decltype(def)>(def); };
    };
    cases.push_back({"ctc", inputs, always(Loss(Ctc{.zero_infinity = true}, true, masked)), 2});
    cases.push_back({"edit distance", inputs, always(Metric(EditDistance{}, masked)), 2});
  }
}

void add_fused_loss(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6, 2}, dtype}}, kernel{{{2, 8}, floats}}, bias{{{8}, floats}},
      tokens{{{4, 6}, DType::int32}, 0, 8}, weights{{{4}, floats}, 0.25};
  LinearCrossEntropy fused;
  fused.has_bias = true;
  cases.push_back({"linear_cross_entropy", {x, kernel, bias, tokens}, always_a<LinearCrossEntropy>(fused), 3});
  fused.training = true;
  for (const bool add : {false, true}) {
    fused.accumulate = add;
    cases.push_back(
        {"linear_cross_entropy gradients", {x, kernel, bias, tokens, weights}, always_a<LinearCrossEntropy>(fused), 3});
  }
}

void add_update(Cases& cases) {
  const CaseInput statistic{{{4}, floats}}, region{{{8}, floats}}, scalar{{{}, floats}, 0.25},
      step{{{}, DType::int64}, 0, 9};
  // Each statistic is split or not; with a partial count, it is common to the ranks or each rank has its own.
  for (const bool add : {false, true}) {
    cases.push_back({"accumulate_statistics", {statistic, statistic, scalar}, always_a<AccumulateStatistics>(add), 8});
    cases.push_back({"count", {{{{6}, DType::int64}, 0, 1000}}, always_a<Count>(add), 2});
    cases.push_back({"count of weights", {{{{6, 2}, floats}, 0.25}}, always_a<Count>(add), 3});
  }
  const auto update_statistics = always_a<UpdateStatistics>(std::vector<float>{0.9f, 0.5f});
  // All flags are 0: with random flags the op would change nothing.
  const CaseInput flags{{{agree_flags}, floats}, 0, 1};
  cases.push_back({"update_statistics", {statistic, statistic, scalar, flags, scalar}, update_statistics, 4});
  const auto optimizer = [](OptimizerRule rule) {
    return [rule = std::move(rule)](const Types& in) {
      OptimizerUpdate update(rule);
      update.ranges = {{0, in[0].shape[0], true}};
      update.clip_norm = 0.5f;
      update.weight_decay = 0.01f;
      return std::make_shared<OptimizerUpdate>(std::move(update));
    };
  };
  const std::vector<CaseInput> inputs{region, scalar, step, scalar, flags, scalar};
  cases.push_back({"sgd", inputs, optimizer(Sgd{.momentum = 0.9f}), 2});
  cases.push_back({"rmsprop", inputs, optimizer(RmsProp{}), 2});
  cases.push_back({"lamb", inputs, optimizer(Lamb{}), 1});
  cases.push_back({"lars", inputs, optimizer(Lars{}), 1});
  const auto factored = [](const Types& in) {
    OptimizerUpdate update(Adafactor{});
    update.ranges = {{0, in[0].shape[0], true, Factors(in[0].shape)}};
    return std::make_shared<OptimizerUpdate>(std::move(update));
  };
  cases.push_back({"adafactor", inputs, factored, 1});
  const auto average = [](const Types& in) { return std::make_shared<MovingAverage>(0.5f, in[0].shape[0]); };
  cases.push_back({"moving_average", {region, step, flags, scalar}, average, 2});
  const CaseInput kernel{{{4, 6}, floats}}, vector{{{1, 6}, floats}};
  cases.push_back({"spectral_norm", {kernel, vector}, always_a<SpectralNorm>(2), 1});
  cases.push_back({"restore", {region, flags, scalar}, always_a<Restore>(), 2});
  const auto norm = [](const Types& in) { return std::make_shared<GradientNorm>(in[0].shape[0]); };
  cases.push_back({"gradient_norm", {region, scalar}, norm, 1});
  const auto whole = [](const Types& in) { return std::vector<GradientMatrix>{{0, 2, in[0].shape[0] / 2}}; };
  const auto centralize = [=](const Types& in) { return std::make_shared<CentralizeGradients>(whole(in)); };
  cases.push_back({"centralize_gradients", {region}, centralize, 1});
  const auto clip_norm = [=](const Types& in) { return std::make_shared<ClipGradients>(whole(in), 0.5f, 0.0f); };
  cases.push_back({"clip_gradients by norm", {region, scalar}, clip_norm, 1});
  const auto clip_value = [=](const Types& in) { return std::make_shared<ClipGradients>(whole(in), 0.0f, 0.5f); };
  cases.push_back({"clip_gradients by value", {region, scalar}, clip_value, 2});
  const auto squares = [](const Types& in) {
    return std::make_shared<SumOfSquares>(std::vector<InputRange>{{0, 0, in[0].shape[0]}}, std::vector<MeshAxis>());
  };
  cases.push_back({"sum_of_squares", {region}, squares, 1});
  const auto chunk_squares = [](const Types& in) {
    ChunkSquares op;
    op.ranges = {{{0, 0, in[0].shape[0]}, 0}};
    op.chunks = in[0].shape[0] / norm_chunk + 1;
    return std::make_shared<ChunkSquares>(std::move(op));
  };
  cases.push_back({"chunk_squares", {region}, chunk_squares, 1});
  cases.push_back({"sum_of_chunks", {region}, always_a<SumOfChunks>(), 2});
  cases.push_back({"norm_of_squares", {scalar, scalar}, always_a<NormOfSquares>(), 1});
  cases.push_back({"round_summands", {region}, always_a<RoundSummands>(MeshAxis::data, 2), 1});
  const CaseInput summands{{{8}, DType::bfloat16}};
  cases.push_back({"add_summands", {summands}, always_a<AddSummands>(MeshAxis::data, 2, floats), 1, floats, false});
  cases.push_back({"widen_sums", {summands}, always_a<WidenSums>(MeshAxis::data, 2, std::int64_t{7}), 1});
  const std::vector<Summand> both{{0, 0, 0}, {1, 0, 1}};
  cases.push_back({"tree_sum", {region, region}, always_a<TreeSum>(both), 4, floats});
  const TensorType labels{{4, 3}, DType::int32};
  cases.push_back({"zero_input", {}, always_a<ZeroInput>(labels), 1});
  cases.push_back({"zero_gaps", {region}, always_a<ZeroGaps>(std::vector<ZeroGaps::Gap>{{1, 2}}), 3});
  cases.push_back({"zero_gradients", {}, always_a<ZeroGradients>(std::int64_t{8}), 1});
}

}  // namespace trainctl::test
