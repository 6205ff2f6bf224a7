// Hash functions: SHA-256 by OpenSSL's libcrypto for stored data, and XXH3 by xxHash for checksums and keys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace trainctl {

// Computes SHA-256 of data that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, std::size_t bytes);
  // Returns the hash as 64 lower-case hexadecimal digits; the object must not be used afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256(const void* data, std::size_t bytes);

// XXH3, 64 bits: fast, not cryptographic.
std::uint64_t xxh3(const void* data, std::size_t bytes);

}  // namespace trainctl
