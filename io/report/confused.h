// Shows samples for which a network predicts a wrong class, with their pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

struct ConfusedSample {
  std::string name;               // name of the sample: its file, or "x.npy, sample 12"
  int actual = 0, taken_for = 0;  // the labelled and the predicted class
  double probability = 0;         // predicted probability of `taken_for`
  std::vector<float> pixels;      // values [height, width, channels] that the network reads; empty: not an image
  Shape shape;                    // shape of the image, with 1 or 3 channels
};

// Returns HTML with a card for each sample. `names` are the names of classes. For pictures see picture_of().
std::string confused_cards(const std::vector<ConfusedSample>& samples, const std::vector<std::string>& names);

}  // namespace trainctl
