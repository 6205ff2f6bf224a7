// Computes HMAC and random bytes by OpenSSL's libcrypto.
#include "core/base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "core/base/error.h"

namespace trainctl {

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string result(32, '\0');
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(),
                                   reinterpret_cast<unsigned char*>(result.data()), &size);
  require(done != nullptr && size == result.size(), "HMAC-SHA-256 did not return 32 bytes");
  return result;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw Error(ErrorKind::resource, "the system's random number generator failed");
  }
  return bytes;
}

}  // namespace trainctl
