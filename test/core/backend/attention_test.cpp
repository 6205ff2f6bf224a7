// Compares attention and its gradient with their definition in float64, for every option alone and in pairs.
#include <cmath>
#include <limits>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/simd/product.h"
#include "core/base/random.h"
#include "core/graph/ops/attention.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::attention_test {
namespace {

constexpr std::int64_t sample_numbers[] = {5, 1'000'000'007, 12};
constexpr std::int64_t step_number = 41;
constexpr std::int64_t first_positions[] = {0, 4, 17};  // of the samples' queries among the keys

struct Case {
  std::int64_t samples = 2, queries = 7, keys = 7, heads = 4, key_heads = 4;
  AttentionAttributes a;
};

// The operands apart, whatever the layout of the op's inputs is.
struct Operands {
  Value q, k, v, mask, documents, dy;
};

Operands random_operands(const Case& c, DType dtype) {
  Operands o{random_value({c.samples, c.queries, c.heads * c.a.head_size}, dtype, 1, -2, 2),
             random_value({c.samples, c.keys, c.key_heads * c.a.head_size}, dtype, 2, -2, 2),
             random_value({c.samples, c.keys, c.key_heads * c.a.value_size}, dtype, 3),
             random_integers({c.samples, c.keys}, DType::uint8, 4, 2),
             random_integers({c.samples, c.queries}, DType::int32, 5, 3),
             random_value({c.samples, c.queries, c.heads * c.a.value_size}, dtype, 6)};
  std::sort(o.documents.values.begin(), o.documents.values.begin() + c.queries);
  return o;
}

// The factor of a probability by dropout.
double dropout_factor(const Case& c, std::int64_t n, std::int64_t h, std::int64_t t, std::int64_t s) {
  const AttentionDropout& dropout = c.a.dropout;
  if (dropout.rate == 0) return 1;
  const std::int64_t first = dropout.heads ? dropout.heads->first : 0;
  const auto element = static_cast<std::uint64_t>(((first + h) * c.queries + t) * c.keys + s);
  const RandomKey key{dropout.seed, Purpose::dropout, step_number, dropout.layer};
  const auto words = key.block(static_cast<std::uint64_t>(sample_numbers[n]), static_cast<std::uint32_t>(element / 4));
  const double rate = static_cast<double>(dropout.rate);
  return static_cast<double>(words[element % 4] >> 8) / 0x1p24 >= rate ? 1 / (1 - rate) : 0;
}

bool sees(const Case& c, const Operands& o, std::int64_t n, std::int64_t t, std::int64_t s) {
  const auto at = [](const Value& value, std::int64_t row, std::int64_t count, std::int64_t column) {
    return value.values[static_cast<std::size_t>(row * count + column)];
  };
  const std::int64_t position = c.a.starts ? t + first_positions[n] : t;
  if (c.a.causal && s > position) return false;
  if (c.a.window != 0 && std::abs(position - s) >= c.a.window) return false;
  if (c.a.mask && at(o.mask, n, c.keys, s) == 0) return false;
  return !c.a.documents || at(o.documents, n, c.queries, t) == at(o.documents, n, c.queries, s);
}

struct Expected {
  std::vector<double> y, log_sum_exp, dq, dk, dv;
};

Expected by_definition(const Case& c, const Operands& o) {
  const std::int64_t group = c.heads / c.key_heads, width = c.a.head_size, value_width = c.a.value_size;
  Expected e;
  e.y.resize(o.dy.values.size());
  e.dq.resize(o.q.values.size());
  e.dk.resize(o.k.values.size());
  e.dv.resize(o.v.values.size());
  const auto at = [&](std::int64_t n, std::int64_t row, std::int64_t rows, std::int64_t head, std::int64_t heads,
                      std::int64_t columns) {
    return static_cast<std::size_t>(((n * rows + row) * heads + head) * columns);
  };
  for (std::int64_t n = 0; n < c.samples; ++n) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t t = 0; t < c.queries; ++t) {
        const std::size_t qt = at(n, t, c.queries, h, c.heads, width),
                          yt = at(n, t, c.queries, h, c.heads, value_width);
        std::vector<double> scores(static_cast<std::size_t>(c.keys), -std::numeric_limits<double>::infinity());
        double sum = 0;
        for (std::int64_t s = 0; s < c.keys; ++s) {
          if (!sees(c, o, n, t, s)) continue;
          double score = 0;
          const std::size_t ks = at(n, s, c.keys, h / group, c.key_heads, width);
          for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i)
            score += o.q.values[qt + i] * o.k.values[ks + i];
          scores[static_cast<std::size_t>(s)] = score * static_cast<double>(c.a.scale);
          sum += std::exp(scores[static_cast<std::size_t>(s)]);
        }
        e.log_sum_exp.push_back(sum > 0 ? std::log(sum) : 0);
        std::vector<double> p(scores.size()), dp(scores.size());
        double mean = 0;
        for (std::int64_t s = 0; s < c.keys; ++s) {
          const auto i = static_cast<std::size_t>(s);
          p[i] = sum > 0 ? std::exp(scores[i]) / sum : 0;
          const double factor = dropout_factor(c, n, h, t, s);
          const std::size_t vs = at(n, s, c.keys, h / group, c.key_heads, value_width);
          for (std::size_t j = 0; j < static_cast<std::size_t>(value_width); ++j) {
            e.y[yt + j] += p[i] * factor * o.v.values[vs + j];
            e.dv[vs + j] += p[i] * factor * o.dy.values[yt + j];
            dp[i] += factor * o.dy.values[yt + j] * o.v.values[vs + j];
          }
          mean += p[i] * dp[i];
        }
        for (std::int64_t s = 0; s < c.keys; ++s) {
          const auto i = static_cast<std::size_t>(s);
          const double slope = p[i] * (dp[i] - mean) * static_cast<double>(c.a.scale);
          const std::size_t ks = at(n, s, c.keys, h / group, c.key_heads, width);
          for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
            e.dq[qt + j] += slope * o.k.values[ks + j];
            e.dk[ks + j] += slope * o.q.values[qt + j];
          }
        }
      }
    }
  }
  return e;
}

// Copies between the operands and the columns of the packed input: [K][packed + 2][head_size].
template <class Visit>
void each_packed_column(const Case& c, const Visit& visit) {
  const std::int64_t group = c.a.packed, width = c.a.head_size;
  for (std::int64_t column = 0; column < c.key_heads * (group + 2) * width; ++column) {
    const std::int64_t head = column / ((group + 2) * width), place = column / width % (group + 2), i = column % width;
    const int operand = place < group ? 0 : place == group ? 1 : 2;
    visit(column, operand, place < group ? (head * group + place) * width + i : head * width + i);
  }
}

Value packed(const Case& c, const Operands& o) {
  Value all{{{c.samples, c.queries, c.key_heads * (c.a.packed + 2) * c.a.head_size}, o.q.type.dtype}, {}};
  for (std::int64_t row = 0; row < c.samples * c.queries; ++row) {
    each_packed_column(c, [&](std::int64_t, int operand, std::int64_t column) {
      const Value& from = operand == 0 ? o.q : operand == 1 ? o.k : o.v;
      all.values.push_back(from.values[static_cast<std::size_t>(row * from.type.shape.back() + column)]);
    });
  }
  return all;
}

std::vector<std::vector<double>> unpacked(const Case& c, const Operands& o, const Value& all) {
  std::vector<std::vector<double>> apart{o.q.values, o.k.values, o.v.values};
  const std::int64_t widths[] = {o.q.type.shape.back(), o.k.type.shape.back(), o.v.type.shape.back()};
  for (std::int64_t row = 0; row < c.samples * c.queries; ++row) {
    each_packed_column(c, [&](std::int64_t at, int operand, std::int64_t column) {
      apart[static_cast<std::size_t>(operand)][static_cast<std::size_t>(row * widths[operand] + column)] =
          all.values[static_cast<std::size_t>(row * all.type.shape.back() + at)];
    });
  }
  return apart;
}

std::vector<Value> inputs_of(const Case& c, const Operands& o) {
  std::vector<Value> inputs{o.q, o.k, o.v};
  if (c.a.packed != 0) inputs = {packed(c, o)};
  if (c.a.mask) inputs.push_back(o.mask);
  if (c.a.documents) inputs.push_back(o.documents);
  if (c.a.starts) {
    Value starts{{{c.samples}, DType::int32}, {}};
    for (std::int64_t n = 0; n < c.samples; ++n) starts.values.push_back(static_cast<double>(first_positions[n]));
    inputs.push_back(starts);
  }
  if (c.a.dropout.rate != 0) {
    Value samples{{{c.samples}, DType::int64}, {}};
    for (std::int64_t n = 0; n < c.samples; ++n) samples.values.push_back(static_cast<double>(sample_numbers[n]));
    inputs.push_back(samples);
    inputs.push_back(scalar(step_number, DType::int64));
  }
  return inputs;
}

void check(Backend& backend, const Case& c, DType dtype, double tolerance, OutputPlaces places = OutputPlaces::apart) {
  CAPTURE(Attention(c.a).attributes(), c.samples, c.queries, c.keys, c.heads, c.key_heads, name_of(dtype));
  const Operands o = random_operands(c, dtype);
  const Expected expected = by_definition(c, o);
  std::vector<Value> inputs = inputs_of(c, o);
  const auto forward = run_op(backend, std::make_shared<Attention>(c.a), inputs);
  CHECK(largest_error(forward[0], expected.y) < tolerance);
  CHECK(largest_error(forward[1], expected.log_sum_exp) < std::min(10 * tolerance, 1e-3));
  if (c.a.starts) return;  // without a gradient
  inputs.insert(inputs.begin(), {o.dy, forward[0], forward[1]});
  const auto gradients = run_op(backend, std::make_shared<AttentionGrad>(c.a), inputs, {}, nullptr, nullptr, places);
  std::vector<std::vector<double>> got;
  if (c.a.packed != 0) {
    got = unpacked(c, o, gradients[0]);
  } else {
    for (const Value& gradient : gradients) got.push_back(gradient.values);
  }
  CHECK(largest_error({o.q.type, got[0]}, expected.dq) < 3 * tolerance);
  CHECK(largest_error({o.k.type, got[1]}, expected.dk) < 3 * tolerance);
  CHECK(largest_error({o.v.type, got[2]}, expected.dv) < 3 * tolerance);
}

// The rows of one sample of each value.
std::vector<Value> samples_from(const std::vector<Value>& all, std::int64_t sample) {
  std::vector<Value> parts;
  for (const Value& value : all) {
    std::vector<std::int64_t> sizes = value.type.shape.sizes();
    const auto count = static_cast<std::ptrdiff_t>(value.values.size()) / sizes[0];
    sizes[0] = 1;
    const auto first = value.values.begin() + sample * count;
    parts.push_back({{Shape(sizes), value.type.dtype}, {first, first + count}});
  }
  return parts;
}

using Option = void (*)(Case&);

// The options, of which a case has one or two. Some exclude each other.
const std::vector<std::pair<const char*, Option>>& options() {
  static const std::vector<std::pair<const char*, Option>> all{
      {"causal", [](Case& c) { c.a.causal = true; }},
      {"window", [](Case& c) { c.a.window = 3; }},
      {"mask", [](Case& c) { c.a.mask = true; }},
      {"documents", [](Case& c) { c.a.documents = true; }},
      {"grouped", [](Case& c) { c.key_heads = 2; }},
      {"scale", [](Case& c) { c.a.scale = 0.75f; }},
      {"dropout", [](Case& c) { c.a.dropout = {.rate = 0.3f, .seed = 7, .layer = 99, .heads = {}}; }},
      {"other heads",
       [](Case& c) {
         c.a.dropout = {.rate = 0.2f, .seed = 8, .layer = 1, .heads = ColumnRange{4, 8}};
       }},
      {"packed", [](Case& c) { c.a.packed = c.heads / c.key_heads; }},
      {"wide values", [](Case& c) { c.a.value_size = c.a.packed != 0 ? c.a.head_size : 9; }},
      {"other keys", [](Case& c) { c.keys = c.a.packed != 0 || c.a.documents ? c.queries : 11; }},
  };
  return all;
}

Case small_case() {
  Case c;
  c.a.head_size = c.a.value_size = 5;
  c.a.scale = 0.4f;
  return c;
}

// Applies the options in an order in which later ones see what earlier ones exclude.
Case case_of(std::size_t first, std::size_t second) {
  Case c = small_case();
  for (std::size_t i = 0; i < options().size(); ++i) {
    if (i == first || i == second) options()[i].second(c);
  }
  return c;
}

}  // namespace

TEST_CASE("attention and its gradient agree with their definition, for every option alone and in pairs") {
  const auto backend = backend_under_test({.threads = 2});
  for (std::size_t first = 0; first < options().size(); ++first) {
    for (std::size_t second = first; second < options().size(); ++second) {
      check(*backend, case_of(first, second), DType::float32, 1e-5);
    }
  }
}

TEST_CASE("attention over a cache of keys begins at the position of each sample") {
  const auto backend = backend_under_test({.threads = 2});
  for (const std::int64_t queries : {1, 3, 50}) {
    for (const std::int64_t window : {0, 5}) {
      Case c{.samples = 3, .queries = queries, .keys = 20, .heads = 4, .key_heads = 2, .a = {}};
      c.a = {.head_size = 6, .value_size = 5, .scale = 0.4f, .causal = true, .window = window, .starts = true};
      check(*backend, c, DType::float32, 1e-5);
      c.keys = 300;
      check(*backend, c, DType::bfloat16, 2e-2);
    }
  }
}

TEST_CASE("attention over several tiles of queries and keys agrees with its definition") {
  const auto backend = backend_under_test({.threads = 2});
  for (const bool causal : {false, true}) {
    for (const std::int64_t window : {0, 150}) {
      Case c{.samples = 1, .queries = 203, .keys = 203, .heads = 2, .key_heads = 1, .a = {}};
      c.a = {.head_size = 24, .value_size = 24, .scale = 0.3f, .causal = causal, .window = window};
      check(*backend, c, DType::float32, 3e-5);
      c.keys = 270;
      c.a.mask = true;
      c.a.dropout = {.rate = 0.1f, .seed = 3, .layer = 4, .heads = {}};
      check(*backend, c, DType::float32, 3e-5);
    }
  }
}

// Scores and their sums are float32, so that log_sum_exp is far more precise than the results in bfloat16.
TEST_CASE("attention in bfloat16 agrees with its definition, also for odd numbers of positions") {
  const auto backend = backend_under_test({.threads = 2});
  for (std::size_t first = 0; first < options().size(); ++first) {
    for (std::size_t second = first; second < options().size(); ++second) {
      check(*backend, case_of(first, second), DType::bfloat16, 2e-2);
    }
  }
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{32, 65}, {64, 65}, {80, 65}, {128, 65}, {64, 131}};
  for (const auto& [size, positions] : sizes) {
    for (const auto& [name, option] : options()) {
      CAPTURE(name);
      Case c{.samples = 1, .queries = positions, .keys = positions, .heads = 4, .key_heads = 4, .a = {}};
      c.a = {.head_size = size, .value_size = size, .scale = 0.2f};
      option(c);
      check(*backend, c, DType::bfloat16, 2e-2);
    }
  }
}

TEST_CASE("attention in bfloat16 may write its gradients into the memory of its inputs") {
  const auto backend = backend_under_test({.threads = 2});
  for (const std::int64_t packed : {0, 2}) {
    Case c{.samples = 3, .queries = 70, .keys = 70, .heads = 4, .key_heads = 2, .a = {}};
    c.a = {.head_size = 16, .value_size = 16, .packed = packed, .scale = 0.25f, .causal = true};
    check(*backend, c, DType::float32, 2e-5, OutputPlaces::in_place);
    check(*backend, c, DType::bfloat16, 2e-2, OutputPlaces::in_place);
  }
}

TEST_CASE("attention has the same bits for any number of threads and samples") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  CAPTURE(name_of(dtype));
  Case c{.samples = 3, .queries = 91, .keys = 91, .heads = 2, .key_heads = 2, .a = {}};
  c.a = {.head_size = 8, .value_size = 8, .scale = 0.4f, .causal = true};
  const Operands o = random_operands(c, dtype);
  std::vector<Value> inputs = inputs_of(c, o);
  const auto def = std::make_shared<Attention>(c.a);
  const auto grad = std::make_shared<AttentionGrad>(c.a);
  const auto forward = run_op(*one, def, inputs);
  std::vector<Value> of_gradient = inputs;
  of_gradient.insert(of_gradient.begin(), {o.dy, forward[0], forward[1]});
  const auto gradients = run_op(*one, grad, of_gradient);

  CHECK(run_op(*two, def, inputs)[0].values == forward[0].values);
  const auto again = run_op(*two, grad, of_gradient);
  for (std::size_t i = 0; i < gradients.size(); ++i) CHECK(again[i].values == gradients[i].values);

  if (!one->on_host()) return;  // a GPU's kernel may depend on the number of samples
  for (std::int64_t n = 0; n < c.samples; ++n) {
    CAPTURE(n);
    CHECK(run_op(*two, def, samples_from(inputs, n))[0].values == samples_from(forward, n)[0].values);
    const auto alone = run_op(*two, grad, samples_from(of_gradient, n)), part = samples_from(gradients, n);
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].values == part[i].values);
  }
}

TEST_CASE("attention in bfloat16 multiplies pairs where the processor can") {
  const auto backend = make_cpu_backend({.threads = 1});
  const Case c = small_case();
  const Operands o = random_operands(c, DType::bfloat16);
  std::vector<Value> inputs = inputs_of(c, o);
  Lowering lowering;
  const auto forward = run_op(*backend, std::make_shared<Attention>(c.a), inputs, {}, nullptr, &lowering);
  CHECK((lowering.implementation == "own:avx512_bf16") == cpu::multiplies_pairs());
  inputs.insert(inputs.begin(), {o.dy, forward[0], forward[1]});
  run_op(*backend, std::make_shared<AttentionGrad>(c.a), inputs, {}, nullptr, &lowering);
  CHECK((lowering.implementation == "own:avx512_bf16") == cpu::multiplies_pairs());
}

TEST_CASE("a query that sees no key has the result 0, and a NaN stays one") {
  const auto backend = backend_under_test({.threads = 1});
  Case c = small_case();
  c.a.mask = true;
  Operands o = random_operands(c, DType::float32);
  std::fill(o.mask.values.begin(), o.mask.values.begin() + c.keys, 0.0);
  const auto none = run_op(*backend, std::make_shared<Attention>(c.a), inputs_of(c, o));
  for (std::int64_t t = 0; t < c.queries; ++t) {
    for (const double y : row_of(none[0], static_cast<std::size_t>(t))) CHECK(y == 0);
  }
  c.a.mask = false;
  o.q.values[0] = std::numeric_limits<double>::quiet_NaN();
  const auto bad = run_op(*backend, std::make_shared<Attention>(c.a), inputs_of(c, o));
  CHECK(std::isnan(bad[0].values[0]));
}

}  // namespace trainctl::test::attention_test
