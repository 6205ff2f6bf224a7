// Reads the pixels of a PNG file in memory with libpng's row functions: without any gamma or colour management.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>

// libpng's types, declared here so that only png_reader.cpp includes its header.
struct png_struct_def;
struct png_info_def;

namespace trainctl {

class PngReader {
 public:
  // The encoding in which pixels are returned. stored: one byte for each gray value or palette index, as it is stored.
  // gray and rgb: 8 bits for each channel; 16 bits lose the lower byte, fewer bits are scaled to 0 to 255, palette
  // indices become colours, and transparency is dropped. `gray` is only for files without colours.
  enum class Encoding { stored, gray, rgb };

  // The bytes of the file must outlive the object.
  PngReader(const std::byte* file, std::int64_t bytes);
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the header. Returns false if it is wrong; message() then says why.
  bool begin();
  // The following functions may be called after begin().
  std::int64_t height() const;
  std::int64_t width() const;
  int bits() const;            // bits of a channel or of a palette index
  bool is_gray() const;        // whether pixels are gray values, with transparency or without
  bool holds_numbers() const;  // whether pixels are single numbers: gray values or palette indices
  // Reads the pixels, row by row from the top, into height() * width() * 1 (rgb: 3) bytes. Returns false if the file is
  // damaged or truncated; message() then says why.
  bool finish(std::byte* pixels, Encoding encoding);

  const char* message() const { return message_; }

 private:
  [[noreturn]] static void leave_on_error(png_struct_def* png, const char* message);
  static void read_bytes(png_struct_def* png, unsigned char* to, std::size_t count);

  png_struct_def* png_ = nullptr;
  png_info_def* info_ = nullptr;
  const std::byte* next_;
  std::size_t left_;
  char message_[128] = "no memory";
  std::jmp_buf leave_;
};

}  // namespace trainctl
