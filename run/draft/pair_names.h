// Tells by the names of two folders or columns whether they hold pairs of images, and which of both are the targets.
#pragma once

#include <string>

namespace trainctl {

// Whether two names, in upper or lower case, are usual for the images and the targets of pairs: "input" and "target".
// Words that both names share do not count: "train_noisy" and "train_clean".
bool are_names_of_pairs(const std::string& images, const std::string& targets);

// Whether the first name is likely that of the images: the names are those of pairs or have an order such as "low" and
// "high", or only the second one has a word for targets, such as "sharp".
bool are_in_order(const std::string& images, const std::string& targets);

}  // namespace trainctl
