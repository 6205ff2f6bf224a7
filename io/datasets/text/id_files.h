// Files of token ids: .npy files, and texts of numbers.
#pragma once

#include <string>
#include <vector>

#include "io/text/tokenizer.h"

namespace trainctl {

// Returns the ids of an .npy file, or of a text of numbers between white space. Throws Error{data}.
std::vector<TokenId> read_ids(const std::string& path);

// Writes the ids as an .npy file with a list of 32-bit integers.
void write_ids(const std::string& path, const std::vector<TokenId>& ids);

}  // namespace trainctl
