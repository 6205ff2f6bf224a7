// Decodes the first frame of a GIF with giflib.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

struct GifBytes {
  const std::byte* next;
  std::int64_t left;
};

int read_gif(GifFileType* gif, GifByteType* to, int count) {
  auto* bytes = static_cast<GifBytes*>(gif->UserData);
  const std::int64_t given = std::min<std::int64_t>(count, bytes->left);
  std::memcpy(to, bytes->next, static_cast<std::size_t>(given));
  bytes->next += given;
  bytes->left -= given;
  return static_cast<int>(given);
}

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

class GifFrame {
 public:
  GifFrame(GifBytes& bytes, const std::string& path) : path_(path) {
    int error = D_GIF_ERR_OPEN_FAILED;
    gif_.reset(DGifOpen(&bytes, read_gif, &error));
    if (!gif_) fail(error);
  }

  // Reads up to the first frame's pixels.
  void find() {
    for (;;) {
      GifRecordType type;
      check(DGifGetRecordType(gif_.get(), &type));
      if (type == IMAGE_DESC_RECORD_TYPE) return check(DGifGetImageDesc(gif_.get()));
      if (type != EXTENSION_RECORD_TYPE) data_error(path_, "is a GIF without an image");
      int code = 0;
      GifByteType* block = nullptr;
      for (int more = DGifGetExtension(gif_.get(), &code, &block); check(more), block != nullptr;
           more = DGifGetExtensionNext(gif_.get(), &block)) {
        GraphicsControlBlock control;
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
          transparent_ = control.TransparentColor;
        }
      }
    }
  }
  // The image's shape: the size of the screen, enlarged if the frame extends beyond the screen.
  Shape shape() const {
    const GifImageDesc& frame = gif_->Image;
    return {std::max(gif_->SHeight, frame.Top + frame.Height), std::max(gif_->SWidth, frame.Left + frame.Width), 3};
  }
  // Writes the image [height, width, 3].
  void read(std::byte* pixels, const Shape& shape) {
    const GifImageDesc& frame = gif_->Image;
    colors_ = frame.ColorMap ? frame.ColorMap : gif_->SColorMap;
    const std::int64_t row = shape[1] * 3;
    const bool covers = frame.Height == shape[0] && frame.Width == shape[1];
    for (std::int64_t i = 0; !covers && i < shape[0] * shape[1]; ++i) put(std::max(0, transparent_), pixels + i * 3);
    std::vector<GifPixelType> line(static_cast<std::size_t>(frame.Width));
    const auto read_line = [&](int y) {
      check(DGifGetLine(gif_.get(), line.data(), frame.Width));
      std::byte* to = pixels + (frame.Top + y) * row + frame.Left * 3;
      for (int x = 0; x < frame.Width; ++x) put(line[static_cast<std::size_t>(x)], to + x * 3);
    };
    if (frame.Interlace) {
      constexpr int passes[][2] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};  // the first line and the step
      for (const auto& [first, step] : passes) {
        for (int y = first; y < frame.Height; y += step) read_line(y);
      }
    } else {
      for (int y = 0; y < frame.Height; ++y) read_line(y);
    }
  }

 private:
  [[noreturn]] void fail(int error) const {
    const char* text = GifErrorString(error);
    data_error(path_, std::string("cannot be decoded as GIF: ") + (text ? text : "it is damaged"));
  }
  void check(int result) const {
    if (result == GIF_ERROR) fail(gif_->Error);
  }
  // Writes the colour with this index in the palette; without a palette, the index is the gray value.
  void put(int index, std::byte* to) const {
    if (!colors_) return std::fill_n(to, 3, static_cast<std::byte>(index)), void();
    const GifColorType color = index < colors_->ColorCount ? colors_->Colors[index] : GifColorType{};
    to[0] = std::byte{color.Red};
    to[1] = std::byte{color.Green};
    to[2] = std::byte{color.Blue};
  }

  const std::string& path_;
  std::unique_ptr<GifFileType, CloseGif> gif_;
  const ColorMapObject* colors_ = nullptr;
  int transparent_ = NO_TRANSPARENT_COLOR;  // the palette index of transparent pixels
};

}  // namespace

void decode_gif(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample) {
  GifBytes source{file, bytes};
  GifFrame frame(source, path);
  frame.find();
  const Shape shape = frame.shape();
  check_image_size(shape[0], shape[1], path, bytes, 4096);  // a code of 12 bits represents fewer pixels
  sample.shape = sample.whole = shape;
  sample.buffer.resize(static_cast<std::size_t>(shape.count()));
  frame.read(sample.buffer.data(), shape);
  sample.values = sample.buffer.data();
}

}  // namespace trainctl
