// The table of data sheets.
#include "core/backend/gpu_peaks.h"

#include <cctype>

namespace trainctl {
namespace {

// A data sheet's TFLOP/s without sparsity; 0: the hardware does not support the dtype.
struct Sheet {
  std::string_view name;  // whole words of the GPU's name in CUDA; the first match counts
  double float32, tf32, half, bfloat16;
};

constexpr Sheet sheets[] = {
    {"GB200", 80, 1250, 2500, 2500},
    {"B200", 80, 1125, 2250, 2250},
    {"H200 NVL", 60, 417.5, 835.5, 835.5},
    {"H200", 67, 494.7, 989.4, 989.4},
    {"H100 NVL", 60, 417.5, 835.5, 835.5},
    {"H100 PCIe", 51.2, 378, 756, 756},
    {"H100", 67, 494.7, 989.4, 989.4},
    {"H800", 67, 494.7, 989.4, 989.4},
    {"GH200", 67, 494.7, 989.4, 989.4},
    {"H20", 44, 74, 148, 148},
    {"A100", 19.5, 156, 312, 312},
    {"A800", 19.5, 156, 312, 312},
    {"A10G", 31.5, 35, 70, 70},
    {"RTX A6000", 38.7, 77.4, 154.8, 154.8},
    {"A40", 37.4, 74.8, 149.7, 149.7},
    {"A30", 10.3, 82, 165, 165},
    {"A10", 31.2, 62.5, 125, 125},
    {"L40S", 91.6, 183, 362, 362},
    {"L40", 90.5, 90.5, 181, 181},
    {"L4", 30.3, 60, 121, 121},
    {"RTX 6000 Ada", 91.1, 182.1, 364.2, 364.2},
    {"RTX 5090", 104.8, 104.8, 209.5, 209.5},
    {"RTX 4090", 82.6, 82.6, 165.2, 165.2},
    {"RTX 3090", 35.6, 35.6, 71, 71},
};

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool has_words(std::string_view text, std::string_view words) {
  for (std::size_t begin = text.find(words); begin != std::string_view::npos; begin = text.find(words, begin + 1)) {
    const std::size_t end = begin + words.size();
    const bool begins_word = begin == 0 || !is_word_character(text[begin - 1]);
    if (begins_word && (end == text.size() || !is_word_character(text[end]))) return true;
  }
  return false;
}

}  // namespace

double datasheet_flops(std::string_view model, DType dtype, bool tf32) {
  const std::string_view name = model.substr(0, model.find(','));
  for (const Sheet& sheet : sheets) {
    if (!has_words(name, sheet.name)) continue;
    const double tera = dtype == DType::bfloat16  ? sheet.bfloat16
                        : dtype == DType::float16 ? sheet.half
                        : tf32                    ? sheet.tf32
                                                  : sheet.float32;
    return tera * 1e12;
  }
  return 0;
}

}  // namespace trainctl
