// Tests the data set of WAV files: encodings, folders and tables of classes, lengths and sampling rates, and files that
// are damaged.
#include <cmath>
#include <numbers>

#include "io/datasets/audio/resampling.h"
#include "io/datasets/options.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/wav.h"

namespace trainctl::test::audio_test {
namespace {

using Values = std::vector<float>;

std::shared_ptr<const DatasetOptions> options_of(const std::string& options) {
  Reader reader;
  Choice choice;
  const Node node = parse_yaml("{name: audio_classification" + options + "}", "test.yaml", "", reader);
  REQUIRE(read_choice(dataset_choices(), node, reader, choice));
  return std::dynamic_pointer_cast<const DatasetOptions>(choice.options);
}

std::shared_ptr<const Dataset> open(const std::string& path, const std::string& options = "",
                                    const DeclaredInfo& declared = {}) {
  DataLocation where;
  where.path.text = path;
  return options_of(options)->open(where, SplitKind::training, declared, 1);
}

std::string error_of(const std::string& path, const std::string& options = "", const DeclaredInfo& declared = {}) {
  try {
    const auto dataset = open(path, options, declared);
    Sample sample;
    for (std::int64_t i = 0; i < dataset->size(); ++i) dataset->read(i, sample);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "it was read";
}

Values values_of(const Dataset& dataset, std::int64_t index) {
  Sample sample;
  dataset.read(index, sample);
  CHECK(sample.shape == dataset.info().sample);
  CHECK(sample.dtype == DType::float32);
  const auto* values = static_cast<const float*>(sample.values);
  return {values, values + sample.shape.count()};
}

// A sine of amplitude 0.5 in 16 bits.
std::string tone(double hertz, int rate, int length) {
  std::vector<int> values;
  for (int i = 0; i < length; ++i) {
    values.push_back(static_cast<int>(std::lround(16384 * std::sin(2 * std::numbers::pi * hertz * i / rate))));
  }
  return wav16(values, 1, rate);
}

void says(const std::string& message, const std::string& text) {
  CAPTURE(message);
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("audio_classification: whole numbers become values from -1 to below 1, and floats are read as they are") {
  const TempFolder folder;
  const auto read = [&](const WavHeader& header, const std::string& stored, const std::string& before = "") {
    write_file(folder / "a/x.wav", wav(header, stored, before));
    return values_of(*open(folder.text()), 0);
  };
  const std::string bytes("\x00\x80\xff\x01", 4);
  CHECK(read({.bits = 8}, bytes) == Values{-1, 0, 127.0f / 128, -127.0f / 128});
  CHECK(read({.bits = 16}, little_endian(0x8000, 2) + little_endian(0x7fff, 2) + little_endian(0xffff, 2)) ==
        Values{-1, 32767.0f / 32768, -1.0f / 32768});
  CHECK(read({.bits = 24}, little_endian(0x800000, 3) + little_endian(0x7fffff, 3) + little_endian(0x000003, 3) +
                               little_endian(0xfffffe, 3)) ==
        Values{-1, 8388607.0f / 8388608, 3.0f / 8388608, -2.0f / 8388608});
  CHECK(read({.bits = 32}, little_endian(0x80000000, 4) + little_endian(0x40000000, 4)) == Values{-1, 0.5f});
  const Values floats{0.25f, -3.5f, 1e-8f};
  CHECK(read({.bits = 32, .tag = 3}, raw(floats)) == floats);
  CHECK(read({.bits = 64, .tag = 3}, raw(std::vector<double>{0.25, -3.5})) == Values{0.25f, -3.5f});
  CHECK(read({.bits = 16, .extensible = true}, little_endian(0x4000, 2)) == Values{0.5f});
  CHECK(read({.bits = 16}, little_endian(0x4000, 2), chunk("LIST", "odd")) == Values{0.5f});
  // Channels alternate.
  write_file(folder / "a/x.wav", wav16({16384, -16384, 8192, 0}, 2));
  const auto stereo = open(folder.text());
  CHECK(stereo->info().sample == Shape{2, 2});
  CHECK(values_of(*stereo, 0) == Values{0.5f, -0.5f, 0.25f, 0});
}

TEST_CASE("audio_classification: a folder of each class, with the length of the longest file") {
  const TempFolder folder, held_out;
  write_file(folder / "no/b.WAV", wav16({1024, 2048}));
  write_file(folder / "no/deep/c.wav", wav16({1024}));
  write_file(folder / "yes/a.wav", wav16({4096, 8192, 16384}));
  write_file(folder / "yes/a.mp3", "x");
  write_file(folder / "yes/.hidden.wav", "x");
  const auto dataset = open(folder.text());
  const DatasetInfo& info = dataset->info();
  CHECK(info.class_names == std::vector<std::string>{"no", "yes"});
  CHECK(info.classes == 2);
  CHECK(info.sample == Shape{3, 1});
  CHECK(info.sampling_rate == 16000);
  says(info.warning, "yes: 1 sound file is not read; only WAV files are");
  REQUIRE(dataset->size() == 3);
  CHECK(dataset->name_of(1) == folder / "no/deep/c.wav");
  CHECK(dataset->label(1) == 0);
  CHECK(dataset->label(2) == 1);
  CHECK(values_of(*dataset, 0) == Values{1024.0f / 32768, 2048.0f / 32768, 0});
  CHECK(values_of(*dataset, 2) == Values{0.125f, 0.25f, 0.5f});
  const auto shorter = open(folder.text(), ", output_sequence_length: 2");
  CHECK(values_of(*shorter, 2) == Values{0.125f, 0.25f});
  CHECK(shorter->info().fingerprint != info.fingerprint);

  // Held-out files have the classes and the length of the training split.
  write_file(held_out / "yes/a.wav", wav16({4096, 8192, 16384, 5}));
  const auto other = open(held_out.text(), "", {.training = &info});
  CHECK(other->label(0) == 1);
  CHECK(values_of(*other, 0) == Values{0.125f, 0.25f, 0.5f});
  write_file(held_out / "maybe/a.wav", wav16({1}));
  says(error_of(held_out.text(), "", {.training = &info}), "has the class 'maybe', which is not in the training split");
}

TEST_CASE("audio_classification: a table names files and their classes") {
  const TempFolder folder;
  write_file(folder / "sounds/a.wav", wav16({4096}));
  write_file(folder / "sounds/b.wav", wav16({8192}));
  write_file(folder / "t.csv", "label,audio,speaker\ncat,sounds/b.wav,1\ndog,sounds/a.wav,2\ncat,sounds/a.wav,2\n");
  const auto dataset = open(folder / "t.csv");
  CHECK(dataset->info().class_names == std::vector<std::string>{"cat", "dog"});
  REQUIRE(dataset->size() == 3);
  CHECK(values_of(*dataset, 0) == Values{0.25f});
  CHECK(dataset->label(1) == 1);
  CHECK(dataset->target_name_of(2) == folder / "t.csv, line 4");
  const auto speakers = open(folder / "t.csv", ", class_column: speaker");
  CHECK(speakers->info().class_names.empty());
  CHECK(speakers->label(0) == 1);
  CHECK(speakers->info().classes == 3);
  says(error_of(folder / "t.csv", ", class_column: speakr"), "has no column 'speakr'");
  write_file(folder / "t.csv", "label,audio\ncat,sounds/c.wav\n");
  says(error_of(folder / "t.csv"), "line 2: there is no file");
  write_file(folder / "t.csv", "label,audio\n,sounds/a.wav\n");
  says(error_of(folder / "t.csv"), "line 2: the column 'label' is empty");

  // For prediction, a file, a folder or a table without classes.
  const auto options = options_of("");
  const DatasetInfo training = dataset->info();
  write_file(folder / "new.csv", "audio\nsounds/b.wav\n");
  const auto inputs =
      options->open_inputs({folder / "sounds", folder / "new.csv", folder / "sounds/a.wav"}, {.training = &training});
  REQUIRE(inputs->size() == 4);
  CHECK(inputs->info().target == Shape{0});
  CHECK(inputs->name_of(2) == folder / "sounds/b.wav");
  CHECK(values_of(*inputs, 3) == Values{0.125f});
}

TEST_CASE("audio_classification: sound of another sampling rate is converted") {
  const TempFolder folder;
  write_file(folder / "a/44.wav", tone(440, 44100, 44100));
  write_file(folder / "a/8.wav", tone(440, 8000, 4000));
  says(error_of(folder.text()), "8.wav: has 8000 values per second, but 44100 are expected, as in");
  const auto dataset = open(folder.text(), ", sampling_rate: 16000");
  CHECK(dataset->info().sample == Shape{16000, 1});
  CHECK(dataset->info().sampling_rate == 16000);
  for (const std::int64_t index : {0, 1}) {
    const Values values = values_of(*dataset, index);
    const std::size_t end = index == 0 ? 16000 : 8000;
    double largest = 0;
    for (std::size_t i = 40; i + 40 < end; ++i) {
      const double expected = 0.5 * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / 16000);
      largest = std::max(largest, std::abs(double{values[i]} - expected));
    }
    CHECK(largest < 2e-3);
    for (std::size_t i = end; i < 16000; ++i) REQUIRE(values[i] == 0);
  }
  // The beginning of a long file is the same as that of the whole file.
  const Values whole = values_of(*dataset, 0);
  const Values begin = values_of(*open(folder.text(), ", sampling_rate: 16000, output_sequence_length: 777"), 0);
  CHECK(begin == Values(whole.begin(), whole.begin() + 777));
}

TEST_CASE("Resampling removes frequencies above half the new rate, and keeps channels apart") {
  std::vector<float> x(2 * 48000), y(2 * 16000);
  for (std::size_t i = 0; i < 48000; ++i) {
    const double t = static_cast<double>(i) / 48000;
    x[2 * i] = static_cast<float>(std::sin(2 * std::numbers::pi * 11000 * t));
    x[2 * i + 1] = static_cast<float>(std::cos(2 * std::numbers::pi * 1000 * t));
  }
  const Resampling resampling(48000, 16000);
  CHECK(resampling.length_after(48000) == 16000);
  CHECK(resampling.length_after(48001) == 16001);
  resampling.apply(x.data(), 48000, 2, y.data(), 16000);
  for (std::size_t i = 100; i < 15900; ++i) {
    REQUIRE(std::abs(y[2 * i]) < 0.01);
    REQUIRE(y[2 * i + 1] == Approx(std::cos(2 * std::numbers::pi * static_cast<double>(i) / 16)).margin(5e-3));
  }
}

TEST_CASE("audio_classification: sound that was written to a pipe ends with the file") {
  const TempFolder folder;
  std::string bytes = wav16({100, 200, 300, 400});
  write_file(folder / "a/x.wav", bytes.replace(40, 4, little_endian(0xffffffff, 4)) + "o");
  CHECK(values_of(*open(folder.text()), 0) ==
        std::vector<float>{100 / 32768.0f, 200 / 32768.0f, 300 / 32768.0f, 400 / 32768.0f});
}

TEST_CASE("audio_classification: damaged files are refused with what is wrong") {
  const TempFolder folder;
  const auto error = [&](const std::string& bytes) {
    write_file(folder / "a/x.wav", bytes);
    const std::string message = error_of(folder.text());
    says(message, "x.wav");
    return message;
  };
  const std::string whole = wav16({1, 2, 3, 4});
  const std::size_t content = 8;  // bytes of values at the end
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string changed = whole;
    return changed.replace(at, bytes.size(), bytes);
  };
  says(error(""), "is not a WAV file");
  says(error("RIFX" + whole.substr(4)), "is not a WAV file");
  says(error(whole.substr(0, 20)), "but the file has only 0 more");
  says(error(whole.substr(0, 12)), "has no chunk 'fmt '");
  says(error(whole.substr(0, 36)), "has no chunk 'data'");
  says(error(whole.substr(0, whole.size() - 3)),
       "its header states 8 bytes from byte 44 on, but the file has only 5 more");
  says(error(with(40, little_endian(0xfffffffe, 4))), "its header states 4294967294 bytes");
  says(error(with(40, little_endian(7, 4))),
       "its header states 7 bytes of sound, which is not a multiple of 2 above 0");
  says(error(with(40, little_endian(0, 4))), "0 bytes of sound");
  says(error(with(22, little_endian(0, 2))), "its header states 0 channels");
  says(error(with(24, little_endian(0, 4))), "its header states 0 samples per second");
  says(error(with(32, little_endian(5, 2))), "its header states blocks of 5 bytes, but 1 channel of 16 bits need 2");
  says(error(with(34, little_endian(12, 2))), "the WAV encoding 1 with 12 bits");
  says(error(with(20, little_endian(85, 2))), "the WAV encoding 85 with 16 bits");
  says(error(with(12, "junk")), "has no chunk 'fmt ' before its chunk 'data'");
  CHECK(content + 44 == whole.size());

  write_file(folder / "a/x.wav", whole);
  write_file(folder / "a/y.wav", wav16({1, 2}, 2));
  says(error_of(folder.text()), "y.wav: has 2 channels, but 1 are expected, as in");
  write_file(folder / "a/y.wav", "x");
  const auto rest = open(folder.text(), "", {.skip_unreadable = true});
  CHECK(values_of(*rest, 0).size() == 4);
  const TempFolder empty;
  write_file(empty / "a/x.mp3", "x");
  says(error_of(empty.text()), "has no WAV files: 1 sound file is not read");
}

}  // namespace trainctl::test::audio_test
