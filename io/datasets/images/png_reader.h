// Reads the pixels of a PNG file that lies in memory, by libpng's rows: without any gamma or colour management.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>

// libpng's types, so that its header stays in the file that reads.
struct png_struct_def;
struct png_info_def;

namespace trainctl {

class PngReader {
 public:
  // The form in which pixels are read. stored: one byte for each gray value or place in the palette, as it is stored;
  // gray and rgb: 8 bits for each channel, where 16 bits lose the lower byte, fewer bits are spread to 0 to 255, a
  // palette gives its colours, and transparency is dropped. A file of colours has no gray form.
  enum class Form { stored, gray, rgb };

  // The bytes of the file must outlive the object.
  PngReader(const std::byte* file, std::int64_t bytes);
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // Reads the header. False where it is wrong; message() then says why.
  bool begin();
  // The following are valid after begin().
  std::int64_t height() const;
  std::int64_t width() const;
  int bits() const;            // of a channel or of a place in the palette
  bool is_gray() const;        // without colours, with transparency or without
  bool holds_numbers() const;  // gray values or places in a palette, and nothing else
  // Reads the pixels, row by row from the top; there is room for height() * width() * 1 (rgb: 3) bytes. False where the
  // file is damaged or ends too early; message() then says why.
  bool finish(std::byte* pixels, Form form);

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
