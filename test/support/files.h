// Shared by the tests of data: a temporary folder, writers of file formats that share no code with the readers, and
// configs.
#pragma once

#include <zlib.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "core/base/format.h"
#include "io/loader/options.h"
#include "io/yaml/yaml.h"

namespace trainctl::test {

class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / format("trainctl-data-{}-{}", getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string text() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string little(std::uint64_t value, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

// A member of a zip archive: its header with its bytes, and its entry in the directory.
struct ZippedMember {
  std::string local, central;

  // Deflated or stored, with or without NumPy's 64-bit sizes in the headers, at `offset` in the archive.
  ZippedMember(const std::string& name, const std::string& bytes, bool deflated, bool zip64, std::size_t offset) {
    std::string stored = bytes;
    if (deflated) {
      const std::string with_frame = gzip(bytes);
      stored = with_frame.substr(10, with_frame.size() - 18);
    }
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::uint64_t unknown = 0xFFFFFFFF;
    const std::string extra = little(1, 2) + little(16, 2) + little(bytes.size(), 8) + little(stored.size(), 8);
    const std::string sizes =
        zip64 ? little(unknown, 4) + little(unknown, 4) : little(stored.size(), 4) + little(bytes.size(), 4);
    const std::string common = little(45, 2) + little(0, 2) + little(deflated ? 8 : 0, 2) + little(0, 4) +
                               little(crc, 4) + sizes + little(name.size(), 2) + little(zip64 ? extra.size() : 0, 2);
    local = little(0x04034b50, 4) + common + name + (zip64 ? extra : "") + stored;
    central = little(0x02014b50, 4) + little(45, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) +
              little(0, 4) + little(offset, 4) + name + (zip64 ? extra : "");
  }
};

// A zip archive of members by name.
inline std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool deflated = false,
                       bool zip64 = false) {
  std::string local, central;
  for (const auto& [name, bytes] : members) {
    const ZippedMember member(name, bytes, deflated, zip64, local.size());
    local += member.local;
    central += member.central;
  }
  return local + central + little(0x06054b50, 4) + little(0, 4) + little(members.size(), 2) +
         little(members.size(), 2) + little(central.size(), 4) + little(local.size(), 4) + little(0, 2);
}
inline std::string zip(const std::string& name, const std::string& bytes, bool deflated, bool zip64) {
  return zip({{name, bytes}}, deflated, zip64);
}

inline std::string big32(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string idx(char type, const std::vector<std::uint32_t>& sizes, const std::string& values) {
  std::string bytes{'\0', '\0', type, static_cast<char>(sizes.size())};
  for (std::uint32_t size : sizes) bytes += big32(size);
  return bytes + values;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// An .npy file as NumPy writes it: version 1, with a header that is padded to 64 bytes.
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& values,
                       const std::string& fortran = "False") {
  std::string header = format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 255) +
         static_cast<char>(header.size() >> 8) + header + values;
}

// A PNG, chunk by chunk; color type 0 gray, 2 RGB, 3 palette indices, 6 RGBA. `pixels` are packed rows.
inline std::string png(std::uint32_t height, std::uint32_t width, int color_type, const std::string& pixels,
                       int bits = 8, const std::string& palette = "") {
  const auto chunk = [](const std::string& name, const std::string& body) {
    const std::string both = name + body;
    return big32(static_cast<std::uint32_t>(body.size())) + both +
           big32(static_cast<std::uint32_t>(
               crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size()))));
  };
  std::string rows;
  const std::size_t row = pixels.size() / height;
  for (std::uint32_t y = 0; y < height; ++y) rows += '\0' + pixels.substr(y * row, row);
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big32(width) + big32(height) + static_cast<char>(bits) + static_cast<char>(color_type) +
                           std::string(3, '\0')) +
         (palette.empty() ? "" : chunk("PLTE", palette)) + chunk("IDAT", packed) + chunk("IEND", "");
}

inline std::string random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Reads the section `data` of a config.
inline DataOptions data_options(const std::string& yaml) {
  Reader reader;
  const Node node = parse_yaml(yaml, "test.yaml", "/", reader);
  reader.throw_if_failed();
  DataOptions options;
  section_of<DataOptions>().read(node, reader, &options);
  reader.throw_if_failed();
  return options;
}

// Returns $TRAINCTL_DATA/`name`. If it does not exist, returns "" and prints why the test is skipped.
inline std::string real_data(const std::string& name) {
  const char* folder = std::getenv("TRAINCTL_DATA");
  const std::string path = folder ? std::string(folder) + "/" + name : "";
  if (!path.empty() && std::filesystem::exists(path)) return path;
  std::fprintf(stderr, "skipped: no %s in the folder that TRAINCTL_DATA names\n", name.c_str());
  return "";
}

}  // namespace trainctl::test
