// Samples that a network takes for another class, with their pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

struct ConfusedSample {
  std::string name;  // of the sample: its file, or "x.npy, sample 12"
  int actual = 0, taken_for = 0;
  double probability = 0;     // of the class that it is taken for
  std::vector<float> pixels;  // rows of height x width x channels, as the network gets them; empty: no image
  Shape shape;                // of the pixels: 1 or 3 channels
};

// A card for each sample. Pictures are spread to black and white, as the network's values have no range of their own,
// and have 96 pixels a side at most. HTML.
std::string confused_cards(const std::vector<ConfusedSample>& samples, const std::vector<std::string>& names);

}  // namespace trainctl
