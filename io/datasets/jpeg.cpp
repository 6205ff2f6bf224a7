// Decoding JPEG with libjpeg-turbo. Its errors leave through longjmp, so that no object with a destructor lives in
// between.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include "io/datasets/dataset.h"
#include "io/datasets/image_codec.h"

namespace trainctl {
namespace {

struct ErrorHandler {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_on_error(j_common_ptr info) {
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  handler->manager.format_message(info, handler->message);
  std::longjmp(handler->leave, 1);
}

// Warnings: of a damaged or truncated stream, since decoding would go on with grey. Others (level >= 0) are traces.
void stop_at_warning(j_common_ptr info, int level) {
  if (level < 0) leave_on_error(info);
}

// A decoder that is kept for a thread: making one costs as much as decoding a small image.
class Decoder {
 public:
  Decoder() {
    info_.err = jpeg_std_error(&handler_.manager);
    handler_.manager.error_exit = leave_on_error;
    handler_.manager.emit_message = stop_at_warning;
    jpeg_create_decompress(&info_);
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const char* message() const { return handler_.message; }
  std::int64_t height() const { return info_.output_height; }
  std::int64_t width() const { return info_.output_width; }

  // False: message() says what is wrong.
  bool begin(const std::byte* file, std::int64_t bytes, std::int64_t channels) {
    if (setjmp(handler_.leave)) return jpeg_abort_decompress(&info_), false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file), static_cast<unsigned long>(bytes));
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(&info_);
    return true;
  }
  bool finish(std::byte* pixels, std::int64_t row_bytes) {
    if (setjmp(handler_.leave)) return jpeg_abort_decompress(&info_), false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = reinterpret_cast<JSAMPROW>(pixels + static_cast<std::int64_t>(info_.output_scanline) * row_bytes);
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  void abandon() { jpeg_abort_decompress(&info_); }

 private:
  ErrorHandler handler_{};
  jpeg_decompress_struct info_{};
};

[[noreturn]] void undecodable(const std::string& path, const char* message) {
  data_error(path, std::string("cannot be decoded as JPEG: ") + message, "remove it, or set `on_error: skip`");
}

}  // namespace

Shape decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                  std::vector<std::byte>& pixels) {
  thread_local Decoder decoder;
  if (!decoder.begin(file, bytes, channels)) undecodable(path, decoder.message());
  const Shape shape{decoder.height(), decoder.width(), channels};
  try {
    check_image_size(shape[0], shape[1], path);
    pixels.resize(static_cast<std::size_t>(shape.count()));
  } catch (...) {
    decoder.abandon();
    throw;
  }
  if (!decoder.finish(pixels.data(), shape[1] * channels)) undecodable(path, decoder.message());
  return shape;
}

}  // namespace trainctl
