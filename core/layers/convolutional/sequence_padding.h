// The padding of convolutions over sequences.
#pragma once

#include "core/layers/window.h"
#include "core/spec/type_info.h"

namespace trainctl {

// causal: zeros at the front only, so that no output depends on a later step.
enum class SequencePadding { valid, same, causal };

template <>
struct EnumNames<SequencePadding> {
  static constexpr EnumName<SequencePadding> names[] = {
      {SequencePadding::valid, "valid"}, {SequencePadding::same, "same"}, {SequencePadding::causal, "causal"}};
};

inline constexpr const char* sequence_padding_meaning =
    "same, valid, or causal: zeros in front only, so that an output depends on no later step.";

// A window over images one pixel high, or the reason why there is none.
struct SequenceWindow {
  Window window;
  std::optional<std::string> wrong;
};
// Returns the window of a convolution over sequences of `steps` steps, with its padding.
inline SequenceWindow sequence_window(std::int64_t kernel_size, std::int64_t strides, std::int64_t dilation_rate,
                                      SequencePadding padding, std::int64_t steps) {
  SequenceWindow made{{{1, kernel_size}, {1, strides}, {1, dilation_rate}, {}, {}}, {}};
  if (padding == SequencePadding::causal) {
    made.window.padding_before[1] = checked_multiply(dilation_rate, kernel_size - 1);
  }
  const PaddingMode mode = padding == SequencePadding::same ? PaddingMode::same : PaddingMode::valid;
  made.wrong = resolve_padding(made.window, mode, {1, steps}, "kernel");
  return made;
}

}  // namespace trainctl
