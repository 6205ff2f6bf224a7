// Measures how many images per second libjpeg-turbo decodes: threads decode JPEG files that are in memory.
//
// Usage: decode_jpegs THREADS SECONDS FILE...; prints one JSON line.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <jpeglib.h>

namespace {

void decode(jpeg_decompress_struct& info, const std::string& file, std::vector<JSAMPLE>& pixels) {
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const std::size_t row = std::size_t{info.output_width} * 3;
  pixels.resize(row * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW to = pixels.data() + info.output_scanline * row;
    jpeg_read_scanlines(&info, &to, 1);
  }
  jpeg_finish_decompress(&info);
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = std::atoi(arguments[1]);
  const auto limit = std::chrono::duration<double>(std::atof(arguments[2]));
  std::vector<std::string> files;
  for (int i = 3; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::atomic<std::size_t> next{0};
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        jpeg_decompress_struct info{};
        jpeg_error_mgr errors{};
        info.err = jpeg_std_error(&errors);
        jpeg_create_decompress(&info);
        std::vector<JSAMPLE> pixels;
        while (std::chrono::steady_clock::now() - start < limit) decode(info, files[next++ % files.size()], pixels);
        jpeg_destroy_decompress(&info);
      });
    }
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::printf("{\"images_per_second\": %.1f}\n", static_cast<double>(next) / passed.count());
}
