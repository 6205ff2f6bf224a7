// Lists the ops whose placement rules are compared with kernels.
#include "test/core/backend/placement_cases.h"

#include <cmath>

#include "core/expression/scalar_graph.h"
#include "core/graph/ops/additive_attention.h"
#include "core/graph/ops/arange.h"
#include "core/graph/ops/cumsum.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/elementwise/gated_linear_unit.h"
#include "core/graph/ops/elementwise/noise.h"
#include "core/graph/ops/elementwise/prelu.h"
#include "core/graph/ops/elementwise/random_numbers.h"
#include "core/graph/ops/embedding.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/padding.h"
#include "core/graph/ops/images/upsample2d.h"
#include "core/graph/ops/masks.h"
#include "core/graph/ops/matmul.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/recurrent.h"
#include "core/graph/ops/reduce.h"
#include "core/graph/ops/reshaping/columns.h"
#include "core/graph/ops/reshaping/flip.h"
#include "core/graph/ops/reshaping/permute.h"
#include "core/graph/ops/rotary.h"
#include "core/graph/ops/row_group.h"
#include "core/graph/ops/training/penalize.h"
#include "core/graph/ops/write_cache.h"

namespace trainctl::test {
namespace {

// Computes an op without a kernel by the ops of its decomposition, one after the other.
std::vector<Value> compute_parts(Backend& backend, KernelChoices& choices, const OpDef& def,
                                 const std::vector<Value>& inputs, const std::vector<Value>& held) {
  std::vector<Value> tensors = inputs;
  tensors.insert(tensors.end(), held.begin(), held.end());
  for (const SubOp& part : def.decomposition()) {
    std::vector<Value> given, before;
    for (int input : part.inputs) given.push_back(tensors.at(static_cast<std::size_t>(input)));
    for (int output : part.outputs) {
      if (static_cast<std::size_t>(output) >= tensors.size()) tensors.resize(static_cast<std::size_t>(output) + 1);
      before.push_back(tensors[static_cast<std::size_t>(output)]);
    }
    const auto results = compute(backend, choices, part.def, given, before);
    for (std::size_t i = 0; i < results.size(); ++i) tensors[static_cast<std::size_t>(part.outputs[i])] = results[i];
  }
  const auto first = tensors.begin() + std::ssize(inputs);
  return {first, first + std::ssize(held)};
}

void add_elementwise(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6}, dtype}}, scalar{{{}, floats}};
  const ActivationFunction relu{ActivationKind::relu}, tanh{ActivationKind::tanh};
  cases.push_back({"activation", {x}, always_a<Activation>(tanh), 3});
  cases.push_back({"activation_grad", {x, x}, always_a<ActivationGrad>(relu), 4});
  cases.push_back({"add", {x, x}, always_a<Add>(), 4});
  cases.push_back({"add relu", {x, x}, always_a<Add>(relu), 3});
  cases.push_back({"cast", {{{{4, 6}, floats}}}, always_a<Cast>(dtype), 4});
  cases.push_back({"scale", {x, scalar}, always_a<Scale>(), 4});
  cases.push_back({"softmax", {x}, always_a<Softmax>(), 2});
  const CaseInput image{{{4, 2, 4, 6}, dtype}};
  for (const bool shared : {false, true}) {
    const CaseInput alpha{{shared ? Shape{1, 1, 6} : Shape{2, 4, 6}, floats}};
    cases.push_back({"prelu", {image, alpha}, always_a<PRelu>(shared), 5});
    cases.push_back({"prelu_grad", {image, image, alpha}, always_a<PReluGrad>(shared, shared), 6});
  }
  cases.push_back({"softmax_grad", {x, x}, always_a<SoftmaxGrad>(), 3});
  cases.push_back({"dropout",
                   {x, {{{4}, DType::int64}, 0, 1000}, {{{}, DType::int64}, 0, 50}},
                   always_a<Dropout>(0.4f, 7u, 9u),
                   3});
  SampleFormat each{floats, {0.5f, 1.5f, 1, 2, 0.25f, 3}, {1, 2, 3, 4, 5, 6}}, one{floats, {0.5f}, {0.25f}};
  cases.push_back({"normalize by channel", {{{{4, 6}, floats}}}, always_a<Normalize>(dtype, each), 2});
  cases.push_back({"normalize", {{{{4, 6}, DType::uint8}, 0, 200}}, always_a<Normalize>(dtype, one), 3});
}

void add_combinations(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6}, dtype}}, image{{{4, 3, 2, 6}, dtype}}, factors{{{4, 1, 1, 6}, dtype}};
  cases.push_back({"multiply", {x, x}, always_a<Multiply>(), 3});
  const ActivationFunction silu{ActivationKind::silu};
  cases.push_back({"gated_linear_unit", {x, x}, always_a<GatedLinearUnit>(silu), 3});
  cases.push_back({"gated_linear_unit_grad", {x, x, x}, always_a<GatedLinearUnitGrad>(silu), 4});
  cases.push_back({"multiply_channels", {image, factors}, always_a<MultiplyChannels>(), 3});
  cases.push_back({"multiply_channels_grad", {image, image}, always_a<MultiplyChannelsGrad>(), 3});
  cases.push_back({"scale_by", {x}, always_a<ScaleBy>(0.5f), 4});
  cases.push_back({"extremum", {x, x}, always_a<Extremum>(Extreme::smallest), 3});
  cases.push_back({"extremum_grad", {x, x, x}, always_a<ExtremumGrad>(Extreme::largest), 4});
  cases.push_back({"gaussian_noise",
                   {x, {{{4}, DType::int64}, 0, 1000}, {{{}, DType::int64}, 0, 50}},
                   always_a<GaussianNoise>(0.25f, 7u, 9u),
                   2});
  cases.push_back({"random_numbers",
                   {x, {{{4}, DType::int64}, 0, 1000}, {{{}, DType::int64}, 0, 50}},
                   always_a<RandomNumbers>(RandomNumbers::Kind::normal, Shape{3, 5}, dtype, 7u, 9u),
                   2});
}

void add_programs(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6}, dtype}}, scale{{{6}, floats}}, offset{{{4, 1}, floats}}, column{{{4, 1, 6}, dtype}};
  ScalarGraph graph;
  const int product = graph.apply(ScalarFunction::multiply, graph.of_input(0), graph.of_input(1));
  const int sum[] = {graph.apply(ScalarFunction::add, product, graph.of_input(2)),
                     graph.apply(ScalarFunction::tanh, product)};
  const auto broadcasting = std::make_shared<Elementwise>(graph.program(sum), std::vector{dtype, floats});
  cases.push_back({"elementwise", {x, scale, offset}, always(broadcasting), 3});
  const int scaled[] = {product}, copied[] = {graph.of_input(0)};
  const auto linear = std::make_shared<Elementwise>(graph.program(scaled), std::vector{floats});
  linear->linear = {0};
  cases.push_back({"elementwise linear", {x, scale}, always(linear), 4});
  const auto expanding = std::make_shared<Elementwise>(graph.program(copied), std::vector{dtype});
  expanding->linear = {0};
  expanding->expanded = {{1, 4}};
  cases.push_back({"elementwise expanded", {column}, always(expanding), 4});
}

// x - mean(x) of each row, and the largest of these values.
void add_row_group(Cases& cases, DType dtype) {
  const auto sum = std::make_shared<Reduce>(ReduceKind::sum, 1, 3),
             largest = std::make_shared<Reduce>(ReduceKind::maximum, 1, 3);
  sum->keep = true;
  sum->scale = 1.0f / 12;
  ScalarGraph graph;
  const int difference[] = {graph.apply(ScalarFunction::subtract, graph.of_input(0), graph.of_input(1))};
  const auto group = std::make_shared<RowGroup>();
  group->ops = {{sum, {0}, {3}},
                {std::make_shared<Elementwise>(graph.program(difference), std::vector{dtype}), {0, 3}, {1}},
                {largest, {1}, {2}}};
  group->inputs_count = 1;
  group->outputs_count = 2;
  cases.push_back({"row_group", {{{{4, 2, 6}, dtype}}}, always(group), 2});
}

void add_reductions(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 2, 6}, dtype}};
  for (const bool add : {false, true}) {
    const auto sum = std::make_shared<Reduce>(ReduceKind::sum, 1, 2);
    sum->accumulate = sum->keep = sum->splits = add;
    sum->scale = 0.5f;
    cases.push_back({"reduce sum", {x}, always(sum), add ? 5 : 4});
  }
  const auto sum_of_all = std::make_shared<Reduce>(ReduceKind::sum, 0, 3);
  sum_of_all->splits = true;
  cases.push_back({"reduce sum of all", {x}, always(sum_of_all), 5});
  for (const ReduceKind kind : {ReduceKind::maximum, ReduceKind::minimum}) {
    cases.push_back({"reduce extreme", {x}, always_a<Reduce>(kind, 1, 2), 3});
  }
}

void add_shaping(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 2, 6}, dtype}};
  cases.push_back({"permute", {x}, always_a<Permute>(std::vector<std::int64_t>{0, 2, 1}), 5});
  cases.push_back({"flip", {x}, always_a<Flip>(1), 4});
  cases.push_back({"arange", {}, always_a<Arange>(6), 1});
  for (const bool reverse : {false, true}) {
    cases.push_back({"cumsum", {x}, always_a<CumulativeSum>(2, reverse), 4});
  }
  cases.push_back({"concatenate", {x, x}, always_a<Concatenate>(), 4});
  cases.push_back({"take_columns", {x}, always_a<TakeColumns>(MeshAxis::tensor, ShardPosition{2, 1}), 4});
  cases.push_back({"split", {x}, always_a<Split>(std::vector<std::int64_t>{2, 4}), 4});
  const auto flatten = [](const Types& in) {
    return std::make_shared<Reshape>(Shape{in[0].shape[0], in[0].shape[1] * in[0].shape[2]});
  };
  cases.push_back({"flatten", {x}, flatten, 4});
  const auto reorder = [=](const Types& in) { return std::make_shared<Reorder>(logical_layout({in[0].shape, dtype})); };
  cases.push_back({"reorder", {{{{4, 2, 6}, floats}}}, reorder, 5});
  const CaseInput image{{{2, 6, 8, 4}, dtype}};
  const Borders borders{{1, 2}, {0, 1}};
  cases.push_back({"pad2d", {image}, always_a<Pad2d>(borders), 4});
  cases.push_back({"crop2d", {image}, always_a<Crop2d>(borders), 4});
  const std::array<std::int64_t, 2> factors{3, 2};
  for (const Interpolation how : {Interpolation::nearest, Interpolation::bilinear}) {
    cases.push_back({"upsample2d", {image}, always_a<Upsample2d>(factors, how), 4});
    cases.push_back({"upsample2d_grad", {image}, always_a<Upsample2dGrad>(factors, how), 4});
  }
}

void add_dense(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6}, dtype}}, kernel{{{6, 8}, floats}}, bias{{{8}, floats}}, dy{{{4, 8}, dtype}};
  const ActivationFunction relu{ActivationKind::relu};
  cases.push_back({"dense", {x, kernel}, always_a<Dense>(), 5});
  cases.push_back({"dense bias", {x, kernel, bias}, always_a<Dense>(), 5});
  cases.push_back({"dense relu", {x, kernel, bias}, always_a<Dense>(relu), 3});
  cases.push_back({"dense_grad_input", {dy, kernel}, always_a<DenseGradInput>(), 5});
  cases.push_back({"dense_grad_input add", {dy, kernel, x}, always_a<DenseGradInput>(ActivationFunction{}, true), 5});
  cases.push_back({"dense_grad_input relu", {dy, kernel, x}, always_a<DenseGradInput>(relu), 5});
  for (const bool add : {false, true}) {
    cases.push_back({"dense_grad_weights", {x, dy}, always_a<DenseGradWeights>(true, add), 5});
  }
  cases.push_back({"add_bias", {dy, bias}, always_a<AddBias>(relu), 3});
  cases.push_back({"penalize", {kernel, {{{}, floats}, 0.5}}, always_a<Penalize>(Penalty{0.25f, 0.5f}), 4});
  for (const bool add : {false, true}) cases.push_back({"bias_grad", {dy}, always_a<BiasGrad>(add), 4});
  const CaseInput wide{{{4, 8}, dtype}}, heads{{{6, 4, 2}, floats}}, joined{{{4, 2, 6}, floats}},
      head_bias{{{4, 2}, floats}}, six_bias{{{6}, floats}};
  cases.push_back({"dense to heads", {x, heads, head_bias}, always_a<Dense>(), 5});
  cases.push_back({"dense of heads", {wide, joined, six_bias}, always_a<Dense>(), 5});
  cases.push_back({"dense_grad_input to heads", {wide, heads}, always_a<DenseGradInput>(), 5});
  const auto of_heads = [](const Types& in) {
    auto gradient = std::make_shared<DenseGradWeights>(true, false);
    gradient->shapes.emplace(Shape{in[0].shape[1], in[1].shape[1] / 2, 2}, Shape{in[1].shape[1] / 2, 2});
    return gradient;
  };
  cases.push_back({"dense_grad_weights to heads", {x, wide}, of_heads, 5});
  const CaseInput sequence{{{4, 2, 6}, dtype}}, dsequence{{{4, 2, 8}, dtype}};
  cases.push_back({"dense of sequences", {sequence, kernel, bias}, always_a<Dense>(), 6});
  cases.push_back({"dense_grad_input of sequences", {dsequence, kernel}, always_a<DenseGradInput>(), 6});
  cases.push_back(
      {"dense_grad_weights of sequences", {sequence, dsequence}, always_a<DenseGradWeights>(true, true), 6});
}

void add_products(Cases& cases, DType dtype) {
  const CaseInput rows{{{2, 4, 6, 8}, dtype}}, columns{{{2, 4, 8, 6}, dtype}}, wide{{{4, 2, 8}, dtype}};
  cases.push_back({"matmul", {rows, columns}, always_a<Matmul>(false, false), 8});
  cases.push_back({"matmul of transposed operands", {columns, rows}, always_a<Matmul>(true, true), 8});
  cases.push_back({"matmul of two dimensions", {wide, wide}, always_a<Matmul>(false, true), 7});
}

void add_embeddings(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6}, DType::int32}, 0, 10}, table{{{10, 8}, floats}}, dy{{{4, 6, 8}, dtype}};
  cases.push_back({"embedding", {x, table}, always_a<Embedding>(dtype), 4});
  for (const bool add : {false, true}) {
    cases.push_back({"embedding_grad", {x, dy}, always_a<EmbeddingGrad>(std::int64_t{10}, add), 5});
  }
}

void add_masks(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 6, 8}, dtype}}, tokens{{{4, 6}, DType::int32}, 0, 3}, mask{{{4, 6}, DType::uint8}, 0, 2};
  const CaseInput means{{{4, 8}, dtype}}, weights{{{4, 6}, floats}, 0.5}, each{{{4}, floats}, 0.5};
  const CaseInput numbers{{{4}, DType::int64}, 0, 9};
  cases.push_back({"position_mask of tokens", {tokens}, always_a<PositionMask>(0.0f), 3});
  cases.push_back({"position_mask of values", {x}, always_a<PositionMask>(0.0f), 3});
  for (const bool all : {false, true}) cases.push_back({"merge_masks", {mask, mask}, always_a<MergeMasks>(all), 3});
  cases.push_back({"mask_positions", {x, mask}, always_a<MaskPositions>(), 5});
  cases.push_back({"masked_mean", {x, mask}, always_a<MaskedMean>(), 4});
  cases.push_back({"masked_mean_grad", {means, mask}, always_a<MaskedMeanGrad>(), 4});
  const std::optional<std::int32_t> none, one{1};
  cases.push_back({"mask_weights", {weights, numbers, mask}, always_a<MaskWeights>(true, none), 3});
  cases.push_back({"mask_weights of samples", {each, numbers, mask, tokens}, always_a<MaskWeights>(true, one), 3});
  cases.push_back({"mask_weights of targets", {weights, numbers, tokens}, always_a<MaskWeights>(false, one), 3});
}

void add_positions(Cases& cases, DType dtype) {
  const CaseInput x{{{4, 3, 16}, dtype}}, documents{{{4, 3}, DType::int32}, 0, 2}, table{{{5, 16}, floats}};
  const RotaryAttributes heads{.head_size = 4, .width = 4};
  for (const bool backwards : {false, true}) {
    cases.push_back({"rotary", {x}, always_a<Rotary>(heads, backwards), 4});
  }
  const RotaryAttributes one_head{.head_size = 16, .width = 8};
  cases.push_back({"rotary of one head", {x}, always_a<Rotary>(one_head), 3});
  cases.push_back({"rotary of documents", {x, documents}, always_a<Rotary>(heads), 4});
  for (const bool adds : {false, true}) {
    cases.push_back({"position_embedding", {x, table}, always_a<PositionEmbedding>(adds), 3});
    cases.push_back({"position_embedding_grad", {x}, always_a<PositionEmbeddingGrad>(std::int64_t{5}, adds), 4});
  }
}

void add_recurrent(Cases& cases, DType dtype) {
  const CaseInput states{{{4, 2, 6}, dtype}}, last{{{4, 6}, dtype}};
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple}) {
    const bool gru = cell == RecurrentCell::gru;
    const std::int64_t columns = gru ? 18 : cell == RecurrentCell::lstm ? 24 : 6;
    const CaseInput x{{{4, 2, columns}, dtype}}, kernel{{{6, columns}, floats}}, bias{{{columns}, floats}};
    std::vector<CaseInput> inputs{x, kernel};
    if (gru) inputs.push_back(bias);
    const RecurrentAttributes all{cell}, one{.cell = cell, .sequences = false};
    cases.push_back({"recurrent", inputs, always_a<Recurrent>(all, true), 2});
    cases.push_back({"recurrent last step", inputs, always_a<Recurrent>(one, false), 2});
    cases.push_back({"recurrent_grad", {states, x, states, states, kernel}, always_a<RecurrentGrad>(all), 3});
    cases.push_back({"recurrent_grad last step", {last, x, states, states, kernel}, always_a<RecurrentGrad>(one), 3});
    const RecurrentAttributes masked{.cell = cell, .masked = true};
    const CaseInput mask{{{4, 2}, DType::uint8}, 0, 2};
    inputs.push_back(mask);
    cases.push_back({"recurrent with a mask", inputs, always_a<Recurrent>(masked, true), 2});
    cases.push_back(
        {"recurrent_grad with a mask", {states, x, states, states, kernel, mask}, always_a<RecurrentGrad>(masked), 3});
    const bool lstm = cell == RecurrentCell::lstm;
    RecurrentAttributes further{.cell = cell, .begins = true, .returns_c = lstm, .dropout = {0.25f, 7, 9}};
    const CaseInput samples{{{4}, DType::int64}, 0, 1000}, step{{{}, DType::int64}, 0, 50};
    inputs.back() = last;
    if (lstm) inputs.push_back(last);
    inputs.insert(inputs.end(), {samples, step});
    cases.push_back({"recurrent with states and dropout", inputs, always_a<Recurrent>(further, true), 2});
    std::vector<CaseInput> operands{states, x, states, states, kernel};
    if (lstm) operands.insert(operands.end(), {last, last});
    operands.insert(operands.end(), {samples, step});
    cases.push_back({"recurrent_grad with states and dropout", operands, always_a<RecurrentGrad>(further), 3});
  }
}

void add_attention(Cases& cases, DType dtype) {
  const CaseInput q{{{4, 3, 8}, dtype}}, kv{{{4, 3, 4}, dtype}}, sums{{{4, 4, 3}, floats}, 1},
      packed{{{4, 3, 16}, dtype}};
  const CaseInput mask{{{4, 3}, DType::uint8}, 0, 2}, numbers{{{4, 3}, DType::int32}, 0, 2};
  const CaseInput samples{{{4}, DType::int64}, 0, 1000}, step{{{}, DType::int64}, 0, 50};
  const AttentionAttributes plain{.head_size = 2, .value_size = 2, .scale = 0.5f, .causal = true};
  AttentionAttributes limited = plain, grouped = plain, dropping = plain;
  limited.mask = limited.documents = true;
  grouped.packed = 2;
  dropping.dropout = {.rate = 0.25f, .seed = 7, .layer = 9, .heads = {}};
  cases.push_back({"attention", {q, kv, kv}, always_a<Attention>(plain), 3});
  const CaseInput starts{{{4}, DType::int32}, 0, 2}, beginning{{{4}, DType::int32}, 0, 1};
  AttentionAttributes cached = plain;
  cached.causal = cached.starts = true;
  cases.push_back({"attention with a cache", {q, kv, kv, starts}, always_a<Attention>(cached), 3});
  cases.push_back({"write_cache", {kv, beginning}, always_a<WriteCache>(std::int64_t{3}), 3});
  cases.push_back({"attention with masks", {q, kv, kv, mask, numbers}, always_a<Attention>(limited), 3});
  cases.push_back({"attention packed", {packed}, always_a<Attention>(grouped), 3});
  cases.push_back({"attention with dropout", {q, kv, kv, samples, step}, always_a<Attention>(dropping), 2});
  cases.push_back({"attention_grad", {q, q, sums, q, kv, kv}, always_a<AttentionGrad>(plain), 4});
  cases.push_back({"attention_grad packed", {q, q, sums, packed}, always_a<AttentionGrad>(grouped), 4});
  cases.push_back(
      {"attention_grad with masks", {q, q, sums, q, kv, kv, mask, numbers}, always_a<AttentionGrad>(limited), 4});
}

void add_additive_attention(Cases& cases, DType dtype) {
  const CaseInput q{{{4, 3, 8}, dtype}}, v{{{4, 3, 6}, dtype}}, sums{{{4, 3}, floats}, 1}, weights{{{8}, floats}};
  const CaseInput mask{{{4, 3}, DType::uint8}, 0, 2};
  const AttentionAttributes plain{.head_size = 8, .value_size = 6};
  AttentionAttributes masked = plain;
  masked.causal = masked.mask = true;
  cases.push_back({"additive_attention", {q, q, v}, always_a<AdditiveAttention>(plain, false), 2});
  cases.push_back(
      {"additive_attention with a mask", {q, q, v, mask, weights}, always_a<AdditiveAttention>(masked, true), 2});
  cases.push_back(
      {"additive_attention_grad", {v, sums, q, q, v}, always_a<AdditiveAttentionGrad>(plain, false, false), 3});
  for (const bool add : {false, true}) {
    cases.push_back({"additive_attention_grad with a mask",
                     {v, sums, q, q, v, mask, weights},
                     always_a<AdditiveAttentionGrad>(masked, true, add),
                     3});
  }
}

}  // namespace

Value on_grid(const TensorType& type, std::uint64_t seed, double low) {
  if (!is_floating(type.dtype)) return random_integers(type.shape, type.dtype, seed, 3);
  Value value = random_value(type.shape, floats, seed, 64 * low, 65);
  value.type.dtype = type.dtype;
  for (double& v : value.values) v = std::floor(v) / 64;
  return value;
}

Value CaseInput::value(std::uint64_t seed) const {
  return bound > 0 ? random_integers(type.shape, type.dtype, seed, bound) : on_grid(type, seed, low);
}

Cases placement_cases(DType dtype) {
  Cases cases;
  add_elementwise(cases, dtype);
  add_combinations(cases, dtype);
  add_programs(cases, dtype);
  add_reductions(cases, dtype);
  add_row_group(cases, dtype);
  add_shaping(cases, dtype);
  add_dense(cases, dtype);
  add_products(cases, dtype);
  add_embeddings(cases, dtype);
  add_positions(cases, dtype);
  add_masks(cases, dtype);
  add_convolutions(cases, dtype);
  add_volume_convolutions(cases, dtype);
  add_pooling(cases, dtype);
  add_normalisation(cases, dtype);
  add_recurrent(cases, dtype);
  add_attention(cases, dtype);
  add_additive_attention(cases, dtype);
  add_synchronized_normalisation(cases, dtype);
  add_sums(cases, dtype);
  add_fused_loss(cases, dtype);
  add_update(cases);
  for (PlacementCase& which : cases) which.computes_in = dtype;
  return cases;
}

std::vector<Value> compute(Backend& backend, KernelChoices& choices, const std::shared_ptr<const OpDef>& def,
                           const std::vector<Value>& inputs, const std::vector<Value>& held) {
  if (!def->decomposition().empty()) return compute_parts(backend, choices, *def, inputs, held);
  if (dynamic_cast<const Reshape*>(def.get()))
    return {{def->outputs(std::vector{inputs[0].type})[0], inputs[0].values}};
  if (dynamic_cast<const Scale*>(def.get())) {
    Value scaled = inputs[0];
    for (double& v : scaled.values) v *= inputs[1].values[0];
    return {scaled};
  }
  const auto alone = gradient_without_sum(*def);
  if (alone != nullptr && !backend.adds_gradients()) {  // as two ops, like lowering
    const Value dx = run_op(backend, alone, {inputs[0], inputs[1]}, {}, &choices)[0];
    return run_op(backend, std::make_shared<Add>(), {dx, inputs[2]});
  }
  return run_op(backend, def, inputs, held, &choices);
}

}  // namespace trainctl::test
