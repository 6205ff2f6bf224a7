// Compares batch normalisation with a padding mask with its definition in float64, and with finite differences.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph/ops/normalization/synchronized_batch_norm.h"
#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::masked_batch_norm_test {
namespace {

using Values = std::vector<double>;

// The operands of a normalisation; those that the attributes leave out are not used.
struct Operands {
  Value x, gamma, beta, mask, residual, dy;

  Operands(const Shape& shape, DType dtype, std::int64_t one_of)
      : x(random_value(shape, dtype, 1, -1, 3)),
        gamma(random_value({shape.back()}, DType::float32, 2, 0.5, 2)),
        beta(random_value({shape.back()}, DType::float32, 3)),
        mask(random_integers(padding_mask_of(x.type).shape, DType::uint8, 4, one_of)),
        residual(random_value(shape, dtype, 5)),
        dy(random_value(shape, dtype, 6)) {
    for (double& shown : mask.values) shown = shown == 0 ? 1 : 0;
  }
  std::size_t channels() const { return gamma.values.size(); }
  double count() const { return static_cast<double>(std::ranges::count(mask.values, 1.0)); }

  std::vector<Value> inputs(const BatchNormAttributes& a) const {
    std::vector<Value> all{x};
    if (a.scale) all.push_back(gamma);
    if (a.center) all.push_back(beta);
    if (a.masked) all.push_back(mask);
    if (a.residual) all.push_back(residual);
    return all;
  }
};

struct Forward {
  Values mean, variance, y;
};

// The definition: only positions with mask 1 count in mean and variance; all positions are normalised.
Forward forward_of(const Operands& o, const BatchNormAttributes& a) {
  const std::size_t channels = o.channels();
  Forward f{Values(channels), Values(channels), Values(o.x.values.size())};
  const auto each = [&](const auto& add) {
    for (std::size_t i = 0; i < f.y.size(); ++i) {
      if (o.mask.values[i / channels] != 0) add(i % channels, o.x.values[i]);
    }
  };
  const double count = std::max(o.count(), 1.0);
  each([&](std::size_t c, double x) { f.mean[c] += x / count; });
  each([&](std::size_t c, double x) { f.variance[c] += (x - f.mean[c]) * (x - f.mean[c]) / count; });
  for (std::size_t i = 0; i < f.y.size(); ++i) {
    const std::size_t c = i % channels;
    f.y[i] = (o.x.values[i] - f.mean[c]) / std::sqrt(f.variance[c] + static_cast<double>(a.epsilon));
    if (a.scale) f.y[i] *= o.gamma.values[c];
    if (a.center) f.y[i] += o.beta.values[c];
    if (a.residual) f.y[i] += o.residual.values[i];
    if (a.relu) f.y[i] = std::max(f.y[i], 0.0);
  }
  return f;
}

struct Gradients {
  Values dx, dgamma, dbeta, passed;  // passed: dy where ReLU passes it
};

// The gradients by the chain rule, through mean and variance as functions of the positions with mask 1.
Gradients gradients_of(const Operands& o, const BatchNormAttributes& a, const Forward& f) {
  const std::size_t channels = o.channels(), n = f.y.size();
  const double count = o.count();
  Gradients g{Values(n), Values(channels), Values(channels), Values(n)};
  Values by_mean(channels), by_variance(channels), inverse(channels);
  for (std::size_t c = 0; c < channels; ++c) inverse[c] = 1 / std::sqrt(f.variance[c] + static_cast<double>(a.epsilon));
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % channels;
    const double distance = o.x.values[i] - f.mean[c];
    g.passed[i] = !a.relu || f.y[i] > 0 ? o.dy.values[i] : 0;
    g.dgamma[c] += g.passed[i] * distance * inverse[c];
    g.dbeta[c] += g.passed[i];
    const double scaled = g.passed[i] * (a.scale ? o.gamma.values[c] : 1);
    by_mean[c] -= scaled * inverse[c];
    by_variance[c] -= scaled * distance * std::pow(inverse[c], 3) / 2;
    g.dx[i] = scaled * inverse[c];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % channels;
    if (o.mask.values[i / channels] == 0) continue;
    g.dx[i] += (by_mean[c] + by_variance[c] * 2 * (o.x.values[i] - f.mean[c])) / count;
  }
  return g;
}

std::vector<Value> backward_inputs(const Operands& o, const BatchNormAttributes& a, const std::vector<Value>& forward) {
  const auto channels = static_cast<std::int64_t>(o.channels());
  std::vector<Value> inputs{o.dy, o.x};
  if (a.masks_by_bits(channels)) inputs.push_back(forward.back());
  if (a.masks_by_y(channels)) inputs.push_back(forward[0]);
  if (a.scale) inputs.push_back(o.gamma);
  if (a.masks_by_x() && a.center) inputs.push_back(o.beta);
  inputs.insert(inputs.end(), {forward[1], forward[2], o.mask, forward[3]});
  return inputs;
}

// dy is 0 where y is so close to 0 that rounding decides whether ReLU passes it.
void keep_clear(Operands& o, const BatchNormAttributes& a, const Forward& f, const Value& y, double tolerance) {
  for (std::size_t i = 0; a.relu && i < f.y.size(); ++i) {
    if (f.y[i] < tolerance && (f.y[i] > 0 || y.values[i] > 0)) o.dy.values[i] = 0;
  }
}

void check_forward(const std::vector<Value>& got, const Forward& f, double count, double tolerance) {
  CHECK(largest_error(got[0], f.y) < tolerance);
  CHECK(largest_error(got[1], f.mean) < 2e-6);
  CHECK(largest_error(got[2], f.variance) < 1e-5);
  CHECK(got[3].values == Values{count});
}

}  // namespace

TEST_CASE("batch norm with a padding mask and its gradient follow the definition") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Shape shape = GENERATE(Shape{4, 5, 7, 16}, Shape{33, 3}, Shape{2, 9, 130}, Shape{20, 200, 10}, Shape{9, 7, 72},
                               Shape{3, 5, 600});
  const bool residual = GENERATE(false, true), relu = GENERATE(false, true), affine = GENERATE(false, true);
  const std::int64_t one_of = GENERATE(2, 40);  // one of so many positions is shown
  CAPTURE(name_of(dtype), to_string(shape), residual, relu, affine, one_of);
  BatchNormAttributes a{1e-3f, affine, affine, residual, relu};
  a.masked = true;
  const double tolerance = dtype == DType::float32 ? 1e-4 : 3e-2;
  Operands o(shape, dtype, one_of);
  if (o.count() == 0) o.mask.values[7] = 1;
  if (o.mask.values.size() == 4000) {  // sums are computed in chunks of rows, the first of which has no shown position
    std::fill_n(o.mask.values.begin(), 1700, 0.0);
  }
  const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), o.inputs(a));
  const Forward f = forward_of(o, a);
  REQUIRE(forward.size() == std::size_t{4} + a.masks_by_bits(shape.back()));
  check_forward(forward, f, o.count(), tolerance);
  keep_clear(o, a, f, forward[0], tolerance);
  const Gradients g = gradients_of(o, a, f);
  for (const bool accumulate : {false, true}) {
    std::vector<Value> old{{}};
    Values dgamma = g.dgamma, dbeta = g.dbeta;
    if (affine) {
      old.insert(old.end(),
                 {random_value({shape.back()}, DType::float32, 7), random_value({shape.back()}, DType::float32, 8)});
      for (std::size_t c = 0; accumulate && c < dgamma.size(); ++c) {
        dgamma[c] += old[1].values[c];
        dbeta[c] += old[2].values[c];
      }
    }
    const auto got =
        run_op(*backend, std::make_shared<BatchNormGrad>(a, accumulate), backward_inputs(o, a, forward), old);
    CHECK(largest_error(got[0], g.dx) < tolerance);
    if (affine) CHECK(largest_error(got[1], dgamma) < 1e-4);
    if (affine) CHECK(largest_error(got[2], dbeta) < 1e-4);
    if (residual) CHECK(largest_error(got.back(), g.passed) < 1e-9);
  }
}

TEST_CASE(
    "the gradient of batch norm with a padding mask is the slope of the values, also where positions are hidden") {
  const auto backend = backend_under_test({});
  Operands o({3, 5, 6}, DType::float32, 2);
  const BatchNormAttributes a{.masked = true};
  const auto slope = [&](double& value, std::size_t values) {
    const double before = value, step = 1e-4;
    const auto sum = [&](double at) {
      value = at;
      double total = 0;
      const Forward f = forward_of(o, a);
      for (std::size_t i = 0; i < values; ++i) total += f.y[i] * o.dy.values[i];
      return total;
    };
    const double difference = sum(before + step) - sum(before - step);
    value = before;
    return difference / (2 * step);
  };
  Values dx, dgamma;
  for (double& x : o.x.values) dx.push_back(slope(x, o.x.values.size()));
  for (double& gamma : o.gamma.values) dgamma.push_back(slope(gamma, o.x.values.size()));
  const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), o.inputs(a));
  const auto got = run_op(*backend, std::make_shared<BatchNormGrad>(a, false), backward_inputs(o, a, forward));
  CHECK(largest_error(got[0], dx) < 2e-5);
  CHECK(largest_error(got[1], dgamma) < 2e-5);
}

TEST_CASE("a padding mask that shows all positions changes nothing, and one that shows none gives finite values") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  for (const std::int64_t channels : {5, 16}) {
    CAPTURE(name_of(dtype), channels);
    Operands o({7, 4, channels}, dtype, 2);
    const BatchNormAttributes all{}, a{.masked = true};
    std::ranges::fill(o.mask.values, 1.0);
    const auto plain = run_op(*backend, std::make_shared<BatchNorm>(all), o.inputs(all));
    const auto shown = run_op(*backend, std::make_shared<BatchNorm>(a), o.inputs(a));
    for (std::size_t i = 0; i < 3; ++i) CHECK(largest_error(shown[i], plain[i].values) < 1e-2);
    for (std::size_t i = 1; i < 3; ++i) CHECK(largest_error(shown[i], plain[i].values) < 1e-6);

    std::ranges::fill(o.mask.values, 0.0);
    const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), o.inputs(a));
    check_forward(forward, forward_of(o, a), 0, dtype == DType::float32 ? 1e-5 : 3e-2);
    const Gradients g = gradients_of(o, a, forward_of(o, a));
    const auto got = run_op(*backend, std::make_shared<BatchNormGrad>(a, false), backward_inputs(o, a, forward));
    CHECK(largest_error(got[0], g.dx) < (dtype == DType::float32 ? 1e-5 : 3e-2));
    CHECK(largest_error(got[2], g.dbeta) < 1e-5);
  }
}

TEST_CASE("values at hidden positions do not change the statistics, and a large mean leaves the variance precise") {
  const auto backend = backend_under_test({});
  for (const std::int64_t channels : {3, 16}) {
    Operands o({64, 30, channels}, DType::float32, 3);
    for (double& x : o.x.values) x = round_to(DType::float32, x + 4095);
    const BatchNormAttributes a{.masked = true};
    const Forward f = forward_of(o, a);
    for (std::size_t i = 0; i < o.x.values.size(); ++i) {
      if (o.mask.values[i / o.channels()] == 0) o.x.values[i] = i % 2 == 0 ? std::nan("") : -1e30;
    }
    const auto got = run_op(*backend, std::make_shared<BatchNorm>(a), o.inputs(a));
    for (std::size_t c = 0; c < o.channels(); ++c) {
      CHECK(got[1].values[c] == Approx(f.mean[c]).epsilon(1e-6));
      CHECK(got[2].values[c] == Approx(f.variance[c]).epsilon(1e-4));
    }
  }
}

TEST_CASE("ranks that see different numbers of positions merge their moments to those of all these positions") {
  const auto backend = backend_under_test({});
  const std::int64_t channels = GENERATE(5, 16);
  BatchNormAttributes a{.masked = true};
  a.relu = GENERATE(false, true);
  constexpr std::size_t ranks = 4;
  // The third rank has no samples, and the last sees no position.
  const Operands whole({8, 6, channels}, DType::float32, 2);
  std::vector<Operands> parts;
  std::vector<Value> moments;
  Value all{{{static_cast<std::int64_t>(3 * ranks), channels}, DType::float32}, {}};
  Operands counted = whole;  // the samples of the first, second and last rank
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Operands part({2, 6, channels}, DType::float32, 2);
    const auto cut = [&](Value& to, const Value& from) {
      const std::size_t size = to.values.size();
      std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(rank * size), size, to.values.begin());
    };
    if (rank == 3) std::fill(counted.mask.values.begin() + 36, counted.mask.values.end(), 0.0);
    cut(part.x, whole.x), cut(part.dy, whole.dy), cut(part.mask, counted.mask);
    const auto number = static_cast<double>(rank == 2 ? no_sample : 5);
    const Value numbers{{{2}, DType::int64}, {number, number}};
    moments.push_back(run_op(*backend, std::make_shared<BatchMoments>(true), {part.x, numbers, part.mask})[0]);
    CHECK(row_of(moments.back(), 2) == Values(part.channels(), rank == 2 ? 0 : part.count()));
    all.values.insert(all.values.end(), moments.back().values.begin(), moments.back().values.end());
    parts.push_back(std::move(part));
  }
  std::fill_n(counted.mask.values.begin() + 24, 12, 0.0);
  for (std::size_t i = 24 * counted.channels(); i < 36 * counted.channels(); ++i) counted.dy.values[i] = 0;
  std::fill(parts[2].dy.values.begin(), parts[2].dy.values.end(), 0.0);
  const Forward f = forward_of(counted, a);
  std::vector<Value> ys;
  std::vector<std::vector<Value>> sums;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto merged = run_op(*backend, std::make_shared<MergeMoments>(), {all, moments[rank]});
    CHECK(largest_error(merged[0], f.mean) < 1e-6);
    CHECK(largest_error(merged[1], f.variance) < 1e-5);
    const bool has_values = rank < 2;
    CHECK(merged[2].values[0] == (has_values ? round_to(DType::float32, 1 / counted.count()) : 0));
    const Operands& part = parts[rank];
    const auto def = std::make_shared<SynchronizedBatchNorm>(a, MeshAxis::data, static_cast<int>(ranks));
    const std::vector<Value> forward{part.x, part.gamma, part.beta, part.mask, merged[0], merged[1], merged[2]};
    ys.push_back(run_op(*backend, def, forward)[0]);
    BatchNormAttributes over_all = a;
    over_all.masked = false;
    std::vector<Value> backward{part.dy, part.x, part.gamma};
    if (a.relu) backward.push_back(part.beta);
    backward.insert(backward.end(), {merged[0], merged[1]});
    sums.push_back(run_op(*backend, std::make_shared<SynchronizedBatchNormSums>(over_all, false), backward));
  }
  Value total = sums[0][0];
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < total.values.size(); ++i) total.values[i] += sums[rank][0].values[i];
  }
  for (double& value : total.values) value = round_to(DType::float32, value);
  const Gradients g = gradients_of(counted, a, f);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CAPTURE(channels, a.relu, rank);
    const Operands& part = parts[rank];
    std::vector<Value> inputs{part.dy, part.x, part.gamma};
    if (a.relu) inputs.push_back(part.beta);
    const auto merged = run_op(*backend, std::make_shared<MergeMoments>(), {all, moments[rank]});
    inputs.insert(inputs.end(), {merged[0], merged[1], merged[2], total, part.mask});
    const Value dx = run_op(*backend, std::make_shared<SynchronizedBatchNormGrad>(a), inputs)[0];
    const auto first = static_cast<std::ptrdiff_t>(rank * dx.values.size());
    const auto size = static_cast<std::ptrdiff_t>(dx.values.size());
    const auto of_rank = [&](const Values& values) {
      return Values(values.begin() + first, values.begin() + first + size);
    };
    CHECK(largest_error(ys[rank], of_rank(f.y)) < 1e-5);
    if (rank != 2) CHECK(largest_error(dx, of_rank(g.dx)) < 1e-5);
  }
}

}  // namespace trainctl::test::masked_batch_norm_test
