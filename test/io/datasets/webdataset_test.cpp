// Tests the reader of WebDataset's archives, which are written here block by block.
#include "io/datasets/records/webdataset.h"

#include <fcntl.h>
#include <unistd.h>

#include "io/datasets/records/tar.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/records.h"

namespace trainctl::test::webdataset_test {
using Catch::Contains;

namespace {

std::string png_of(unsigned seed) { return png(3, 4, 2, random_bytes(36, seed)); }

std::string sample_of(const std::string& key, unsigned seed, const std::string& label) {
  return tar_member(key + ".png", png_of(seed)) + tar_member(key + ".cls", label);
}

std::string pixels_of(const Dataset& dataset, std::int64_t index) {
  Sample sample;
  dataset.read(index, sample);
  REQUIRE(sample.shape == Shape{3, 4, 3});
  return {static_cast<const char*>(sample.values), 36};
}

// Opens an archive of these bytes and reads all samples. Returns the error's text, or "no error".
std::string error_of(const std::string& bytes, const DeclaredInfo& declared = {}) {
  const TempFolder folder;
  write_file(folder / "a.tar", bytes);
  try {
    const auto dataset = webdataset(folder / "a.tar", {}, declared);
    Sample sample;
    for (std::int64_t i = 0; i < dataset->size(); ++i) dataset->read(i, sample);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_THAT(error.what(), Contains("a.tar"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("webdataset: samples of several archives are read in the order of the archives' names") {
  const TempFolder folder;
  write_file(folder / "t-000.tar", sample_of("d/one", 1, "2\n") + tar_member("d/two.json", "{}") +
                                       tar_member("d/two.cls", "0") +
                                       tar_member("d/two.JPG", jpeg(3, 4, 3, slope(3, 4, 3))) + tar_end());
  write_file(folder / "t-001.tar", tar_member("d", "", '5') + tar_member("d/README.md", "text") +
                                       tar_member("d/._one.png", "no image") + sample_of("d/one", 3, " 4 ") +
                                       std::string(8192, '\0'));
  write_file(folder / "t-010.tar", sample_of("x.y/z", 4, "1") + tar_end() + sample_of("next", 5, "3") + tar_end());
  write_file(folder / "notes.txt", "no archive");
  for (const std::string& path :
       {folder.text(), folder / "t-*.tar", folder / "t-0{00,01,10}.tar", folder / "t-0{1{0..0},0{0..1}}.tar"}) {
    INFO(path);
    const auto dataset = webdataset(path, {}, {});
    REQUIRE(dataset->size() == 5);
    CHECK(dataset->info().sample == Shape{3, 4, 3});
    CHECK(dataset->info().classes == 5);
    CHECK(dataset->info().target == Shape{});
    const std::int32_t labels[] = {2, 0, 4, 1, 3};
    for (std::int64_t i : {4, 0, 2, 3}) {
      CHECK(dataset->label(i) == labels[i]);
      CHECK(pixels_of(*dataset, i) == random_bytes(36, static_cast<unsigned>(i) + 1));
    }
    CHECK(dataset->label(1) == 0);
    CHECK(std::abs(static_cast<unsigned char>(pixels_of(*dataset, 1)[0]) - 40) <= 3);
    CHECK(dataset->name_of(3) == folder / "t-010.tar" + ":x.y/z.png");
  }
  CHECK(webdataset(folder / "t-{000..001}.tar", {}, {})->size() == 3);
  CHECK_THROWS_WITH(webdataset(folder / "t-{000..002}.tar", {}, {}), Contains("t-002.tar"));
}

TEST_CASE("webdataset: other extensions, large archives and images of one channel are read") {
  const TempFolder folder;
  write_file(folder / "a.tar", tar_member("1.input.png", png_of(1)) + tar_member("1.target.png", "other") +
                                   tar_member("1.id", "7") + tar_end());
  const auto dataset = webdataset(folder / "a.tar", {.image = {"input.png"}, .label = "id"}, {});
  CHECK(dataset->label(0) == 7);
  CHECK(pixels_of(*dataset, 0) == random_bytes(36, 1));
  CHECK(webdataset(folder / "a.tar", {.image = {"input.png"}, .label = "id"}, {.sample = Shape{3, 4, 1}})
            ->info()
            .sample == Shape{3, 4, 1});
  // A sample after a file of a gigabyte is found without reading that file. Its size is given in octal, in GNU's binary
  // encoding or in a pax header.
  for (int how = 0; how < 3; ++how) {
    const std::int64_t size = (1 << 30) + 100, blocks = (size + 511) / 512 * 512;
    std::string header = tar_member("0.bin", "");
    const auto write_checksum = [&] {
      header.replace(148, 8, "        ");
      int sum = 0;
      for (const char byte : header) sum += static_cast<unsigned char>(byte);
      header.replace(148, 8, format("{:06o}", sum) + std::string("\0 ", 2));
    };
    if (how == 0) header.replace(124, 11, format("{:011o}", size));
    if (how == 1)
      header.replace(124, 12, "\x80" + std::string(3, '\0') + big32(0) + big32(static_cast<std::uint32_t>(size)));
    write_checksum();
    const std::string before = how == 2 ? tar_member("pax", pax_record("size", std::to_string(size)), 'x') : "";
    write_file(folder / "b.tar", before + header);
    const std::string after = sample_of("1", 2, "3") + tar_end();
    const auto at = static_cast<std::int64_t>(before.size()) + 512 + blocks;
    REQUIRE(truncate((folder / "b.tar").c_str(), at) == 0);
    const int file = open((folder / "b.tar").c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(pwrite(file, after.data(), after.size(), at) == std::ssize(after));
    close(file);
    const auto large = webdataset(folder / "b.tar", {}, {});
    CHECK(large->size() == 1);
    CHECK(pixels_of(*large, 0) == random_bytes(36, 2));
  }
}

TEST_CASE("tar: names are read from ustar, pax and GNU headers") {
  const TempFolder folder;
  const std::string long_name = std::string(150, 'n') + "/1.png", unicode = "K\xc3\xa4tzchen/=1.png";
  write_file(folder / "a.tar",
             tar_member("1.png", "in a folder", '0', "deep/er") +
                 tar_member("PaxHeaders/x", pax_record("mtime", "1.5") + pax_record("path", unicode), 'x') +
                 tar_member("ascii", "by pax") + tar_member("././@LongLink", long_name + '\0', 'L') +
                 tar_member(long_name.substr(0, 100), "by GNU") + tar_member("plain", "", '0') +
                 tar_member("global", pax_record("comment", "git"), 'g') + tar_member("link", "", '2') +
                 tar_member("last", std::string(512, 'x')) + tar_end());
  std::vector<std::string> names, contents;
  for_each_member(folder / "a.tar", [&](Cursor& cursor, const TarMember& member) {
    names.push_back(member.name);
    CHECK(cursor.at() == member.offset);
    contents.emplace_back(static_cast<std::size_t>(member.size), ' ');
    CHECK(cursor.read(contents.back().data(), member.size));
  });
  CHECK(names == std::vector<std::string>{"deep/er/1.png", unicode, long_name, "plain", "last"});
  CHECK(contents == std::vector<std::string>{"in a folder", "by pax", "by GNU", "", std::string(512, 'x')});
}

TEST_CASE("webdataset: errors name archive and sample") {
  const std::string good = sample_of("1", 1, "0"), end = tar_end();
  CHECK(error_of(good + end) == "no error");
  CHECK_THAT(error_of(""), Contains("empty"));
  CHECK_THAT(error_of(gzip(good + end)), Contains("is compressed"));
  CHECK_THAT(error_of(std::string(600, 't')), Contains("may not be a tar archive"));
  CHECK_THAT(error_of(good), Contains("truncated: there is no end mark"));
  CHECK_THAT(error_of(good.substr(0, 700)), Contains("truncated"));
  CHECK_THAT(error_of(good + good.substr(0, 100)), Contains("truncated within a header"));
  CHECK_THAT(error_of(end), Contains("holds no samples"));
  std::string flipped = good + end;
  flipped[3] ^= 1;
  CHECK_THAT(error_of(flipped), Contains("at byte 0: the checksum of a header is wrong"));
  std::string huge = tar_member("1.png", "abc");
  const auto with_size = [&](const std::string& field) {
    std::string header = huge;
    header.replace(124, 12, field);
    header.replace(148, 8, "        ");
    int sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(header[i]);
    return header.replace(148, 8, format("{:06o}", sum) + std::string("\0 ", 2));
  };
  CHECK_THAT(error_of(with_size("77777777777 ") + end), Contains("a file has 8589934591 bytes"));
  CHECK_THAT(error_of(with_size("\x80" + std::string(11, '\x7f')) + end), Contains("impossible size"));
  CHECK_THAT(error_of(with_size(std::string(12, '\xff')) + end), Contains("impossible size"));
  CHECK_THAT(error_of(with_size("eightoctets ") + end), Contains("impossible size"));
  CHECK_THAT(error_of(tar_member("x", "99 path=short\n", 'x') + good + end), Contains("extended header is damaged"));
  CHECK_THAT(error_of(tar_member("x", "14 size=abcd\n ", 'x') + good + end), Contains("extended header is damaged"));
  CHECK_THAT(error_of(good + tar_member("2.png", png_of(2)) + end), Contains("the sample '2' has no file .cls"));
  CHECK_THAT(error_of(tar_member("2.cls", "1") + good + end),
             Contains("the sample '2' has no file .jpg, jpeg, png, webp, gif or bmp"));
  CHECK_THAT(error_of(good + tar_member("1.jpg", png_of(2)) + end),
             Contains("1.jpg: the sample already has another image"));
  CHECK_THAT(error_of(good + tar_member("1.cls", "1") + end), Contains("1.cls: the sample already has another label"));
  CHECK_THAT(error_of(sample_of("1", 1, "cat") + end), Contains("1.cls: 'cat' is not a class number"));
  CHECK_THAT(error_of(sample_of("1", 1, "") + end), Contains("1.cls: '' is not a class number"));
  CHECK_THAT(error_of(sample_of("1", 1, std::string(1000, '1')) + end), Contains("is not a class number"));
  CHECK_THAT(error_of(sample_of("1", 1, "-1") + end), Contains("label -1"));
  CHECK_THAT(error_of(good + sample_of("2", 2, "5") + end, {.classes = 2}), Contains("label 5"));
  CHECK_THAT(error_of(good + tar_member("2.jpg", "RIFF....WEBPVP8 ") + tar_member("2.cls", "1") + end),
             Contains("a.tar:2.jpg: cannot be decoded as WebP") && Contains("on_error: skip"));
  const TempFolder folder;
  CHECK_THROWS_WITH(webdataset(folder.text(), {}, {}), Contains("holds no files of this kind"));
  CHECK_THROWS_WITH(webdataset(folder / "nothing.tar", {}, {}), Contains("TRAINCTL_DATA"));
  CHECK_THROWS_AS(data_options("{dataset: webdataset, path: a, image: [.jpg]}"), ConfigError);
  CHECK_THROWS_AS(data_options("{dataset: webdataset, path: a, label: CLS}"), ConfigError);
}

TEST_CASE("webdataset: a config reads the data and skips a damaged image") {
  const TempFolder folder;
  write_file(folder / "train.tar", sample_of("1", 1, "0") + tar_member("2.png", "damaged") + tar_member("2.cls", "1") +
                                       sample_of("3", 3, "1") + tar_end());
  write_file(folder / "valid.tar", sample_of("9", 9, "1") + tar_end());
  const Data data(data_options(format("{{dataset: webdataset, path: {0}/train.tar, shuffle: false, workers: 0, "
                                      "on_error: skip, validation: {{path: '{0}/valid*.tar'}}}}",
                                      folder.text())),
                  1);
  CHECK(data.info().targets[0].classes == 2);
  CHECK(data.info().validation_samples == 1);
  const auto source = data.training(3, {}, {1, 0, 0});
  const Batch& batch = source->next();
  CHECK(batch.weights.as<float>()[0] == 1);
  CHECK(batch.weights.as<float>()[1] == 0);
  CHECK(batch.weights.as<float>()[2] == 1);
  CHECK(batch.targets[0].as<std::int32_t>()[2] == 1);
}

}  // namespace trainctl::test::webdataset_test
