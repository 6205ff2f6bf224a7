// Compares CUDA's kernels with the CPU's at sizes that neither packs nor blocks divide, and the bits of two runs.
#include <limits>

#include "core/backend/choices.h"
#include "core/backend/select.h"
#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/metrics/metrics.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/program/program.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::kernels_test {
namespace {

constexpr DType dtypes[] = {DType::float32, DType::bfloat16, DType::float16};
constexpr std::int64_t channel_counts[] = {1, 3, 5, 7, 8, 17, 64, 72, 264};

// float32: sums have another order. Other dtypes: one of the results is rounded differently, or not at all.
double tolerance(DType dtype) { return dtype == DType::float32 ? 2e-5 : dtype == DType::bfloat16 ? 0x1p-7 : 0x1p-10; }

class Both {
 public:
  // Returns the outputs of CUDA, and compares them with the CPU's and with those of a second run. The CPU computes in
  // float32 what CUDA computes in float16.
  std::vector<Value> run(const std::shared_ptr<const OpDef>& def, const std::vector<Value>& inputs,
                         const std::vector<Value>& initial = {}) const {
    KernelChoices choices;
    const std::vector<Value> got = run_op(*cuda_, def, inputs, initial, &choices);
    const std::vector<Value> again = run_op(*cuda_, def, inputs, initial, &choices);
    auto cpu_inputs = inputs;
    for (Value& input : cpu_inputs) {
      if (input.type.dtype == DType::float16) input.type.dtype = DType::float32;
    }
    const std::vector<Value> expected = run_op(*cpu_, def, cpu_inputs, initial);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(def->kind(), def->attributes(), name_of(inputs[0].type.dtype), to_string(inputs[0].type.shape), i);
      CHECK(largest_error(got[i], expected[i].values) < tolerance(inputs[0].type.dtype));
      CHECK(largest_error(got[i], again[i].values) == 0);
    }
    return got;
  }

 private:
  std::unique_ptr<Backend> cpu_ = make_backend("cpu", {}), cuda_ = make_backend("cuda", {});
};

Value filled(const Shape& shape, double value) {
  return {{shape, DType::float32}, std::vector<double>(static_cast<std::size_t>(shape.count()), value)};
}

}  // namespace

TEST_CASE("cuda pools as the cpu does") {
  const Window windows[] = {
      {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{3, 2}, {1, 1}, {1, 1}, {1, 0}, {1, 1}}, {{2, 2}, {3, 3}, {1, 1}, {0, 1}, {1, 0}},
      {{2, 3}, {1, 2}, {3, 2}, {2, 1}, {1, 2}}, {{9, 7}, {9, 7}, {1, 1}, {0, 0}, {0, 0}},
  };
  const Both both;
  for (const DType dtype : dtypes) {
    for (const std::int64_t channels : channel_counts) {
      const Shape shape{2, 9, 7, channels};
      const Value x = random_value(shape, dtype, 1);
      for (const Window& w : windows) {
        const Value dy = random_value({2, w.output(0, 9), w.output(1, 7), channels}, dtype, 2);
        const auto pooled = both.run(std::make_shared<Pool2d>(PoolMode::max, w, true), {x});
        both.run(std::make_shared<Pool2d>(PoolMode::max, w, false), {x});
        both.run(std::make_shared<Pool2d>(PoolMode::max, w, true, true), {x});
        both.run(std::make_shared<Pool2dGrad>(PoolMode::max, w, shape), {dy, pooled[1]});
        both.run(std::make_shared<Pool2d>(PoolMode::average, w, true), {x});
        both.run(std::make_shared<Pool2dGrad>(PoolMode::average, w, shape), {dy});
      }
      both.run(std::make_shared<GlobalAveragePool2d>(), {x});
      both.run(std::make_shared<GlobalAveragePool2dGrad>(shape), {random_value({2, channels}, dtype, 2)});
    }
  }
}

TEST_CASE("cuda normalises batches as the cpu does") {
  const Both both;
  for (const DType dtype : dtypes) {
    for (const std::int64_t channels : channel_counts) {
      for (const std::int64_t rows : {1, 2, 31, 257, 3001}) {
        if (rows * channels > 300000) continue;
        const int options = static_cast<int>((rows + channels) % 16);
        BatchNormAttributes a;
        a.scale = (options & 1) != 0, a.center = (options & 2) != 0;
        a.residual = (options & 4) != 0, a.relu = (options & 8) != 0;
        const Shape shape{rows, channels}, per_channel{channels};
        const Value x = random_value(shape, dtype, 1, -1, 3), dy = random_value(shape, dtype, 2);
        const Value residual = random_value(shape, dtype, 3);
        const Value gamma = random_value(per_channel, DType::float32, 4, 0.5, 2);
        const Value beta = random_value(per_channel, DType::float32, 5);
        std::vector<Value> inputs{x};
        if (a.scale) inputs.push_back(gamma);
        if (a.center) inputs.push_back(beta);
        auto with_statistics = inputs;
        with_statistics.push_back(random_value(per_channel, DType::float32, 6));
        with_statistics.push_back(random_value(per_channel, DType::float32, 7, 0.5, 2));
        if (a.residual) inputs.push_back(residual), with_statistics.push_back(residual);
        const auto forward = both.run(std::make_shared<BatchNorm>(a), inputs);
        both.run(std::make_shared<BatchNormInference>(a), with_statistics);
        std::vector<Value> by_x{dy};
        if (a.scale) by_x.push_back(gamma);
        by_x.push_back(random_value(per_channel, DType::float32, 7, 0.5, 2));
        both.run(std::make_shared<BatchNormInferenceGrad>(a.epsilon, a.scale), by_x);

        std::vector<Value> backward{dy, x}, initial{{}};
        if (a.masks_by_bits(channels)) backward.push_back(forward[3]);
        if (a.masks_by_y(channels)) backward.push_back(forward[0]);
        if (a.scale) backward.push_back(gamma);
        if (a.masks_by_x() && a.center) backward.push_back(beta);
        backward.push_back(forward[1]);
        backward.push_back(forward[2]);
        if (a.scale) initial.push_back(filled(per_channel, 3));
        if (a.center) initial.push_back(filled(per_channel, -2));
        both.run(std::make_shared<BatchNormGrad>(a, rows % 2 == 0), backward, initial);
      }
    }
  }
}

TEST_CASE("batch normalisation's gradient is the same with threads of 4 and of 8 channels") {
  const auto cuda = make_backend("cuda", {});
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const std::int64_t channels : {8, 72, 264}) {
      for (const int options : {0, 1, 2, 3}) {
        BatchNormAttributes a;
        a.residual = (options & 1) != 0, a.relu = (options & 2) != 0;
        CAPTURE(name_of(dtype), channels, a.residual, a.relu);
        const Shape shape{301, channels}, per_channel{channels};
        const Value x = random_value(shape, dtype, 1, -1, 3),
                    gamma = random_value(per_channel, DType::float32, 2, 0.5, 2);
        const Value beta = random_value(per_channel, DType::float32, 3);
        std::vector<Value> inputs{x, gamma, beta};
        if (a.residual) inputs.push_back(random_value(shape, dtype, 4));
        const auto forward = run_op(*cuda, std::make_shared<BatchNorm>(a), inputs);
        std::vector<Value> backward{random_value(shape, dtype, 5), x};
        if (a.masks_by_bits(channels)) backward.push_back(forward[3]);
        backward.push_back(gamma);
        if (a.masks_by_x()) backward.push_back(beta);
        backward.insert(backward.end(), {forward[1], forward[2]});
        const auto def = std::make_shared<BatchNormGrad>(a, false);
        KernelChoices four, eight;
        Lowering lowering;
        const auto by_four = run_op(*cuda, def, backward, {}, &four, &lowering);
        CHECK(lowering.implementation == "own, 4 channels a thread");
        std::string text = four.text();
        text.replace(text.rfind("4 channels"), 1, "8");
        eight.add(text);
        const auto by_eight = run_op(*cuda, def, backward, {}, &eight, &lowering);
        CHECK(lowering.implementation == "own, 8 channels a thread");
        for (std::size_t i = 0; i < by_four.size(); ++i) {
          CAPTURE(i);
          CHECK(largest_error(by_eight[i], by_four[i].values) < tolerance(i == 1 || i == 2 ? DType::float32 : dtype));
        }
      }
    }
  }
}

TEST_CASE("cuda computes softmax, losses and metrics as the cpu does") {
  const Both both;
  for (const DType dtype : dtypes) {
    for (const std::int64_t n : {1, 10, 16, 129, 1000}) {
      for (const std::int64_t samples : {1, 31, 257}) {
        if (samples == 257 ? n != 10 : samples == 31 && dtype != DType::float32) continue;
        const Value x = random_value({samples, n}, dtype, 1, -5, 5), dy = random_value({samples, n}, dtype, 2);
        both.run(std::make_shared<SoftmaxGrad>(), {dy, both.run(std::make_shared<Softmax>(), {x})[0]});

        const Value labels = random_integers({samples}, DType::int32, 3, n);
        const Value rows = random_value({samples, n}, DType::float32, 4, 0, 1);
        Value weights = random_value({samples}, DType::float32, 5, 0.0005, 0.002);
        weights.values[static_cast<std::size_t>(samples / 2)] = samples > 1 ? 0 : 0.001;
        const bool add = n % 2 == 0, training = samples != 31;
        const std::vector<Value> sum{scalar(2)}, loss_sums{scalar(2), scalar(0.003)};
        const auto loss = [&](const LossRule& rule, const Value& targets) {
          both.run(std::make_shared<Loss>(rule, training, add), {x, targets, weights}, loss_sums);
        };
        const float smoothing = samples == 1 ? 0.0f : 0.1f;
        loss(SparseCategoricalCrossentropy{{smoothing}}, labels);
        loss(CategoricalCrossentropy{{smoothing}}, rows);
        loss(BinaryCrossentropy{smoothing}, rows);
        loss(MeanSquaredError{}, rows);
        loss(Huber{2.0f}, rows);
        loss(MeanAbsoluteErrorLoss{}, rows);
        loss(LogCosh{}, rows);
        loss(Hinge{}, rows);
        loss(SquaredHinge{}, rows);
        loss(MeanSquaredLogarithmicError{}, rows);
        loss(CosineSimilarityLoss{}, rows);
        loss(KlDivergence{}, rows);
        loss(BinaryFocalCrossentropy{}, rows);
        loss(CategoricalFocalCrossentropy{}, rows);
        loss(Dice{}, rows);
        const auto metric = [&](const MetricRule& rule, const Value& targets) {
          both.run(std::make_shared<Metric>(rule, add), {x, targets, weights}, sum);
        };
        metric(Accuracy{}, labels);
        metric(Accuracy{}, rows);
        metric(TopKCategoricalAccuracy{{}, 3}, labels);
        metric(TopKCategoricalAccuracy{{}, 3}, rows);
        metric(Accuracy{{}, true}, rows);
        metric(MeanAbsoluteError{}, rows);
        metric(MeanSquaredLogarithmicErrorMetric{}, rows);
        metric(LogCoshError{}, rows);
        metric(SquaredHingeMetric{}, rows);
        metric(HuberMetric{{}, 0.25f}, rows);
        metric(CategoricalHingeMetric{}, rows);
        for (const bool of_logits : {false, true}) {
          const Value& input = of_logits ? x : random_value({samples, n}, dtype, 6, 0.1, 1);
          const auto of = [&](const MetricRule& rule, const Value& targets) {
            both.run(std::make_shared<Metric>(rule, add), {input, targets, weights}, sum);
          };
          of(CategoricalCrossentropyMetric{{{}, of_logits}, 0}, labels);
          of(CategoricalCrossentropyMetric{{{}, of_logits}, 0.125f}, labels);
          of(CategoricalCrossentropyMetric{{{}, of_logits}, 0.125f}, rows);
          of(BinaryCrossentropyMetric{{{}, of_logits}, 0.125f}, rows);
          of(KlDivergenceMetric{{{}, of_logits}}, rows);
        }
        const Value shares = random_value({samples, n}, dtype, 6, 0, 1);
        both.run(std::make_shared<Metric>(Auc{}, add), {shares, rows, weights}, {row(std::vector<double>(400, 2))});
      }
    }
  }
  // A warp computes each row, although the rows are long, because there are 4,100 of them.
  both.run(std::make_shared<Softmax>(), {random_value({4100, 130}, DType::float32, 1)});
}

TEST_CASE("cuda finds the same largest value as the cpu among equal values and NaN") {
  const Both both;
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t n : {5, 300}) {
    Value x = random_value({6, n}, DType::float32, 1);
    const auto at = [&](std::int64_t row, std::int64_t k) -> double& {
      return x.values[static_cast<std::size_t>(row * n + k)];
    };
    at(0, n - 1) = at(0, 3) = 2;
    at(1, 0) = nan;
    at(2, 1) = nan, at(2, 2) = 7;
    for (std::int64_t k = 0; k < n; ++k) at(3, k) = -infinity, at(4, k) = nan, at(5, k) = 1;
    for (std::int64_t label = 0; label < 4; ++label) {
      Value labels = random_integers({6}, DType::int32, 3, 1);
      for (double& v : labels.values) v = static_cast<double>(label);
      both.run(std::make_shared<Metric>(Accuracy{}, false), {x, labels, row({1, 2, 4, 8, 16, 32})}, {});
    }
  }
}

TEST_CASE("cuda drops the elements that the cpu drops") {
  const Both both;
  const auto def = std::make_shared<Dropout>(0.375f, 0x123456789abcdefu, 0xdeadbeefu);
  for (const DType dtype : dtypes) {
    for (const std::int64_t elements : {1, 3, 4, 8, 9, 131, 2048}) {
      for (const std::int64_t samples : {1, 33}) {
        const Value x = random_value({samples, elements}, dtype, 1, 0.5, 1.5);
        const Value numbers = random_integers({samples}, DType::int64, 2, std::int64_t{1} << 40);
        const Value dropped = both.run(def, {x, numbers, scalar(77777, DType::int64)})[0];
        if (elements < 2048) continue;
        const auto kept = std::count_if(dropped.values.begin(), dropped.values.end(), [](double v) { return v != 0; });
        CHECK(static_cast<double>(kept) / static_cast<double>(dropped.values.size()) == Approx(0.625).margin(0.04));
      }
    }
  }
}

TEST_CASE("cuda updates ranges as the cpu does, and no elements between them") {
  const Both both;
  const std::vector<UpdateRange> ranges{{0, 33, true}, {33, 4100, false}, {4140, 1, true}, {4143, 5000, true}};
  constexpr std::int64_t elements = 9143;
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50);
  // A mean of squares is larger than the square of the mean, which rmsprop subtracts from it.
  const std::vector<Value> regions{
      random_value({elements}, DType::float32, 2), random_value({elements}, DType::float32, 3, 2, 3),
      random_value({elements}, DType::float32, 4, 0, 1), random_value({elements}, DType::float32, 5)};
  const auto update = [&](const OptimizerRule& rule) {
    const auto op = std::make_shared<OptimizerUpdate>(rule);
    op->ranges = ranges;
    op->weight_decay = 0.02f;
    const std::vector<Value> before(regions.begin(), regions.begin() + 1 + static_cast<int>(state_names(rule).size()));
    for (const float clip : {0.0f, 0.5f}) {
      op->clip_norm = clip;
      for (const double not_finite : {0.0, 1.0}) {
        const auto got = both.run(
            op, {gradient, scalar(0.05), scalar(3, DType::int64), scalar(64), row({not_finite, 0}), scalar(2)}, before);
        for (const std::int64_t gap : {4133, 4136, 4141}) {
          const auto i = static_cast<std::size_t>(gap);
          CHECK(got[0].values[i] == regions[0].values[i]);
        }
      }
    }
  };
  for (const bool nesterov : {false, true}) {
    for (const float momentum : {0.0f, 0.9f}) {
      update(Sgd{.momentum = momentum, .nesterov = nesterov});
    }
  }
  update(Adam{});
  update(AdamW{});
  update(RmsProp{});
  update(RmsProp{.momentum = 0.5f, .centered = true});
  update(RmsProp{.epsilon = 0.1f, .epsilon_in_root = true});
  update(Adagrad{.epsilon = 0.1f, .epsilon_in_root = true});
  Adam with_hat;
  with_hat.epsilon_hat = true;
  update(with_hat);
  Adam with_largest;
  with_largest.amsgrad = true;
  update(with_largest);
  update(Nadam{});
  update(Adamax{});
  update(Ftrl{.l1_regularization_strength = 0.5f, .l2_regularization_strength = 0.1f, .beta = 0.2f});
  update(Ftrl{.learning_rate_power = -0.75f});
  update(Adagrad{});
  update(Adadelta{});
  update(Lion{});
  update(Lars{});
  update(Lars{.momentum = 0});
  update(Lamb{});
}

TEST_CASE("cuda updates adafactor's factors as the cpu does") {
  const Both both;
  const std::vector<Shape> shapes{{2, 3, 70, 130}, {33}, {1, 7}, {1000, 1}, {}, {300, 40}};
  auto op = std::make_shared<OptimizerUpdate>(Adafactor{});
  std::int64_t elements = 0, factors = 0;
  for (const Shape& shape : shapes) {
    op->ranges.push_back({elements, shape.count(), shape.rank() != 1, Factors(shape)});
    op->ranges.back().factors.offset = factors;
    elements = round_up(elements + shape.count(), 4);
    factors += op->ranges.back().factors.count();
  }
  op->weight_decay = 0.02f;
  elements = op->ranges.back().offset + 12000;
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50);
  const std::vector<Value> before{random_value({elements}, DType::float32, 2),
                                  random_value({factors}, DType::float32, 3, 0.5, 1)};
  for (const float clip : {0.0f, 0.5f}) {
    op->clip_norm = clip;
    for (const double not_finite : {0.0, 1.0}) {
      both.run(op, {gradient, scalar(0.05), scalar(3, DType::int64), scalar(64), row({not_finite, 0}), scalar(2)},
               before);
    }
  }
}

TEST_CASE("cuda takes muon's steps as the cpu does") {
  const auto one = make_backend("cuda", {}), other = make_backend("cpu", {});
  const std::vector<Shape> shapes{{70, 130}, {33}, {130, 64}, {1, 7}, {64, 64}};
  auto op = std::make_shared<OptimizerUpdate>(Muon{});
  std::int64_t elements = 0;
  for (const Shape& shape : shapes) {
    op->ranges.push_back(
        {elements, round_up(shape.count(), 4), shape.rank() == 2, {}, shape.rank() == 2 ? shape : Shape{}});
    elements += op->ranges.back().count;
  }
  op->weight_decay = 0.02f;
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50);
  const std::vector<Value> before{random_value({elements}, DType::float32, 2),
                                  random_value({elements}, DType::float32, 3),
                                  random_value({elements}, DType::float32, 4, 0, 1)};
  const std::vector<Value> inputs{gradient, scalar(0.05), scalar(3, DType::int64), scalar(64), row({0, 0}), scalar(2)};
  const auto got = run_op(*one, op, inputs, before), expected = run_op(*other, op, inputs, before);
  // Products of 130 values add up in another order, and five steps multiply the difference.
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(largest_error(got[i], expected[i].values) < 1e-4);
}

TEST_CASE("cuda's optimizers write the compute copies of the weights that they change") {
  const auto backend = make_backend("cuda", {});
  const auto stream = backend->compute_stream();
  for (const DType dtype : dtypes) {
    OptimizerUpdate def;
    const auto copy = [&](std::int64_t offset, const Shape& shape, const char* format) {
      def.copies.push_back({offset, shape, {dtype, format, shape.count() * size_of(dtype)}});
    };
    copy(4, {3, 3, 70, 130}, "ohwi");
    copy(81904, {70}, "");
    copy(81976, {2, 1, 50, 63}, "ohwi");
    copy(81976, {2, 1, 50, 63}, "");
    constexpr std::int64_t elements = 88280;
    def.ranges = {{0, 81904, true}, {81904, elements - 81904, false}};

    // The op's tensors: its inputs, the weights and the copies.
    const Value weight = random_value({elements}, DType::float32, 1);
    std::vector<Value> values{random_value({elements}, DType::float32, 2),
                              scalar(0.05),
                              scalar(0, DType::int64),
                              scalar(1),
                              row({0, 0}),
                              scalar(1),
                              weight};
    for (const UpdateCopy& made : def.copies) {
      values.push_back(random_value(made.shape, dtype, 3));
    }
    Program program;
    Op op{std::make_shared<OptimizerUpdate>(def), {}, {}, "update", {}};
    std::vector<Layout> layouts;
    std::vector<Memory> memory;
    Binding binding;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const TensorType& type = values[i].type;
      program.tensors.push_back({.name = "tensor", .type = type});
      (i < 6 ? op.inputs : op.outputs).push_back(static_cast<TensorId>(i));
      if (i < 6) layouts.push_back(logical_layout(type));
      memory.push_back(backend->allocate(type.bytes()));
      std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
      write_values(values[i], bytes.data());
      backend->copy(memory.back().get(), bytes.data(), type.bytes(), *stream);
      stream->synchronize();
      (i < 6 ? binding.inputs : binding.outputs).push_back({memory.back().get(), 0});
    }
    KernelChoices choices;
    backend->lower(op, program, layouts, choices).bind(binding)->run(*stream, {});
    const auto read = [&](std::size_t i) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(values[i].type.bytes()));
      backend->copy(bytes.data(), memory[i].get(), values[i].type.bytes(), *stream);
      stream->synchronize();
      return read_values(values[i].type, bytes.data());
    };
    const Value updated = read(6);
    CHECK(largest_error(updated, weight.values) > 0);
    for (std::size_t i = 0; i < def.copies.size(); ++i) {
      const UpdateCopy& made = def.copies[i];
      const Value got = read(7 + i);
      const bool transposed = !made.layout.format.empty();
      const std::int64_t columns = transposed ? made.shape.back() : 1, rows = made.shape.count() / columns;
      std::int64_t wrong = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const double expected =
              round_to(dtype, updated.values[static_cast<std::size_t>(made.offset + r * columns + c)]);
          wrong += got.values[static_cast<std::size_t>(c * rows + r)] == expected ? 0 : 1;
        }
      }
      CAPTURE(name_of(dtype), i);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("cuda sums columns and converts as the cpu does") {
  const Both both;
  for (const std::int64_t columns : channel_counts) {
    for (const std::int64_t rows : {1, 31, 257, 3001}) {
      if (rows * columns > 300000) continue;
      for (const DType dtype : dtypes) {
        const Value x = random_value({rows, 2}, dtype, 1);
        const Value dy = random_value({rows, columns}, dtype, 2, -0.01, 0.01);
        both.run(std::make_shared<DenseGradWeights>(true, true), {x, dy},
                 {filled({2, columns}, 1), filled({columns}, 2)});
      }
    }
    const Value values = random_value({columns}, DType::float32, 3, -100, 100);
    both.run(std::make_shared<Cast>(DType::bfloat16), {values});
  }
}

}  // namespace trainctl::test::kernels_test
