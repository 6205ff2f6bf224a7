// Authentication of peers that share a secret: HMAC-SHA-256, comparison in constant time, and cryptographic random
// bytes.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The 32 bytes of HMAC-SHA-256.
std::string hmac_sha256(std::string_view key, std::string_view text);

// Compares two texts in constant time, so that the time does not reveal where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// `count` bytes from the system's random number generator. Throws Error{resource} if it fails.
std::string random_bytes(std::size_t count);

}  // namespace trainctl
