// Hashes: SHA-256 (the home of OpenSSL's libcrypto) for data that is stored, XXH3 (the home of xxHash) for checksums
// and keys.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace trainctl {

// SHA-256 of bytes given piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(const void* data, std::size_t bytes);
  // 64 lower-case hexadecimal digits; the object must not be used afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(const void* data, std::size_t bytes);

// XXH3, 64 bits: fast, not cryptographic.
std::uint64_t xxh3(const void* data, std::size_t bytes);

}  // namespace trainctl
