// Proof that a peer knows a secret: HMAC-SHA-256, and numbers that nobody can guess.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The 32 bytes of HMAC-SHA-256.
std::string hmac_sha256(std::string_view key, std::string_view text);

// Whether two texts are equal, in a time that tells nothing of where they differ.
bool equal_secretly(std::string_view a, std::string_view b);

// So many bytes of the system's generator. Throws Error{resource} where it has none.
std::string random_bytes(std::size_t count);

}  // namespace trainctl
