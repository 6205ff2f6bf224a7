// The vocabulary of bytes: a token for each byte, and one that ends a document.
#pragma once

#include <memory>

#include "io/text/tokenizer.h"

namespace trainctl {

// The ids 0 to 255 are bytes; 256 is <|endoftext|>.
std::unique_ptr<Tokenizer> make_bytes();

}  // namespace trainctl
