// Tests unusual array files that NumPy and gzip accept, names of MNIST's files, and data without targets.
#include <algorithm>
#include <cmath>
#include <limits>

#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::array_files_test {
namespace {

std::vector<float> values_of(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.shape.count()));
  convert(array, 0, array.shape.count(), values.data());
  return values;
}

std::string floats(const std::vector<float>& values) { return npy("<f4", format("({},)", values.size()), raw(values)); }

}  // namespace

TEST_CASE("array files: of two npz members with the same name the last is read, as in NumPy") {
  const TempFolder folder;
  const std::string path = folder / "a.npz";
  write_file(path, zip({{"x.npy", floats({1, 2})}, {"y.npy", floats({3})}, {"x.npy", floats({4, 5, 6})}}));
  CHECK(values_of(read_npz(path, "x")) == std::vector<float>{4, 5, 6});
  CHECK(values_of(read_npz(path, "X")) == std::vector<float>{4, 5, 6});
  CHECK(values_of(read_npz(path, "y")) == std::vector<float>{3});
}

TEST_CASE("array files: elements that are no numbers are refused with what stores them as numbers") {
  const TempFolder folder;
  const auto error = [&](const std::string& header) {
    write_file(folder / "x.npy", header);
    try {
      read_npy(folder / "x.npy");
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  using Catch::Contains;
  for (const char* type : {"<U3", "|S3"}) CHECK_THAT(error(npy(type, "(2,)", "abcdef")), Contains("return_inverse"));
  CHECK_THAT(error(npy("|O", "(2,)", "abcdef")), Contains("type '|O'") && Contains("dtype='float32'"));
  CHECK_THAT(error(npy("<M8[D]", "(2,)", "abcdef")), Contains("timedelta64"));
  CHECK_THAT(error(npy("<c8", "(2,)", "abcdef")), Contains("x.real, x.imag"));
  CHECK_THAT(error(npy("<f16", "(2,)", "abcdef")), Contains("save it as float16, float32"));
  std::string fields = npy("@", "(2,)", "abcdef");
  const std::string quoted = "'@'", list = "[('a', '<i4'), ('b', '<f4')]";
  fields.replace(fields.find(quoted), quoted.size(), list);
  fields.erase(fields.find("  ", 20), list.size() - quoted.size());
  CHECK_THAT(error(fields), Contains("is a structured array") && Contains("structured_to_unstructured"));
}

TEST_CASE("array files: .npy files of other versions than 1.0, 2.0 and 3.0 are refused") {
  const TempFolder folder;
  const std::string one = floats({1, 2});
  for (const char version : {'\0', '\4', '\x09', '\xff'}) {
    std::string other = one;
    other[6] = version;
    write_file(folder / "x.npy", other);
    CHECK_THROWS_WITH(read_npy(folder / "x.npy"), Catch::Contains("x.npy: is an .npy file of version") &&
                                                      Catch::Contains("versions 1.0, 2.0 and 3.0 are supported"));
  }
  for (const char version : {'\2', '\3'}) {  // the header's length has four bytes
    std::string other =
        one.substr(0, 6) + version + std::string(1, '\0') + one.substr(8, 2) + std::string(2, '\0') + one.substr(10);
    write_file(folder / "x.npy", other);
    CHECK(values_of(read_npy(folder / "x.npy")) == std::vector<float>{1, 2});
  }
}

TEST_CASE("array files: a float64 value beyond the range of float32 is refused with its index") {
  const TempFolder folder;
  std::vector<double> values{0.5, -1.25, 3e38, 2, 1e300, 7};
  const auto refused = [&](const std::string& type, const std::string& bytes) {
    write_file(folder / "x.npy", npy(type, "(3, 2)", bytes));
    CHECK_THROWS_WITH(values_of(read_npy(folder / "x.npy")),
                      Catch::Contains("x.npy: holds 1e+300 at index [2, 0], which is beyond the range of float32"));
  };
  refused("<f8", raw(values));
  std::string swapped = raw(values);
  for (std::size_t i = 0; i < swapped.size(); i += 8) std::reverse(swapped.data() + i, swapped.data() + i + 8);
  refused(">f8", swapped);
  values[4] = std::numeric_limits<double>::infinity();  // infinity stays, and is refused where samples are read
  write_file(folder / "x.npy", npy("<f8", "(3, 2)", raw(values)));
  CHECK(std::isinf(values_of(read_npy(folder / "x.npy"))[4]));
}

TEST_CASE("array files: a warning names the first target that float32 rounds") {
  const TempFolder folder;
  const auto warning = [&](const std::string& type, const std::string& shape, const std::string& bytes) {
    write_file(folder / "x.npy", npy("<f4", "(3, 1)", raw(std::vector<float>{0.5, -1, 2})));
    write_file(folder / "y.npy", npy(type, shape, bytes));
    DeclaredInfo declared;
    declared.use.target_values = true;
    return array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "y.npy"), declared)->info().warning;
  };
  using Signed = std::vector<std::int64_t>;
  constexpr std::int64_t limit = 1 << 24;
  CHECK(warning("<i8", "(3,)", raw(Signed{limit, -limit, limit + 2})).empty());
  CHECK(
      warning("<i8", "(3,)", raw(Signed{std::int64_t{1} << 62, 0, std::numeric_limits<std::int64_t>::min()})).empty());
  CHECK_THAT(warning("<i8", "(3,)", raw(Signed{limit, limit + 1, limit + 3})),
             Catch::EndsWith("y.npy, sample 1: the target 16777217 is 16777216 as float32, which does not have all "
                             "whole numbers above 16777216: subtract a constant from the targets"));
  CHECK_THAT(warning("<i8", "(3, 2)", raw(Signed{1, 2, 3, 4, 5, -1764590461})),
             Catch::Contains("y.npy, sample 2: the target -1764590461 is -1764590464 as float32"));
  CHECK_THAT(warning("<i4", "(3,)", raw(std::vector<std::int32_t>{33554435, 1, 2})),
             Catch::Contains("y.npy, sample 0: the target 33554435 is 33554436 as float32"));
  CHECK_THAT(warning("<u8", "(3,)", raw(std::vector<std::uint64_t>{7, 9, (std::uint64_t{1} << 63) + 1})),
             Catch::Contains("sample 2: the target 9223372036854775809 is 9223372036854775808 as float32"));
  // Classes are whole numbers and stay so.
  write_file(folder / "y.npy", npy("<i8", "(3,)", raw(Signed{limit, limit + 1, limit + 3})));
  const auto classes = array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "y.npy"), {});
  CHECK(classes->info().warning.empty());
  CHECK(classes->label(1) == limit + 1);
}

TEST_CASE("array files: float16 arrays are read as samples, targets and weights, with NumPy's values") {
  const TempFolder folder;
  // numpy.array([1, -2, 0.1, 65504, 6.1035e-05, 5.96e-08, -0.0, 0.333, inf], '<f2').tobytes(), and .astype('f4') of it
  const std::vector<std::uint16_t> bits{0x3c00, 0xc000, 0x2e66, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3554, 0x7c00};
  const std::vector<float> values{1,
                                  -2,
                                  0.0999755859375f,
                                  65504,
                                  0.00006103515625f,
                                  0x1p-24f,
                                  -0.,
                                  0.3330078125f,
                                  std::numeric_limits<float>::infinity()};
  write_file(folder / "x.npy", npy("<f2", "(9,)", raw(bits)));
  CHECK(values_of(read_npy(folder / "x.npy")) == values);
  std::vector<std::uint16_t> swapped;
  for (const std::uint16_t one : bits) swapped.push_back(static_cast<std::uint16_t>(one << 8 | one >> 8));
  write_file(folder / "x.npy", npy(">f2", "(9,)", raw(swapped)));
  CHECK(values_of(read_npy(folder / "x.npy")) == values);

  write_file(folder / "x.npy", npy("<f2", "(2, 2)", raw(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3554, 0})));
  write_file(folder / "y.npy", npy("<f2", "(2, 1)", raw(std::vector<std::uint16_t>{0x2e66, 0x7bff})));
  write_file(folder / "w.npy", npy("<f2", "(2,)", raw(std::vector<std::uint16_t>{0x3800, 0x4000})));
  const auto data =
      array_dataset(read_npy(folder / "x.npy"), read_npy(folder / "y.npy"), {}, {}, read_npy(folder / "w.npy"));
  CHECK(data->info().dtype == DType::float32);
  CHECK(data->info().classes == 0);
  Sample sample;
  data->read(1, sample);
  CHECK(static_cast<const float*>(sample.values)[0] == 0.3330078125f);
  CHECK(sample.target[0] == 65504);
  float weight = 0;
  data->read_weights(1, &weight);
  CHECK(weight == 2);
}

TEST_CASE("array files: arrays in Fortran order have the values of arrays in C order") {
  const TempFolder folder;
  // The bytes that numpy.save writes for numpy.asfortranarray([[0, 1, 2], [3, 4, 5]]).
  const std::vector<std::int32_t> stored{0, 3, 1, 4, 2, 5};
  write_file(folder / "x.npy", npy("<i4", "(2, 3)", raw(stored), "True"));
  CHECK(values_of(read_npy(folder / "x.npy")) == std::vector<float>{0, 1, 2, 3, 4, 5});

  // Larger than a piece that is read at a time, with dimensions of one element.
  const std::vector<std::vector<std::size_t>> shapes{{701, 3, 1, 213}, {5, 4, 3, 2}, {1, 7}, {7, 1, 1}, {3, 400001}};
  for (const auto& [type, bytes] :
       {std::pair<std::string, std::size_t>{"|u1", 1}, {"<f2", 2}, {">i4", 4}, {"<i8", 8}}) {
    for (const std::vector<std::size_t>& shape : shapes) {
      std::size_t count = 1;
      std::string sizes;
      for (const std::size_t size : shape) count *= size, sizes += format("{}, ", size);
      CAPTURE(type, sizes);
      const std::string in_c = random_bytes(count * bytes, static_cast<unsigned>(count));
      std::string in_fortran(in_c.size(), '\0');
      for (std::size_t i = 0; i < count; ++i) {
        std::size_t rest = i, at = 0, stride = count;
        // The index of dimension d counts count / (the product of the sizes up to d) in C order.
        std::size_t step = 1;
        for (const std::size_t size : shape) {
          stride /= size;
          at += rest / stride * step;
          rest %= stride;
          step *= size;
        }
        in_c.copy(in_fortran.data() + at * bytes, bytes, i * bytes);
      }
      const auto bytes_in = [](const Array& array) {
        std::string all(static_cast<std::size_t>(array.bytes.size()), '\0');
        array.bytes.read(0, all.data(), array.bytes.size());
        return all;
      };
      const std::string file = npy(type, format("({})", sizes), in_fortran, "True");
      write_file(folder / "f.npy", file);
      CHECK((bytes_in(read_npy(folder / "f.npy")) == in_c));
      write_file(folder / "f.npy.gz", gzip(file));
      CHECK((bytes_in(read_npy(folder / "f.npy.gz")) == in_c));
      for (const bool deflated : {false, true}) {
        write_file(folder / "f.npz", zip("x.npy", file, deflated, true));
        CHECK((bytes_in(read_npz(folder / "f.npz", "x")) == in_c));
      }
    }
  }
  write_file(folder / "none.npy", npy("<f4", "(0, 3)", "", "True"));
  CHECK(read_npy(folder / "none.npy").bytes.size() == 0);
}

TEST_CASE("array files: a gzip file of several members is read whole") {
  const TempFolder folder;
  const std::string pixels = random_bytes(300'000, 4), file = idx(8, {1000, 300}, pixels);
  const std::string members =
      gzip(file.substr(0, 3)) + gzip("") + gzip(file.substr(3, 70'000)) + gzip(file.substr(70'003));
  for (const std::string& end : {std::string(), std::string(5, '\0')}) {  // with zeros that pad the file to a block
    write_file(folder / "x.gz", members + end);
    const Array array = read_idx(folder / "x.gz");
    REQUIRE(array.bytes.size() == 300'000);
    CHECK(std::memcmp(array.bytes.in_memory(), pixels.data(), pixels.size()) == 0);
  }
  write_file(folder / "x.gz", members.substr(0, members.size() - 9));
  CHECK_THROWS_WITH(read_idx(folder / "x.gz"), Catch::Contains("truncated"));
  write_file(folder / "x.gz", gzip(file) + gzip("more"));
  CHECK_THROWS_WITH(read_idx(folder / "x.gz"), Catch::Contains("holds more than"));
}

TEST_CASE("array files: MNIST's files are found with a dot in their names, and in folders with the same names") {
  const TempFolder folder;
  const std::string images = idx(8, {4, 2, 2}, random_bytes(16, 1)), labels = idx(8, {4}, std::string("\0\1\2\1", 4));
  write_file(folder / "train-images.idx3-ubyte", images);
  write_file(folder / "train-labels.idx1-ubyte.gz", gzip(labels));
  write_file(folder / "t10k-images-idx3-ubyte/t10k-images-idx3-ubyte", images);  // as on Kaggle
  write_file(folder / "t10k-labels-idx1-ubyte/t10k-labels.idx1-ubyte", labels);
  for (const char* prefix : {"train", "t10k"}) {
    const IdxFiles files = find_mnist_files(folder.text(), prefix);
    CHECK(idx_dataset(files.images, files.labels, {})->size() == 4);
  }
  CHECK(mnist_file(folder.text(), "nothing-idx3-ubyte").empty());
}

TEST_CASE("array files: label_mode: input, and outputs without a loss, need no targets") {
  const TempFolder folder;
  write_file(folder / "a/x.npy", npy("<f4", "(2, 3)", raw(std::vector<float>{1, 2, 3, 4, 5, 6})));
  write_file(folder / "a.npz", zip({{"x.npy", read_whole(folder / "a/x.npy")}}));
  write_file(folder / "w.npy", floats({1, 3}));
  write_file(folder / "i/train-images-idx3-ubyte", idx(8, {2, 1, 3}, "\1\2\3\4\5\6"));
  write_file(folder / "r.tfrecord", tf_record(example({{"a", floats_feature({1, 2, 3})}})) +
                                        tf_record(example({{"a", floats_feature({4, 5, 6})}})));
  const std::string image = png(1, 1, 2, "\1\2\3"), other = png(1, 1, 2, "\4\5\6");
  write_file(folder / "d.tar", tar_member("0.png", image) + tar_member("1.png", other) + tar_end());
  const std::string keys[] = {format("dataset: npy, path: {}/a", folder.text()),
                              format("dataset: npy, path: {}/a.npz", folder.text()),
                              format("dataset: npy, x: {}/a/x.npy", folder.text()),
                              format("dataset: idx, path: {}/i", folder.text()),
                              format("dataset: idx, images: {}/i/train-images-idx3-ubyte", folder.text()),
                              format("dataset: tfrecord, path: {}/r.tfrecord, features: [a]", folder.text()),
                              format("dataset: webdataset, path: {}/d.tar", folder.text())};
  for (const std::string& key : keys) {
    INFO(key);
    const Data data(data_options("{" + key + ", label_mode: input, workers: 0, shuffle: false}"), 1);
    const auto source = data.training(2, {}, {1, 0, 0});
    const Batch& batch = source->next();
    for (int i = 0; i < 6; ++i) {
      CHECK(batch.inputs[0].as<float>()[i] == static_cast<float>(i + 1));
      CHECK(batch.targets[0].as<float>()[i] == static_cast<float>(i + 1));
    }
  }
  DataUse without_targets;
  without_targets.targets[0].unused = true;
  for (const std::string& key : keys) {
    INFO(key);
    const Data data(data_options("{" + key + ", workers: 0, shuffle: false}"), 1, without_targets);
    CHECK(data.info().targets[0].classes == 0);
    CHECK(data.info().targets[0].shape.rank() == 0);
    const auto source = data.training(2, {}, {1, 0, 0});
    const View x = source->next().inputs[0];
    CHECK((x.dtype == DType::uint8 ? static_cast<float>(x.as<std::uint8_t>()[5]) : x.as<float>()[5]) == 6);
  }
  const Data weighted(
      data_options("{" + keys[2] +
                   format(", weights: {}, label_mode: input, workers: 0, shuffle: false}}", folder / "w.npy")),
      1);
  CHECK(weighted.training(2, {}, {1, 0, 0})->next().weights.as<float>()[1] == 3);
}

}  // namespace trainctl::test::array_files_test
