// Decodes JPEG with libjpeg-turbo. libjpeg reports errors by longjmp: the frames that it jumps over must not hold
// objects with destructors.
#include <csetjmp>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

struct ErrorHandler {
  jpeg_error_mgr manager;  // the first member: libjpeg gets a pointer to it
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];  // the error that stopped decoding, otherwise the first harmless warning
};

// Whether a warning is about bytes that decoding skips or about a marker's unusual content: all pixels are then
// decoded.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_ICC;
}

[[noreturn]] void leave_on_error(j_common_ptr info) {
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  handler->manager.format_message(info, handler->message);
  std::longjmp(handler->leave, 1);
}

// Treats warnings (level < 0) that report a damaged or truncated stream as errors: otherwise decoding would continue
// with gray pixels. Keeps the first harmless warning, and ignores traces (level >= 0).
void stop_at_damage(j_common_ptr info, int level) {
  if (level >= 0) return;
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  if (!is_harmless(handler->manager.msg_code)) leave_on_error(info);
  if (handler->message[0] == '\0') handler->manager.format_message(info, handler->message);
}

// Limits the number of scans of a progressive image: each scan processes all pixels, though it may consist of a few
// bytes. Encoders write about ten scans.
void stop_at_scan(j_common_ptr info) {
  constexpr int max_scans = 200;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= max_scans) return;
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  std::snprintf(handler->message, sizeof handler->message, "it has more than %d scans", max_scans);
  std::longjmp(handler->leave, 1);
}

// Converts CMYK pixels to RGB or gray. With `complements` the values are the complements of the inks, as Adobe's
// programs write and mark them.
void convert_cmyk(const JSAMPLE* inks, std::int64_t count, std::int64_t channels, bool complements, JSAMPLE* to) {
  for (std::int64_t i = 0; i < count; ++i, inks += 4, to += channels) {
    int light[3];
    for (int c = 0; c < 3; ++c) {
      const int color = complements ? inks[c] : 255 - inks[c], black = complements ? inks[3] : 255 - inks[3];
      light[c] = (color * black + 127) / 255;
    }
    if (channels == 1) {
      to[0] = gray_of(light[0], light[1], light[2]);
    } else {
      for (int c = 0; c < 3; ++c) to[c] = static_cast<JSAMPLE>(light[c]);
    }
  }
}

// A decoder that a thread reuses: creating one takes as long as decoding a small image.
class Decoder {
 public:
  Decoder() {
    info_.err = jpeg_std_error(&handler_.manager);
    handler_.manager.error_exit = leave_on_error;
    handler_.manager.emit_message = stop_at_damage;
    jpeg_create_decompress(&info_);
    watch_.progress_monitor = stop_at_scan;
    info_.progress = &watch_;
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The error or warning; empty if there was none.
  const char* message() const { return handler_.message; }
  std::int64_t height() const { return info_.output_height; }
  std::int64_t width() const { return info_.output_width; }
  std::int64_t stored_height() const { return info_.image_height; }
  std::int64_t stored_width() const { return info_.image_width; }

  // Reads the header. Returns false if it is wrong; message() then says why.
  bool begin(const std::byte* file, std::int64_t bytes, std::int64_t channels,
             const std::optional<ResizeTarget>& resize) {
    handler_.message[0] = '\0';
    if (setjmp(handler_.leave)) return jpeg_abort_decompress(&info_), false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file), static_cast<unsigned long>(bytes));
    jpeg_read_header(&info_, TRUE);
    inks_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = inks_ ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.scale_denom = divisor(resize);
    jpeg_calc_output_dimensions(&info_);
    return true;
  }
  // Decodes the pixels. Returns false if the file is damaged; message() then says why.
  bool finish(std::byte* pixels, std::int64_t channels) {
    if (setjmp(handler_.leave)) return jpeg_abort_decompress(&info_), false;
    jpeg_start_decompress(&info_);
    // libjpeg frees this row with the image.
    const JSAMPARRAY inks = !inks_ ? nullptr
                                   : info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE,
                                                             info_.output_width * 4, 1);
    while (info_.output_scanline < info_.output_height) {
      auto* row = reinterpret_cast<JSAMPROW>(pixels + info_.output_scanline * width() * channels);
      jpeg_read_scanlines(&info_, inks_ ? inks : &row, 1);
      if (inks_) convert_cmyk(inks[0], width(), channels, info_.saw_Adobe_marker, row);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  void abandon() { jpeg_abort_decompress(&info_); }

 private:
  // The number by which decoding divides height and width: 1, 2, 4 or 8, for which there are fast transforms.
  unsigned divisor(const std::optional<ResizeTarget>& resize) const {
    if (!resize || stored_height() == 0 || stored_width() == 0) return 1;
    const Shape needed = resize->of({stored_height(), stored_width(), 1});
    unsigned divisor = 8;
    while (divisor > 1 && (stored_height() / divisor < needed[0] || stored_width() / divisor < needed[1])) divisor /= 2;
    return divisor;
  }

  ErrorHandler handler_{};
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr watch_{};
  bool inks_ = false;  // the file is CMYK or YCCK
};

// Returns memory for `bytes` bytes of pixels in the buffer, at an odd address (a vector's own address is even).
// libjpeg-turbo writes rows that are aligned to 32 bytes with non-temporal stores, which bypass the caches, so that the
// next reader waits for memory. At an odd address, rows of an even number of bytes are never aligned.
std::byte* at_odd_address(std::vector<std::byte>& buffer, std::int64_t bytes) {
  buffer.resize(static_cast<std::size_t>(bytes) + 1);
  return buffer.data() + 1;
}

[[noreturn]] void undecodable(const std::string& path, const char* message) {
  data_error(path, std::string("cannot be decoded as JPEG: ") + message);
}

}  // namespace

void decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 Sample& sample) {
  thread_local Decoder decoder;
  if (!decoder.begin(file, bytes, channels, sample.resize)) undecodable(path, decoder.message());
  std::byte* pixels = nullptr;
  try {
    check_image_size(decoder.stored_height(), decoder.stored_width(), path, bytes,
                     1024);  // a block of 64 pixels takes at least a bit
    sample.whole = {decoder.stored_height(), decoder.stored_width(), channels};
    sample.shape = {decoder.height(), decoder.width(), channels};
    pixels = at_odd_address(sample.buffer, sample.shape.count());
  } catch (...) {
    decoder.abandon();
    throw;
  }
  if (!decoder.finish(pixels, channels)) undecodable(path, decoder.message());
  sample.values = pixels;
  sample.warning = decoder.message();
}

}  // namespace trainctl
