// Opens a tokenizer by the name of its file, whose kind its content tells.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/text/tokenizer.h"

namespace trainctl {

// The largest tokenizer file that is read, in bytes. The largest published ones have about 35 MB.
inline constexpr std::int64_t largest_tokenizer_file = 256'000'000;

// `name` is "bytes" for the vocabulary of bytes, or the path of a tokenizer.json, a rank file of tiktoken or a model of
// SentencePiece. `encoding` names the encoding of a rank file that is not recognized (see files/tiktoken.h); it must be
// empty for other kinds. Throws Error{data} if the file is of none of these kinds, or is damaged.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name, const std::string& encoding = "");

// As load_tokenizer(), for the content of a file.
std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content, const std::string& path,
                                          const std::string& encoding = "");

}  // namespace trainctl
