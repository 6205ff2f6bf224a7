// Seeded fuzz tests: files of every format with bytes changed, cut out, repeated and cut off. Each file is read, or
// refused with a data error that names it. TRAINCTL_MUTATIONS sets the number of mutations of each file.
#include <filesystem>
#include <limits>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/mutation.h"
#include "test/support/records.h"
#include "test/support/wav.h"

namespace trainctl::test::mutation_test {
namespace {

// Whether the data has a class for each position.
bool contains_tokens(const std::string& yaml) { return yaml.find("dataset: text,") != std::string::npos; }

// True if the data is read, false if it is refused with an error that names `file`; any other error fails the test.
bool is_read(const std::string& yaml, const std::string& file) {
  DataUse use;
  use.targets[0].class_numbers = contains_tokens(yaml);
  try {
    const Data data(data_options(yaml), 1, use);
    const auto source = data.training(4, {}, {1, 0, 0});
    for (int i = 0; i < 4 && !source->next().last_of_epoch; ++i) {
    }
    return true;
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.kind() == ErrorKind::data && text.find(file) != std::string::npos) return false;
    if (error.kind() == ErrorKind::resource && text.find("no memory") != std::string::npos) return false;
    FAIL_CHECK("another error: " << text);
  } catch (const std::exception& error) {
    FAIL_CHECK("an exception other than Error: " << error.what());
  }
  return false;
}

// Writes each mutation of `whole` to `target` and reads the data of the config; errors must contain `names`.
void campaign(const std::string& whole, const std::string& target, const std::string& yaml, const std::string& names) {
  write_file(target, whole);
  REQUIRE(is_read(yaml, names));
  std::mt19937 random(static_cast<unsigned>(whole.size()) + 17);
  int read = 0;
  for (int i = 0; i < mutations(); ++i) {
    write_file(target, mutated(whole, random));
    INFO(target << ", mutation " << i);
    read += is_read(yaml, names);
  }
  CHECK(read < mutations());
}

}  // namespace

TEST_CASE("mutated files: idx, npy and npz files, plain and compressed, are read or refused") {
  const TempFolder folder;
  const std::string labels("\0\1\0\1\0\1\0\1", 8);
  write_file(folder / "good/labels", idx(8, {8}, labels));
  write_file(folder / "good/y.npy", npy("|u1", "(8,)", labels));
  const std::string root = folder.text(), good = folder / "good";
  const std::string images = idx(8, {8, 5, 5}, random_bytes(200, 1));
  const auto idx_config = [&](const std::string& x, const std::string& y) {
    return format("{{dataset: idx, images: {}/images, labels: {}/labels, workers: 0}}", x, y);
  };
  const auto npy_config = [&](const std::string& x, const std::string& y) {
    return format("{{dataset: npy, x: {}/x.npy, y: {}/y.npy, workers: 0}}", x, y);
  };
  campaign(images, folder / "images", idx_config(root, good), root);
  campaign(gzip(images), folder / "images", idx_config(root, good), root);
  write_file(folder / "good/images", images);
  campaign(idx(8, {8}, labels), folder / "labels", idx_config(good, root), root);
  std::vector<double> numbers(40);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.37 * static_cast<double>(i) - 5;
  const std::string x = npy("<f8", "(8, 5)", raw(numbers));
  campaign(x, folder / "x.npy", npy_config(root, good), root);
  campaign(gzip(x), folder / "x.npy", npy_config(root, good), root);
  write_file(folder / "good/x.npy", x);
  campaign(npy("<i4", "(8,)", raw(std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1})), folder / "y.npy",
           npy_config(good, root), root);
  campaign(read_whole(std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz"), folder / "a.npz",
           format("{{dataset: npy, path: {}, workers: 0}}", folder / "a.npz"), root);
}

TEST_CASE("mutated files: tables are read or refused") {
  const TempFolder folder;
  const std::string config = format("{{dataset: csv, path: {}, workers: 0}}", folder / "t.csv");
  campaign("a,\"b \"\"c\"\"\",y\n1,2.5,cat\n-3e2,\"4\",dog\n5,6,cat\n7,8,emu\n", folder / "t.csv", config,
           folder.text());
  campaign("a,b,y\n1,2.5,0\n-3e2,4,1\n5,6,2\n7,8,1\n", folder / "t.csv", config, folder.text());
  const std::string weighted = "a,w,y\n1,2.5,0\n-3e2,0,1\n5,1,2\n7,1e-3,1\n";
  write_file(folder / "weighted.csv", weighted);
  campaign(weighted, folder / "t.csv",
           format("{{dataset: csv, path: {0}/weighted.csv, weight: w, validation: {{path: {0}/t.csv}}, workers: 0}}",
                  folder.text()),
           folder.text());
  const std::string more =
      format("{{dataset: csv, path: {}, missing: mean, standardize: true, workers: 0}}", folder / "t.csv");
  campaign("k,a,y\nu,1,0.5\nv,,1\nu,NA,2\n\"v\nw\",4,3\n", folder / "t.csv", more, folder.text());
  const std::string table = "k,a,y\nu,1,0.5\nv,,1\nu,3,2\n";
  write_file(folder / "good.csv", table);
  campaign(table, folder / "t.csv",
           format("{{dataset: csv, path: {0}/good.csv, missing: zero, validation: {{path: {0}/t.csv}}, workers: 0}}",
                  folder.text()),
           folder.text());
}

TEST_CASE("mutated files: JPEG and PNG files are read or refused") {
  const TempFolder folder;
  write_file(folder / "b/1.png", png(16, 16, 2, random_bytes(768, 9)));
  const std::string yaml = format("{{dataset: image_folder, path: {}, workers: 0}}", folder.text());
  for (const std::string& whole : {jpeg(16, 16, 3, slope(16, 16, 3)), jpeg(16, 16, 1, slope(16, 16, 1)),
                                   jpeg(16, 16, 4, slope(16, 16, 4), JCS_YCCK), png(16, 16, 2, random_bytes(768, 1)),
                                   png(16, 16, 6, random_bytes(1024, 2)), png(16, 16, 0, random_bytes(256, 3))}) {
    campaign(whole, folder / "a/1.png", yaml, "/a/1.png");
  }
}

TEST_CASE("mutated files: WAV files are read or refused") {
  const TempFolder folder;
  write_file(folder / "b/1.wav", wav16({1, 2, 3}));
  for (const WavHeader& header : {WavHeader{}, WavHeader{2, 8000, 24, 1, true}, WavHeader{1, 16000, 32, 3}}) {
    write_file(folder / "b/1.wav", wav(header, std::string(24, '\1')));
    campaign(wav(header, std::string(48, '\1'), chunk("LIST", "abc")), folder / "a/1.wav",
             format("{{dataset: audio_classification, path: {}, sampling_rate: 16000, workers: 0}}", folder.text()),
             "/a/1.wav");
  }
}

TEST_CASE("mutated files: NIfTI volumes are read or refused") {
  const TempFolder folder;
  for (const char* name : {"scaled.nii.gz", "channels.nii"}) {
    const std::string volume = read_whole(std::string(TRAINCTL_SOURCE_DIR "/test/golden/nifti/") + name);
    write_file(folder / "b/1.nii", volume);
    campaign(volume, folder / "a/1.nii", format("{{dataset: nifti, path: {}, workers: 0}}", folder.text()), "/1.nii");
  }
}

TEST_CASE("mutated files: CIFAR's files are read or refused") {
  const TempFolder folder;
  std::string records;
  for (int i = 0; i < 3; ++i) records += static_cast<char>(3 * i) + random_bytes(3072, static_cast<unsigned>(i));
  for (int f = 1; f <= 5; ++f) write_file(folder / format("data_batch_{}.bin", f), records);
  const std::string names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  write_file(folder / "batches.meta.txt", names);
  const std::string yaml = format("{{dataset: cifar10, path: {}, workers: 0}}", folder.text());
  campaign(records, folder / "data_batch_3.bin", yaml, "/data_batch_3.bin");
  write_file(folder / "data_batch_3.bin", records);
  campaign(names, folder / "batches.meta.txt", yaml, "/batches.meta.txt");
}

TEST_CASE("mutated files: TFRecord files are read or refused") {
  const TempFolder folder;
  std::string images, numbers;
  for (int i = 0; i < 4; ++i) {
    images += tf_record(
        example({{"image/encoded", bytes_feature(png(16, 16, 2, random_bytes(768, static_cast<unsigned>(i))))},
                 {"image/class/label", ints_feature({i}, i % 2 == 0)}}));
    numbers += tf_record(example(
        {{"x", floats_feature({0.5f, 2}, i % 2 == 0)}, {"n", ints_feature({i, -5})}, {"y", ints_feature({i})}}));
  }
  const std::string file = folder / "a.tfrecord";
  for (const char* more : {"", ", on_error: skip"}) {
    campaign(images, file, format("{{dataset: tfrecord, path: {}, workers: 0{}}}", file, more), file);
    campaign(numbers, file, format("{{dataset: tfrecord, path: {}, features: [n, x], workers: 0{}}}", file, more),
             file);
  }
}

TEST_CASE("mutated files: TFRecord files with right checksums are read or refused") {
  const TempFolder folder;
  const std::string file = folder / "a.tfrecord",
                    yaml = format("{{dataset: tfrecord, path: {}, features: [n, x], workers: 0}}", file);
  const std::string data =
      example({{"x", floats_feature({0.5f, 2})}, {"n", ints_feature({7, -5}, false)}, {"y", ints_feature({1})}});
  std::mt19937 random(29);
  int read = 0;
  for (int i = 0; i < 4 * mutations(); ++i) {
    write_file(file, tf_record(mutated(data, random)) + tf_record(data));
    INFO("mutation " << i);
    read += is_read(yaml, file);
  }
  CHECK(read < 4 * mutations());
}

TEST_CASE("mutated files: WebDataset's archives are read or refused") {
  const TempFolder folder;
  std::string archive;
  for (int i = 0; i < 4; ++i) {
    const std::string key = "d/" + std::to_string(i),
                      image = png(16, 16, 2, random_bytes(768, static_cast<unsigned>(i)));
    if (i == 2) archive += tar_member("PaxHeaders/2", pax_record("path", key + ".png"), 'x');
    if (i == 3) archive += tar_member("././@LongLink", key + ".png", 'L');
    archive += tar_member(i < 2 ? key + ".png" : "short", image) + tar_member(key + ".cls", std::to_string(i));
  }
  const std::string file = folder / "a.tar";
  campaign(archive + tar_end(), file, format("{{dataset: webdataset, path: {}, workers: 0}}", file), file);
}

TEST_CASE("mutated files: lines of JSON, tables of texts and token files with an index are read or refused") {
  const TempFolder folder;
  const auto config = [&](const std::string& file, const std::string& more) {
    return format("{{dataset: text, path: {}, cache_path: {}/cache, positions: 4, workers: 0{}}}", folder / file,
                  folder.text(), more);
  };
  campaign("{\"text\": \"caf\\u00e9 \\\"x\\\"\", \"id\": [1, 2.5e3]}\n\n{\"id\": null, \"text\": \"second\"}\r\n",
           folder / "t.jsonl", config("t.jsonl", ""), folder / "t.jsonl");
  campaign("id,text\n1,\"one \"\"two\"\"\nthree\"\n2,four\n", folder / "t.csv", config("t.csv", ""), folder / "t.csv");
  std::vector<std::uint16_t> ids(40);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i * 7 % 50);
  const std::string index = std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(8, 1) + little(2, 8) + little(3, 8) +
                            raw(std::vector<std::int32_t>{15, 25}) + raw(std::vector<std::int64_t>{0, 30}) +
                            raw(std::vector<std::int64_t>{0, 1, 2});
  write_file(folder / "t.bin", raw(ids));
  campaign(index, folder / "t.idx", config("t.bin", ", classes: 50, packing: false"), folder / "t.");
  write_file(folder / "t.idx", index);
  campaign(raw(ids), folder / "t.bin", config("t.bin", ", classes: 50"), folder / "t.bin");
}

TEST_CASE("mutated files: texts with classes are read or refused") {
  const TempFolder folder;
  const auto config = [&](const std::string& file) {
    return format("{{dataset: text_classification, path: {}, positions: 3, workers: 0}}", folder / file);
  };
  campaign("{\"text\": \"one \\u00e9 two\", \"label\": \"a\"}\n{\"label\": \"b\", \"text\": \"\"}\n",
           folder / "t.jsonl", config("t.jsonl"), folder / "t.jsonl");
  campaign("text,label\n\"one \"\"two\"\"\",3\nthree,0\n", folder / "t.csv", config("t.csv"), folder / "t.csv");
}

TEST_CASE("mutated files: tables of images with texts are read or refused") {
  const TempFolder folder;
  write_file(folder / "a.png", png(16, 16, 0, random_bytes(256, 1)));
  campaign("image,text\na.png,\"b\"\"c\"\na.png,\xc3\xa9\n", folder / "t.csv",
           format("{{dataset: image_text, path: {}, workers: 0}}", folder / "t.csv"), folder.text());
}

TEST_CASE("mutated files: tables of pairs of images and their targets are read or refused") {
  const TempFolder folder;
  write_file(folder / "a.png", png(9, 7, 0, random_bytes(63, 1)));
  write_file(folder / "b.png", png(9, 7, 0, random_bytes(63, 2)));
  const std::string table = "image,target\na.png,b.png\n\"b.png\",a.png\n";
  const std::string yaml = format("{{dataset: image_pairs, path: {}, workers: 0}}", folder / "t.csv");
  campaign(table, folder / "t.csv", yaml, folder.text());
  write_file(folder / "t.csv", table);
  campaign(png(9, 7, 0, random_bytes(63, 2)), folder / "b.png", yaml, "/b.png");
}

TEST_CASE("mutated files: token files of the cache are read or made again") {
  const TempFolder folder;
  const std::string yaml = format("{{dataset: text, path: {}/t.txt, cache_path: {}/cache, positions: 4, workers: 0}}",
                                  folder.text(), folder.text());
  std::string text = random_bytes(300, 7);
  for (char& byte : text) byte = static_cast<char>(byte | 1);
  write_file(folder / "t.txt", text);
  REQUIRE(is_read(yaml, ""));
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
    if (entry.path().filename().string().starts_with("tokens-")) path = entry.path().string();
  }
  const std::string whole = read_whole(path);
  std::mt19937 random(23);
  for (int i = 0; i < mutations(); ++i) {
    write_file(path, mutated(whole, random));
    INFO("mutation " << i);
    is_read(yaml, folder.text());
  }
}

TEST_CASE("mutated files: masks are read or refused") {
  const TempFolder folder;
  for (int n = 0; n < 4; ++n) {
    for (const char* part : {"images", "masks"}) {
      write_file(folder / format("{}/{}.png", part, n), png(9, 7, 0, std::string(63, static_cast<char>(n % 2))));
    }
  }
  const std::string yaml = format("{{dataset: segmentation_folder, path: {}, classes: 4, workers: 0}}", folder.text());
  std::string pixels(63, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i % 4);
  campaign(png(9, 7, 0, pixels), folder / "masks/1.png", yaml, "/masks/1.png");
  campaign(png(9, 7, 3, pixels, 8, random_bytes(12, 1)), folder / "masks/1.png", yaml, "/masks/1.png");
  campaign(png(9, 7, 0, random_bytes(18, 2), 2), folder / "masks/1.png", yaml, "/masks/1.png");
}

}  // namespace trainctl::test::mutation_test
