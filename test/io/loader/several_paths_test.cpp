// Tests lists of paths: a data set in several files is read like the same data set in one.
#include <numeric>
#include <random>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::several_paths_test {
namespace {

struct Samples {
  Shape shape;
  std::vector<float> inputs, targets, weights;
  std::vector<std::string> class_names;

  bool operator==(const Samples& other) const {
    return shape == other.shape && inputs == other.inputs && targets == other.targets && weights == other.weights &&
           class_names == other.class_names;
  }
};

std::vector<float> floats_of(const View& view) {
  if (view.dtype == DType::float32) return {view.as<float>(), view.as<float>() + view.count};
  if (view.dtype == DType::int32) return {view.as<std::int32_t>(), view.as<std::int32_t>() + view.count};
  return {view.as<std::uint8_t>(), view.as<std::uint8_t>() + view.count};
}

// All samples of a split in their order.
Samples samples_of(const std::string& yaml, SplitKind split = SplitKind::training) {
  const Data data(data_options(yaml), 1);
  const auto source = data.evaluation(split, data.samples(split), {});
  const Batch& batch = source->next();
  return {data.info().inputs[0].sample, floats_of(batch.inputs[0]), floats_of(batch.targets[0]),
          floats_of(batch.weights), data.info().targets[0].class_names};
}

// Returns the error of opening the data, or "".
std::string error_of(const std::string& yaml) {
  try {
    samples_of(yaml);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void write_npy(const std::string& path, const std::string& type, const std::string& shape, const std::string& bytes) {
  write_file(path, npy(type, shape, bytes));
}

}  // namespace

TEST_CASE("arrays in several files are read like those in one file") {
  const TempFolder folder;
  const std::string x = random_bytes(10 * 6, 1), y = random_bytes(10, 2);
  std::vector<float> weights(10);
  std::iota(weights.begin(), weights.end(), 1.0f);
  const auto write = [&](const std::string& name, std::size_t first, std::size_t count) {
    const std::string n = std::to_string(count);
    std::string labels = y.substr(first, count);
    for (char& label : labels) label = static_cast<char>(static_cast<unsigned char>(label) % 5);
    write_npy(folder / (name + "/x.npy"), "|u1", "(" + n + ", 2, 3)", x.substr(first * 6, count * 6));
    write_npy(folder / (name + "/y.npy"), "|u1", "(" + n + ",)", labels);
    write_npy(folder / (name + "/w.npy"), "<f4", "(" + n + ",)",
              raw<float>({weights.begin() + static_cast<std::ptrdiff_t>(first),
                          weights.begin() + static_cast<std::ptrdiff_t>(first + count)}));
  };
  write("whole", 0, 10);
  write("a", 0, 3);
  write("b", 3, 7);
  const auto config_of = [&](const std::string& files) { return format("{{dataset: npy, {}, classes: 5}}", files); };
  const auto at = [&](const char* name) { return folder / name; };
  const Samples whole = samples_of(
      config_of(format("x: {}, y: {}, weights: {}", at("whole/x.npy"), at("whole/y.npy"), at("whole/w.npy"))));
  REQUIRE(whole.weights.size() == 10);
  CHECK(samples_of(config_of(format("x: [{}, {}], y: [{}, {}], weights: [{}, {}]", at("a/x.npy"), at("b/x.npy"),
                                    at("a/y.npy"), at("b/y.npy"), at("a/w.npy"), at("b/w.npy")))) == whole);
  const Samples halves = samples_of(config_of(format("path: [{}, {}]", at("a"), at("b"))));
  CHECK(halves.inputs == whole.inputs);
  CHECK(halves.targets == whole.targets);
  const Samples reordered = samples_of(config_of(format("path: [{}, {}]", at("b"), at("a"))));
  CHECK(std::equal(reordered.inputs.begin(), reordered.inputs.begin() + 42, whole.inputs.begin() + 18));

  // Lists of unequal length are a config error. The error for missing paths names all of them, and the one for unequal
  // samples names the file.
  CHECK_THROWS_AS(samples_of(config_of(format("x: [{}, {}], y: {}", at("a/x.npy"), at("b/x.npy"), at("a/y.npy")))),
                  ConfigError);
  const std::string missing = error_of(config_of(format("path: [{}, {}, {}]", at("no"), at("a"), at("nor"))));
  CHECK(missing.find(at("no")) != std::string::npos);
  CHECK(missing.find(at("nor")) != std::string::npos);
  write_npy(folder / "c/x.npy", "|u1", "(2, 2, 2)", random_bytes(8, 1));
  write_npy(folder / "c/y.npy", "|u1", "(2,)", std::string(2, '\0'));
  const std::string unequal = error_of(config_of(format("path: [{}, {}]", at("a"), at("c"))));
  CHECK(unequal.find("c/x.npy") != std::string::npos);
  CHECK(unequal.find("2x2") != std::string::npos);
  write_npy(folder / "d/x.npy", "<f4", "(2, 2, 3)", raw(std::vector<float>(12)));
  write_npy(folder / "d/y.npy", "|u1", "(2,)", std::string(2, '\0'));
  CHECK(error_of(config_of(format("path: [{}, {}]", at("a"), at("d")))).find("float32") != std::string::npos);
}

TEST_CASE("tables in several files are one table: columns, words, classes and statistics are those of all lines") {
  const TempFolder folder;
  std::mt19937 random(3);
  std::vector<std::string> lines, reordered;
  for (int i = 0; i < 30; ++i) {
    const std::string colour = i < 20 ? (i % 2 == 0 ? "red" : "blue") : "green", size = std::to_string(random() % 100);
    const std::string kind = i % 3 == 0 ? "cat" : i < 10 ? "dog" : "ant";
    lines.push_back(size + "," + colour + "," + kind + "\n");
    reordered.push_back(kind + "," + size + "," + colour + "\n");
  }
  const auto text = [](const std::string& header, const std::vector<std::string>& all, int first, int end) {
    std::string joined = header;
    for (int i = first; i < end; ++i) joined += all[static_cast<std::size_t>(i)];
    return joined;
  };
  write_file(folder / "whole.csv", text("size,colour,kind\n", lines, 0, 30));
  write_file(folder / "a.csv", text("size,colour,kind\n", lines, 0, 11));
  write_file(folder / "b.csv", text("kind,size,colour\n", reordered, 11, 30));  // columns in another order
  const auto config_of = [&](const std::string& path) {
    return format("{{dataset: csv, target: kind, standardize: true, path: {0}, validation: {{path: {0}}}}}", path);
  };
  const std::string two = format("[{}, {}]", folder / "a.csv", folder / "b.csv");
  for (const SplitKind split : {SplitKind::training, SplitKind::validation}) {
    const Samples whole = samples_of(config_of(folder / "whole.csv"), split);
    CHECK(whole.class_names == std::vector<std::string>{"ant", "cat", "dog"});
    CHECK(whole.shape == Shape{5});
    CHECK(samples_of(config_of(two), split) == whole);
  }
  // An error names the file and the line in it.
  write_file(folder / "c.csv", "size,colour,kind\n1,red,cat\nlarge,red,cat\n");
  const std::string wrong = error_of(config_of(format("[{}, {}]", folder / "a.csv", folder / "c.csv")));
  CHECK(wrong.find("c.csv: line 3, column 'size'") != std::string::npos);
  write_file(folder / "d.csv", "size,colour\n1,red\n");
  CHECK(error_of(config_of(format("[{}, {}]", folder / "a.csv", folder / "d.csv"))).find("no column 'kind'") !=
        std::string::npos);
  const std::string missing =
      error_of(config_of(format("[{}, {}, {}]", folder / "x.csv", folder / "a.csv", folder / "y.csv")));
  CHECK(missing.find("x.csv") != std::string::npos);
  CHECK(missing.find("y.csv") != std::string::npos);
}

TEST_CASE("image folders in several locations: classes with the same name are merged") {
  const TempFolder folder;
  const auto image = [&](const std::string& name, unsigned seed) {
    write_file(folder / name, png(2, 2, 2, random_bytes(12, seed)));
  };
  unsigned seed = 0;
  for (const char* name : {"ant/1", "ant/2", "bee/1", "cat/1", "cat/3"}) {
    image(format("whole/{}.png", name), ++seed);
    image(format("{}/{}.png", seed == 2 || seed == 5 ? "b" : "a", name), seed);
  }
  const Samples whole = samples_of(format("{{dataset: image_folder, path: {}}}", folder / "whole"));
  CHECK(whole.targets == std::vector<float>{0, 0, 1, 2, 2});
  const std::string two = format("[{}, {}]", folder / "a", folder / "b");
  CHECK(samples_of(format("{{dataset: image_folder, path: {}}}", two)) == whole);
  CHECK(samples_of(format("{{dataset: image_folder, path: {}, validation: {{path: {}}}}}", folder / "whole", two),
                   SplitKind::validation)
            .targets == whole.targets);
  const std::string missing =
      error_of(format("{{dataset: image_folder, path: [{}, {}, {}]}}", folder / "x", folder / "a", folder / "y"));
  CHECK(missing.find(folder / "x") != std::string::npos);
  CHECK(missing.find(folder / "y") != std::string::npos);
}

TEST_CASE("records in a list of paths come in the order of the list") {
  const TempFolder folder;
  for (const std::string name : {"a", "b"}) {
    std::string records;
    for (int i = 0; i < 3; ++i) {
      const float value = static_cast<float>(i) + (name == "a" ? 0 : 10);
      records += tf_record(example({{"v", floats_feature({value, -value})}, {"label", ints_feature({i % 2})}}));
    }
    write_file(folder / (name + ".tfrecord"), records);
  }
  const auto values = [&](const std::string& first, const std::string& second) {
    return samples_of(format("{{dataset: tfrecord, features: [v], path: [{}, {}]}}", folder / first, folder / second))
        .inputs;
  };
  CHECK(values("b.tfrecord", "a.tfrecord") == std::vector<float>{10, -10, 11, -11, 12, -12, 0, 0, 1, -1, 2, -2});
  CHECK(values("a.*", "b.tfrecord")[2] == 1);
}

TEST_CASE("archives in a list of paths come in the order of the list") {
  const TempFolder folder;
  for (unsigned i = 0; i < 4; ++i) {
    const std::string sample =
        tar_member("s.png", png(2, 2, 2, random_bytes(12, i))) + tar_member("s.cls", std::to_string(i % 3)) + tar_end();
    write_file(folder / format("{}/{}.tar", i < 2 ? "a" : "b", i), sample);
    write_file(folder / format("whole/{}.tar", i), sample);
  }
  const auto read = [&](const std::string& path) {
    return samples_of(format("{{dataset: webdataset, path: {}, classes: 3}}", path));
  };
  const Samples whole = read(folder / "whole/*.tar");
  REQUIRE(whole.targets == std::vector<float>{0, 1, 2, 0});
  CHECK(read(format("[{}, {}]", folder / "a/*.tar", folder / "b/*.tar")) == whole);
  CHECK(read(format("[{}, {}]", folder / "b/*.tar", folder / "a/*.tar")).targets == std::vector<float>{2, 0, 0, 1});
}

TEST_CASE("lists of idx files and of CIFAR-10 folders are read one after the other") {
  const TempFolder folder;
  for (const std::string name : {"a", "b"}) {
    const unsigned seed = name == "a" ? 1 : 2, count = name == "a" ? 2 : 3;
    write_file(folder / (name + "/x"), idx('\x08', {count, 2, 3}, random_bytes(count * 6, seed)));
    write_file(folder / (name + "/y"), idx('\x08', {count}, std::string(count, static_cast<char>(seed))));
    for (int f = 0; f < 5; ++f) {
      const std::string record = std::string(1, static_cast<char>(f)) + random_bytes(3072, 10 * seed + f);
      write_file(folder / format("{}/data_batch_{}.bin", name, f + 1), record);
    }
  }
  const auto idx_of = [&](const std::string& x, const std::string& y) {
    return samples_of(format("{{dataset: idx, images: {}, labels: {}, classes: 3}}", x, y));
  };
  const auto cifar_of = [&](const std::string& path) {
    return samples_of(format("{{dataset: cifar10, path: {}}}", path));
  };
  const auto list = [&](const char* below) { return format("[{0}/a{1}, {0}/b{1}]", folder.text(), below); };
  const auto check_joined = [](Samples first, const Samples& second, const Samples& joined) {
    first.inputs.insert(first.inputs.end(), second.inputs.begin(), second.inputs.end());
    first.targets.insert(first.targets.end(), second.targets.begin(), second.targets.end());
    CHECK(joined.inputs == first.inputs);
    CHECK(joined.targets == first.targets);
  };
  check_joined(idx_of(folder / "a/x", folder / "a/y"), idx_of(folder / "b/x", folder / "b/y"),
               idx_of(list("/x"), list("/y")));
  check_joined(cifar_of(folder / "a"), cifar_of(folder / "b"), cifar_of(list("")));
}

TEST_CASE("images and their masks in a list of folders stay together") {
  const TempFolder folder;
  for (unsigned i = 0; i < 5; ++i) {
    for (const std::string below : {"whole", i < 2 ? "a" : "b"}) {
      std::string mask = random_bytes(4, 100 + i);
      for (char& pixel : mask) pixel = static_cast<char>(static_cast<unsigned char>(pixel) % 3);
      write_file(folder / format("{}/images/{}.png", below, i), png(2, 2, 2, random_bytes(12, i)));
      write_file(folder / format("{}/masks/{}.png", below, i), png(2, 2, 0, mask));
    }
  }
  const auto read = [&](const std::string& path) {
    return samples_of(format("{{dataset: segmentation_folder, path: {}, classes: 3}}", path));
  };
  const Samples whole = read(folder / "whole");
  REQUIRE(whole.targets.size() == 5 * 4);
  CHECK(read(format("[{}, {}]", folder / "a", folder / "b")) == whole);
}

TEST_CASE("a folder of images without classes can train an autoencoder") {
  const TempFolder folder;
  std::string pixels;
  for (unsigned i = 0; i < 4; ++i) {
    pixels += random_bytes(12, i);
    write_file(folder / format("{}/{}.png", i < 3 ? "flat" : "flat/below", i), png(2, 2, 2, random_bytes(12, i)));
  }
  std::filesystem::rename(folder / "flat/below/3.png", folder / "flat/3.png");
  std::filesystem::remove(folder / "flat/below");
  const std::string path = folder / "flat";
  const Samples found =
      samples_of(format("{{dataset: image_folder, path: {0}, label_mode: input, validation: {{path: {0}}}}}", path));
  CHECK(found.inputs == found.targets);
  REQUIRE(found.inputs.size() == pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) CHECK(found.inputs[i] == static_cast<unsigned char>(pixels[i]));
  CHECK(samples_of(format("{{dataset: image_folder, path: {}, label_mode: input, validation: {{split: 0.5}}}}", path))
            .weights.size() == 2);
  CHECK(error_of(format("{{dataset: image_folder, path: {}}}", path)).find("has no class folders") !=
        std::string::npos);
}

}  // namespace trainctl::test::several_paths_test
