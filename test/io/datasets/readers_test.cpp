// Tests the readers of arrays with files that the tests write.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "io/datasets/arrays/array.h"
#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/synthetic.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::readers_test {
namespace {

std::string labels_of(std::size_t n, int classes) {
  std::string labels(n, '\0');
  for (std::size_t i = 0; i < n; ++i)
    labels[i] = static_cast<char>((i * 7 + i / 3) % static_cast<std::size_t>(classes));
  return labels;
}

std::vector<float> values_of(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.shape.count()));
  convert(array, 0, array.shape.count(), values.data());
  return values;
}

}  // namespace

TEST_CASE("idx: images and labels are read, plain and gzip") {
  const TempFolder folder;
  const std::string pixels = random_bytes(50 * 6 * 4, 1), labels = labels_of(50, 10);
  const std::string images_file = idx(8, {50, 6, 4}, pixels), labels_file = idx(8, {50}, labels);
  write_file(folder / "train-images-idx3-ubyte", images_file);
  write_file(folder / "train-labels-idx1-ubyte.gz", gzip(labels_file));
  write_file(folder / "t10k-images-idx3-ubyte.gz", gzip(images_file));
  write_file(folder / "t10k-labels-idx1-ubyte", labels_file);
  for (const char* prefix : {"train", "t10k"}) {
    const IdxFiles files = find_mnist_files(folder.text(), prefix);
    const auto dataset = idx_dataset(files.images, files.labels, {});
    REQUIRE(dataset->size() == 50);
    CHECK(dataset->info().sample == Shape{6, 4, 1});
    CHECK(dataset->info().classes == 10);
    Sample sample;
    for (std::int64_t i : {0, 49, 17}) {
      dataset->read(i, sample);
      CHECK(sample.dtype == DType::uint8);
      CHECK(std::memcmp(sample.values, pixels.data() + i * 24, 24) == 0);
      CHECK(dataset->label(i) == labels[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("idx: every big-endian element type is read") {
  const TempFolder folder;
  write_file(folder / "int8", idx(0x09, {2}, std::string("\x80\x05", 2)));
  CHECK(values_of(read_idx(folder / "int8")) == std::vector<float>{-128, 5});
  write_file(folder / "int16", idx(0x0B, {2}, std::string("\xff\xfe\x01\x02", 4)));
  CHECK(values_of(read_idx(folder / "int16")) == std::vector<float>{-2, 258});
  write_file(folder / "int32", idx(0x0C, {1, 1}, std::string("\x00\x01\x00\x00", 4)));
  CHECK(values_of(read_idx(folder / "int32")) == std::vector<float>{65536});
  write_file(folder / "float32", idx(0x0D, {1}, std::string("\xbf\xc0\x00\x00", 4)));
  CHECK(values_of(read_idx(folder / "float32")) == std::vector<float>{-1.5f});
  write_file(folder / "float64", idx(0x0E, {1}, std::string("\x40\x09\x21\xfb\x54\x44\x2d\x18", 8)));
  CHECK(values_of(read_idx(folder / "float64"))[0] == Approx(3.14159265));
}

TEST_CASE("npy: types, shapes, byte orders and versions are read") {
  const TempFolder folder;
  std::mt19937 random(2);
  std::vector<float> floats(24);
  for (float& value : floats) value = static_cast<float>(random()) / 1e9f - 2;
  std::vector<double> doubles(floats.begin(), floats.end());
  write_file(folder / "f4.npy", npy("<f4", "(6, 2, 2)", raw(floats)));
  write_file(folder / "f8.npy", npy("<f8", "(24,)", raw(doubles)));
  CHECK(values_of(read_npy(folder / "f4.npy")) == floats);
  CHECK(read_npy(folder / "f4.npy").shape == Shape{6, 2, 2});
  CHECK(values_of(read_npy(folder / "f8.npy")) == floats);
  write_file(folder / "f4.npy.gz", gzip(npy("<f4", "(6, 2, 2)", raw(floats))));
  CHECK(values_of(read_npy(folder / "f4.npy.gz")) == floats);
  write_file(folder / "i8.npy", npy("<i8", "(2, 1)", raw(std::vector<std::int64_t>{-3, 70000})));
  CHECK(values_of(read_npy(folder / "i8.npy")) == std::vector<float>{-3, 70000});
  write_file(folder / "u2.npy", npy(">u2", "(2,)", std::string("\x01\x00\xff\xff", 4)));
  CHECK(values_of(read_npy(folder / "u2.npy")) == std::vector<float>{256, 65535});
  std::string second = npy("|u1", "(3,)", std::string("\x01\x02\xff", 3));
  second = second.substr(0, 10) + std::string(2, '\0') + second.substr(10);  // version 2 has a header length of 32 bits
  second[6] = 2;
  write_file(folder / "v2.npy", second);
  CHECK(values_of(read_npy(folder / "v2.npy")) == std::vector<float>{1, 2, 255});
}

TEST_CASE("npz: stored and deflated members are read, with 32-bit and 64-bit sizes") {
  const TempFolder folder;
  const std::string values = random_bytes(5000, 3), file = npy("|u1", "(50, 100)", values);
  for (bool deflated : {false, true}) {
    for (bool zip64 : {false, true}) {
      write_file(folder / "a.npz", zip("x.npy", file, deflated, zip64));
      const Array array = read_npz(folder / "a.npz", "x");
      CHECK(array.shape == Shape{50, 100});
      CHECK(std::memcmp(array.bytes.loaded().in_memory(), values.data(), values.size()) == 0);
      CHECK(has_npz_array(folder / "a.npz", "x"));
      CHECK_FALSE(has_npz_array(folder / "a.npz", "y"));
      CHECK_THROWS_AS(read_npz(folder / "a.npz", "y"), Error);
    }
  }
}

TEST_CASE("arrays: targets are classes or values, and the config may set shape and classes") {
  const TempFolder folder;
  const std::string x = npy("<f4", "(4, 6)", raw(std::vector<float>(24, 1.5f)));
  write_file(folder / "x.npy", x);
  write_file(folder / "labels.npy", npy("<i8", "(4,)", raw(std::vector<std::int64_t>{0, 2, 1, 2})));
  write_file(folder / "column.npy", npy("<i4", "(4, 1)", raw(std::vector<std::int32_t>{0, 2, 1, 2})));
  write_file(folder / "values.npy", npy("<f8", "(4, 2)", raw(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8})));
  const auto open = [&](const char* y, const DeclaredInfo& declared) {
    return array_dataset(read_npy(folder / "x.npy"), read_npy(folder / y), declared);
  };
  for (const char* y : {"labels.npy", "column.npy"}) {
    CHECK(open(y, {})->info().classes == 3);
    CHECK(open(y, {{}, 5, nullptr})->info().classes == 5);
    CHECK(open(y, {})->label(1) == 2);
    CHECK(open(y, {{}, 0, nullptr})->info().target == Shape{1});
    CHECK_THROWS_AS(open(y, {{}, 2, nullptr}), Error);
  }
  const auto values = open("values.npy", {Shape{2, 3, 1}, {}, nullptr});
  CHECK(values->info().sample == Shape{2, 3, 1});
  CHECK(values->info().target == Shape{2});
  Sample sample;
  values->read(2, sample);
  CHECK(sample.target[1] == 6);
  CHECK(sample.shape == Shape{2, 3, 1});
  CHECK_THROWS_AS(open("values.npy", {{}, 3, nullptr}), Error);
}

TEST_CASE("synthetic samples depend on the seed only, vary around their class's pattern, and differ between splits") {
  const auto a = synthetic_dataset({8, 8, 3}, 4, 0, 100, 1), b = synthetic_dataset({8, 8, 3}, 4, 0, 100, 1);
  const auto other_seed = synthetic_dataset({8, 8, 3}, 4, 0, 100, 2),
             other_split = synthetic_dataset({8, 8, 3}, 4, 100, 100, 1);
  const auto read = [](const Dataset& dataset, std::int64_t i) {
    Sample sample;
    dataset.read(i, sample);
    REQUIRE(sample.dtype == DType::uint8);
    const auto* bytes = static_cast<const std::uint8_t*>(sample.values);
    std::vector<float> values;
    for (int k = 0; k < 192; ++k) {
      values.push_back(static_cast<float>(dataset.info().scale * bytes[k] + dataset.info().offset));
    }
    return values;
  };
  CHECK(read(*a, 5) == read(*b, 5));
  CHECK(read(*a, 5) != read(*other_seed, 5));
  CHECK(read(*a, 5) != read(*other_split, 5));
  const auto distance = [&](const std::vector<float>& x, const std::vector<float>& y) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum / static_cast<double>(x.size());
  };
  // The difference of two noises of variance 1/3 each; between classes also of two patterns of that variance.
  CHECK(distance(read(*a, 5), read(*a, 9)) == Approx(2.0 / 3).epsilon(0.3));
  CHECK(distance(read(*a, 5), read(*a, 6)) == Approx(4.0 / 3).epsilon(0.3));
  CHECK(a->label(6) == 2);
}

TEST_CASE("synthetic tokens follow from the token before them, or from the class of their sample") {
  constexpr std::int64_t positions = 50, vocabulary = 30, samples = 200;
  const auto tokens_of = [](const Dataset& dataset, std::int64_t i) {
    Sample sample;
    dataset.read(i, sample);
    REQUIRE(sample.dtype == DType::int32);
    const auto* tokens = static_cast<const std::int32_t*>(sample.values);
    return std::vector<std::int32_t>(tokens, tokens + positions);
  };
  const auto text = synthetic_tokens({{positions}, vocabulary, {}}, 0, samples, 1);
  CHECK(text->info().classes == vocabulary);
  CHECK(text->info().target == Shape{positions});
  CHECK(text->info().weight == Shape{positions});
  std::map<std::pair<std::int32_t, std::int32_t>, int> pairs;
  std::map<std::int32_t, int> most, all;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::vector<std::int32_t> tokens = tokens_of(*text, i);
    std::vector<std::int32_t> next(positions);
    text->read_labels(i, next.data());
    CHECK(text->label(i) == next[0]);
    CHECK(std::equal(tokens.begin() + 1, tokens.end(), next.begin()));
    for (std::size_t k = 0; k < positions; ++k) {
      CHECK(tokens[k] > 0);
      CHECK(next[k] < vocabulary);
      ++all[tokens[k]];
      most[tokens[k]] = std::max(most[tokens[k]], ++pairs[{tokens[k], next[k]}]);
    }
  }
  CHECK(all.size() == vocabulary - 1);
  for (const auto& [token, count] : all) {
    if (count > 200) CHECK(most[token] == Approx(0.75 * count).epsilon(0.2));
  }
  const auto other = synthetic_tokens({{positions}, vocabulary, {}}, samples, samples, 1);
  CHECK(tokens_of(*text, 3) == tokens_of(*synthetic_tokens({{positions}, vocabulary, {}}, 0, samples, 1), 3));
  CHECK(tokens_of(*text, 3) != tokens_of(*other, 3));

  const auto classes = synthetic_tokens({{positions}, 10'000, 4}, 0, samples, 1);
  CHECK(classes->label(7) == 3);
  CHECK(classes->info().target == Shape{});
  const auto shared = [&](std::int64_t a, std::int64_t b) {
    const std::vector<std::int32_t> x = tokens_of(*classes, a), y = tokens_of(*classes, b);
    return std::ranges::count_if(x, [&](std::int32_t token) { return std::ranges::count(y, token) > 0; });
  };
  CHECK(shared(0, 4) > 25);
  CHECK(shared(0, 1) < 5);
  const auto values = synthetic_tokens({{positions}, vocabulary, 0}, 0, samples, 1);
  Sample a, b;
  values->read(1, a);
  values->read(2, b);
  CHECK(values->info().target == Shape{1});
  CHECK(std::abs(a.target[0]) < 1);
  CHECK(a.target[0] != b.target[0]);
}

TEST_CASE("arrays: samples may be tokens with a class for each position") {
  const TempFolder folder;
  std::vector<std::int64_t> x, y;
  for (std::int64_t i = 0; i < 5 * 4; ++i) {
    x.push_back(i * 7 % 13);
    y.push_back(i * 5 % 9);
  }
  write_file(folder / "x.npy", npy("<i8", "(5, 4)", raw(x)));
  write_file(folder / "y.npy", npy("<i8", "(5, 4)", raw(y)));
  const auto open = [&](const DeclaredInfo& declared) {
    return array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "y.npy"), declared);
  };
  const auto dataset = open({.use = {.class_numbers = true, .tokens = 13}});
  CHECK(dataset->info().dtype == DType::int32);
  CHECK(dataset->info().classes == 9);
  CHECK(dataset->info().target == Shape{4});
  Sample sample;
  for (std::int64_t i = 0; i < 5; ++i) {
    std::int32_t labels[4];
    dataset->read(i, sample);
    dataset->read_labels(i, labels);
    for (std::int64_t k = 0; k < 4; ++k) {
      CHECK(static_cast<const std::int32_t*>(sample.values)[k] == x[static_cast<std::size_t>(i * 4 + k)]);
      CHECK(labels[k] == y[static_cast<std::size_t>(i * 4 + k)]);
    }
  }
  const auto fewer = open({.use = {.class_numbers = true, .tokens = 12}});
  CHECK_NOTHROW(fewer->read(0, sample));  // has the tokens 0, 7, 1 and 8
  CHECK_THROWS_AS(fewer->read(2, sample), Error);
  CHECK(open({})->info().target == Shape{4});  // values, as for a regression loss
  CHECK(open({})->info().classes == 0);
  CHECK(open({})->info().dtype == DType::float32);
  CHECK_THROWS_AS(open({.classes = 8, .use = {.class_numbers = true}}), Error);
  // The number that the loss ignores need not be a class, in any split.
  y[3] = y[17] = -100;
  write_file(folder / "ignored.npy", npy("<i8", "(5, 4)", raw(y)));
  const auto with_ignored = [&](const DeclaredInfo& declared) {
    return array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "ignored.npy"), declared);
  };
  CHECK_THROWS_AS(with_ignored({.use = {.class_numbers = true, .tokens = 13}}), Error);
  const ArrayUse ignoring{.class_numbers = true, .tokens = 13, .ignored = -100};
  const auto training = with_ignored({.use = ignoring});
  CHECK(training->info().classes == 9);
  std::int32_t labels[4];
  training->read_labels(0, labels);
  CHECK(labels[3] == -100);
  CHECK(with_ignored({.training = &training->info(), .use = ignoring})->info().classes == 9);
  write_file(folder / "held.npy", npy("<i8", "(5, 2)", raw(std::vector<std::int64_t>(10))));
  const DeclaredInfo held_out{.training = &dataset->info(), .use = {.class_numbers = true, .tokens = 13}};
  CHECK_THROWS_AS(array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "held.npy"), held_out), Error);
}

}  // namespace trainctl::test::readers_test
