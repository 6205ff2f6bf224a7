// Megatron-LM's indexed data sets: a .bin file of ids, and an .idx file with their type and the ends of the documents.
#pragma once

#include <string>

#include "io/datasets/text/token_stream.h"

namespace trainctl {

// Opens an indexed data set as megatron/core/datasets/indexed_dataset.py writes it, version 1. The sequences must lie
// one after another without gaps. Throws Error{data} that names the file that is damaged.
TokenStream open_megatron(const std::string& tokens, const std::string& index);

}  // namespace trainctl
