// Tests mixup and cutmix: the mixed samples, their targets and weights, and that none of these depends on ranks,
// workers, batches and the cache.
#include "io/loader/images/mixing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "core/metrics/class_weights.h"
#include "core/tensor/sample_numbers.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::mixing_test {
namespace {

constexpr int samples = 40, classes = 5;

std::vector<std::int64_t> random_labels(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> labels(samples);
  for (std::size_t i = 0; i < samples; ++i) labels[i] = i < classes ? static_cast<int>(i) : random() % classes;
  return labels;
}

// Sample i is the i-th unit vector, so that a mixed sample shows the share of each sample in it. Returns the labels.
std::vector<std::int64_t> write_vectors(const TempFolder& folder) {
  std::vector<float> x(samples * samples);
  for (int i = 0; i < samples; ++i) x[static_cast<std::size_t>(i * samples + i)] = 1;
  const std::vector<std::int64_t> labels = random_labels(3);
  write_file(folder / "x.npy", npy("<f4", format("({}, {})", samples, samples), raw(x)));
  write_file(folder / "y.npy", npy("<i8", format("({},)", samples), raw(labels)));
  return labels;
}

std::string arrays(const TempFolder& folder, const std::string& augment, const std::string& more = "") {
  return format("{{dataset: npy, x: {}, y: {}, classes: {}, augment: [{}]{}}}", folder / "x.npy", folder / "y.npy",
                classes, augment, more);
}

struct Mixed {
  std::vector<float> x, target;
  float weight = 0;
  bool operator==(const Mixed&) const = default;
};

// The samples of an epoch by their numbers, collected from all ranks.
std::map<std::int64_t, Mixed> epoch_of(const Data& data, std::int64_t batch_size, int ranks = 1,
                                       std::int64_t epoch = 0) {
  std::map<std::int64_t, Mixed> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto source = data.training(batch_size, {MeshRank(Mesh{.data = ranks}, rank), {}, {}}, {7, epoch, 0}, 3);
    for (bool last = false; !last;) {
      const Batch& batch = source->next();
      last = batch.last_of_epoch;
      const std::int64_t width = batch.count > 0 ? batch.inputs[0].count / batch.count : 0;
      const std::int64_t values = batch.count > 0 ? batch.targets[0].count / batch.count : 0;
      for (std::int64_t i = 0; i < batch.count; ++i) {
        Mixed& mixed = all[batch.samples.as<std::int64_t>()[i]];
        for (std::int64_t k = 0; k < width; ++k) {
          const bool bytes = batch.inputs[0].dtype == DType::uint8;
          mixed.x.push_back(bytes ? static_cast<float>(batch.inputs[0].as<std::uint8_t>()[i * width + k])
                                  : batch.inputs[0].as<float>()[i * width + k]);
        }
        const float* target = batch.targets[0].as<float>() + i * values;
        mixed.target.assign(target, target + values);
        mixed.weight = batch.weights.as<float>()[i];
      }
    }
  }
  return all;
}

std::string problem(const std::string& yaml, const DataUse& use = {}) {
  try {
    const Data data(data_options(yaml), 7, use);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("mixing shares have the moments of the Beta distribution") {
  constexpr int count = 40000;
  for (const double alpha : {0.05, 0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0, below = 0;
    for (int i = 0; i < count; ++i) {
      Draws draws({5, Purpose::augment, 1}, static_cast<std::uint64_t>(i), 2);
      const double share = draw_share(alpha, draws);
      REQUIRE((share >= 0 && share <= 1));
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
      below += share < 0.25 ? 1 : 0;
    }
    CAPTURE(alpha);
    const double variance = 1 / (4 * (2 * alpha + 1));
    CHECK(std::abs(sum / count - 0.5) < 5 * std::sqrt(variance / count));
    CHECK(squares / count == Approx(variance).epsilon(0.02));
    if (alpha == 1.0) CHECK(below / count == Approx(0.25).epsilon(0.04));  // the uniform distribution
  }
}

TEST_CASE("mixup mixes a sample and its target with those of one other sample") {
  const TempFolder folder;
  const std::vector<std::int64_t> labels = write_vectors(folder);
  const Data data(data_options(arrays(folder, "mixup: {alpha: 1}")), 7);
  CHECK(data.info().targets[0].mixed);
  std::map<std::int64_t, int> partners;
  double shares = 0;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    for (const auto& [number, mixed] : epoch_of(data, 16, 1, epoch)) {
      std::vector<double> expected(classes);
      int found = 0;
      for (std::size_t k = 0; k < samples; ++k) {
        if (mixed.x[k] == 0) continue;
        expected[static_cast<std::size_t>(labels[k])] += static_cast<double>(mixed.x[k]);
        ++found;
        if (static_cast<std::int64_t>(k) != number) ++partners[static_cast<std::int64_t>(k)];
      }
      CHECK(found <= 2);
      shares += static_cast<double>(mixed.x[static_cast<std::size_t>(number)]);
      CHECK(mixed.weight == 1);
      for (std::size_t c = 0; c < classes; ++c)
        CHECK(static_cast<double>(mixed.target[c]) == Approx(expected[c]).margin(1e-6));
    }
  }
  CHECK(partners.size() == samples);  // any sample is a partner
  CHECK(shares / (20 * samples) == Approx(0.5).epsilon(0.1));
}

TEST_CASE("mixed samples depend on seed, epoch and sample only") {
  const TempFolder folder;
  write_vectors(folder);
  for (const char* augment : {"mixup: 0.4", "mix_up: 0.4"}) {
    const Data data(data_options(arrays(folder, augment)), 7);
    const auto expected = epoch_of(data, 16, 1, 1);
    CHECK(epoch_of(data, 16, 3, 1) == expected);
    CHECK(epoch_of(data, 7, 1, 1) == expected);
    CHECK(epoch_of(data, 16, 1, 2) != expected);
    for (const char* more : {", workers: 0", ", workers: 3, prefetch: 3", ", shuffle: false"}) {
      const Data other(data_options(arrays(folder, augment, more)), 7);
      CHECK(epoch_of(other, 16, 1, 1) == expected);
    }
  }
  // The same holds after a transform, which makes the cache useful, and an augmentation, which the partner gets as
  // well.
  std::mt19937 random(4);
  std::string pixels(samples * 8 * 8 * 3, '\0');
  for (char& pixel : pixels) pixel = static_cast<char>(random());
  write_file(folder / "x.npy", npy("|u1", format("({}, 8, 8, 3)", samples), pixels));
  const std::string list = "random_flip: horizontal}, {mixup: 0.3}, {cutmix: {alpha: 1}";
  const std::string resized = ", transform: [{resize: 6}]";
  const Data plain(data_options(arrays(folder, '{' + list + '}', resized)), 7);
  const Data cached(data_options(arrays(folder, '{' + list + '}', resized + ", cache: memory")), 7);
  epoch_of(cached, 16, 1, 0);
  const auto expected = epoch_of(plain, 16, 1, 1);
  CHECK(epoch_of(cached, 16, 1, 1) == expected);
  CHECK(epoch_of(cached, 16, 2, 1) == expected);
}

TEST_CASE("the loss of mixed classes is the mixed loss of both samples with their own weights") {
  const TempFolder folder;
  const std::vector<std::int64_t> labels = write_vectors(folder);
  DataUse use;
  use.class_weights.emplace().value = std::map<std::string, double>{{"0", 4}, {"2", 0.5}, {"3", 0}};
  const Data data(data_options(arrays(folder, "mixup: {alpha: 1}")), 7, use);
  for (const auto& [number, mixed] : epoch_of(data, 16)) {
    std::vector<double> expected(classes);
    double weight = 0;
    for (std::size_t k = 0; k < samples; ++k) {
      const std::int64_t label = labels[k];
      const double of_class = label == 0 ? 4 : label == 2 ? 0.5 : label == 3 ? 0 : 1;
      expected[static_cast<std::size_t>(label)] += of_class * static_cast<double>(mixed.x[k]);
      weight += of_class * static_cast<double>(mixed.x[k]);
    }
    CHECK(static_cast<double>(mixed.weight) == Approx(weight).margin(1e-5));
    for (std::size_t c = 0; c < classes; ++c)
      CHECK(static_cast<double>(mixed.weight * mixed.target[c]) == Approx(expected[c]).margin(1e-5));
  }
}

TEST_CASE("cutmix puts a rectangle of another image into each image and mixes the classes by its area") {
  const TempFolder folder;
  constexpr int height = 9, width = 12;
  std::string pixels;
  for (int i = 0; i < samples; ++i) pixels += std::string(height * width * 2, static_cast<char>(i + 1));
  write_file(folder / "x.npy", npy("|u1", format("({}, {}, {}, 2)", samples, height, width), pixels));
  const std::vector<std::int64_t> labels = random_labels(8);
  write_file(folder / "y.npy", npy("<i8", format("({},)", samples), raw(labels)));
  const Data data(data_options(arrays(folder, "cutmix: {}")), 7);
  CHECK(data.info().inputs[0].format.dtype == DType::uint8);  // bytes stay bytes
  double area = 0;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (const auto& [number, mixed] : epoch_of(data, 16, 1, epoch)) {
      const auto own = static_cast<float>(number + 1);
      int top = height, bottom = 0, left = width, right = 0, others = 0;
      float other = own;
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const float value = mixed.x[static_cast<std::size_t>((y * width + x) * 2)];
          CHECK(mixed.x[static_cast<std::size_t>((y * width + x) * 2 + 1)] == value);
          if (value == own) continue;
          other = value;
          ++others;
          top = std::min(top, y), bottom = std::max(bottom, y + 1);
          left = std::min(left, x), right = std::max(right, x + 1);
        }
      }
      if (others > 0) CHECK(others == (bottom - top) * (right - left));  // a full rectangle of one other image
      std::vector<double> expected(classes);
      const double share = others / static_cast<double>(height * width);
      expected[static_cast<std::size_t>(labels[static_cast<std::size_t>(number)])] += 1 - share;
      expected[static_cast<std::size_t>(labels[static_cast<std::size_t>(other) - 1])] += share;
      if (others > 0) {
        for (std::size_t c = 0; c < classes; ++c)
          CHECK(static_cast<double>(mixed.target[c]) == Approx(expected[c]).margin(1e-6));
      }
      area += share;
    }
  }
  // Rectangles have half the image's area on average, less the parts beyond its edges.
  CHECK(area / (10 * samples) > 0.2);
  CHECK(area / (10 * samples) < 0.5);
}

TEST_CASE("a sample whose partner cannot be read is skipped like one that cannot be read itself") {
  const TempFolder folder;
  const std::string good = png(4, 4, 0, random_bytes(16, 1));
  for (int i = 0; i < 30; ++i) {
    const std::string name = format("{}/{:02}.png", i % 2 == 0 ? "a" : "b", i);
    write_file(folder / name, i == 4 || i == 9 ? good.substr(0, 50) : good);
  }
  const std::string yaml =
      format("{{dataset: image_folder, path: {}, on_error: skip, augment: [{{mixup: 1}}]}}", folder.text());
  const Data data(data_options(yaml), 7);
  int skipped = 0;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    const auto all = epoch_of(data, 10, 1, epoch);
    REQUIRE(all.size() == 30);
    for (const auto& [number, mixed] : all) {
      if (mixed.weight != 0) continue;
      ++skipped;
      CHECK(number == skipped_sample(-2 - number));
      CHECK(std::any_of(mixed.x.begin(), mixed.x.end(), [](float value) { return value != 0; }));
    }
  }
  CHECK(skipped > 10);  // the two damaged samples, and those whose partners they were
}

TEST_CASE("samples that cannot be mixed are one error that names the reason") {
  const TempFolder folder;
  write_vectors(folder);
  CHECK(problem(arrays(folder, "cutmix: {}")).find("cutmix needs images, but samples have shape") != std::string::npos);
  write_file(folder / "y.npy", npy("<i8", format("({}, 3)", samples), raw(std::vector<std::int64_t>(samples * 3))));
  DataUse use;
  use.targets[0].class_numbers = true;
  CHECK(problem(arrays(folder, "mixup: {}"), use).find("the targets are classes of positions") != std::string::npos);
  CHECK(problem("{dataset: synthetic, samples: 9, shape: [4, 4, 1], classes: 0, augment: [cutmix]}")
            .find("the targets are values") != std::string::npos);
  CHECK(problem("{dataset: synthetic, samples: 9, shape: [4, 4, 1], classes: 0, augment: [mixup]}").empty());
}

}  // namespace trainctl::test::mixing_test
