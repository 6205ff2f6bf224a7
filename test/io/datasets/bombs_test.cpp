// Tests that small files that claim far more data than they hold, or that need far more work than their size suggests,
// are refused before memory is allocated.
#include <zlib.h>

#include <ctime>

#include "io/datasets/arrays/zip.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/images/mask_codec.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"

namespace trainctl::test::bombs_test {
namespace {

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::byte* bytes_of_text(const std::string& text) { return reinterpret_cast<const std::byte*>(text.data()); }

// Returns the error of decoding a file, or "". Checks that a refused file does not make the decoder allocate memory of
// the size that the header claims.
std::string decoding(const std::string& file, bool mask = false) {
  Sample sample;
  std::vector<std::byte> pixels;
  const std::string why = refusal([&] {
    if (mask) {
      decode_mask(bytes_of_text(file), std::ssize(file), "bomb", pixels);
    } else {
      decode_sample(bytes_of_text(file), std::ssize(file), 3, "bomb", sample);
    }
  });
  if (!why.empty()) CHECK(sample.buffer.size() + pixels.size() < 1'000'000);
  return why;
}

std::string big_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes; i-- > 0;) text += static_cast<char>(value >> 8 * i);
  return text;
}

// The PNG with another size in its header, and with the checksum of that header.
std::string png_of_size(std::string file, std::uint32_t height, std::uint32_t width) {
  constexpr std::size_t header = 12, size = 17;  // the chunk's name and its content
  file.replace(header + 4, 8, big_endian(width, 4) + big_endian(height, 4));
  const auto sum = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(file.data() + header), size));
  return file.replace(header + size, 4, big_endian(sum, 4));
}

// The JPEG with another size in its frame header.
std::string jpeg_of_size(std::string file, std::uint32_t height, std::uint32_t width) {
  const std::size_t frame = file.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  return file.replace(frame + 5, 4, big_endian(height, 2) + big_endian(width, 2));
}

// A gray progressive JPEG with four scans for each of the first `coefficients` AC coefficients.
std::string jpeg_of_scans(int coefficients) {
  std::vector<jpeg_scan_info> scans{{1, {0}, 0, 0, 0, 0}};
  for (int k = 1; k <= coefficients; ++k) {
    for (int bit = 3; bit >= 0; --bit) scans.push_back({1, {0}, k, k, bit == 3 ? 0 : bit + 1, bit});
  }
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = info.image_width = 16;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  info.scan_info = scans.data();
  info.num_scans = static_cast<int>(scans.size());
  jpeg_start_compress(&info, TRUE);
  std::string row(16, 'x');
  for (int y = 0; y < 16; ++y) {
    auto* pixels = reinterpret_cast<JSAMPROW>(row.data());
    jpeg_write_scanlines(&info, &pixels, 1);
  }
  jpeg_finish_compress(&info);
  const std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return bytes;
}

}  // namespace

TEST_CASE("images whose headers claim more pixels than their bytes can hold are refused before decoding") {
  const std::string small = png(4, 4, 2, random_bytes(48, 1)), gray = png(4, 4, 0, random_bytes(16, 1));
  const std::string photo = jpeg(16, 16, 3, slope(16, 16, 3));
  CHECK(decoding(small).empty());
  CHECK(decoding(gray, true).empty());
  CHECK(decoding(photo).empty());
  CHECK(has(decoding(png_of_size(small, 16384, 16384)), "has a size of 16384x16384, which its"));
  CHECK(has(decoding(png_of_size(gray, 16384, 16384), true), "has a size of 16384x16384, which its"));
  CHECK(has(decoding(jpeg_of_size(photo, 16384, 16384)), "has a size of 16384x16384, which its"));
  CHECK(has(decoding(png_of_size(small, 1'000'000, 4)), "1000000x4"));
}

TEST_CASE("an image with the best compression of its format is still read") {
  Sample sample;
  const std::string white = png(4000, 4000, 0, std::string(16'000'000, '\xff'));
  CHECK(white.size() < 40'000);
  decode_sample(bytes_of_text(white), std::ssize(white), 3, "white.png", sample);
  CHECK(sample.shape == Shape{4000, 4000, 3});
  std::string flat = jpeg(4000, 4000, 1, std::string(16'000'000, '\x80'));
  decode_sample(bytes_of_text(flat), std::ssize(flat), 3, "flat.jpg", sample);
  CHECK(sample.shape == Shape{4000, 4000, 3});
}

TEST_CASE("a progressive JPEG with more than 200 scans is refused") {
  CHECK(decoding(jpeg_of_scans(10)).empty());
  CHECK(has(decoding(jpeg_of_scans(63)), "more than 200 scans"));
}

TEST_CASE("an archive of many members is listed in one pass over its bytes") {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 60'000; ++i) members.emplace_back(std::to_string(i), "x");
  const auto owner = std::make_shared<std::string>(zip(members));
  const Bytes archive({owner, reinterpret_cast<const std::byte*>(owner->data())}, std::ssize(*owner));
  const std::clock_t begin = std::clock();
  const std::vector<ZipMember> listed = list_zip(archive, "many.zip");
  CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);  // CPU time
  REQUIRE(listed.size() == members.size());
  CHECK(listed.back().name == "59999");
  CHECK(std::string(reinterpret_cast<const char*>(zip_bytes(archive, listed.back(), "z").in_memory()), 1) == "x");
}

TEST_CASE("a table with more than a million fields in a line is refused") {
  const TempFolder folder;
  write_file(folder / "t.csv", std::string(3'000'000, ',') + "\n");
  const std::string why =
      refusal([&] { const Data data(data_options("{dataset: csv, path: " + (folder / "t.csv") + "}"), 1); });
  CHECK(has(why, "line 1 has more than 1000000 fields"));
}

}  // namespace trainctl::test::bombs_test
