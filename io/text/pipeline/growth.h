// Limits how long the steps of a tokenizer file make a text: some steps, one after another, could make any number of
// bytes of one.
#pragma once

#include <cstddef>
#include <string>

namespace trainctl {

// The longest text that a step may put into another one, in bytes. Real files have one character there.
inline constexpr std::size_t max_inserted = 64;

// The number of bytes that steps may make of a text of `bytes` bytes.
constexpr std::size_t most_of(std::size_t bytes) { return 32 * bytes + (64 << 10); }

// Throws Error{data}: the steps make more bytes.
[[noreturn]] void throw_grown();

// Returns the text that a step inserts. Throws Error{data} if it is longer than max_inserted.
std::string inserted(std::string text);

}  // namespace trainctl
