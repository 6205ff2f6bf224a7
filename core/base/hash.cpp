// SHA-256 through OpenSSL's EVP interface and XXH3 through xxHash.
#include "core/base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include "core/base/error.h"

namespace trainctl {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1,
          "SHA-256 is not available");
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, std::size_t bytes) {
  require(EVP_DigestUpdate(state_->context, data, bytes) == 1, "SHA-256 update failed");
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  require(EVP_DigestFinal_ex(state_->context, digest, &length) == 1, "SHA-256 failed");
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

std::string sha256(const void* data, std::size_t bytes) {
  Sha256 hash;
  hash.update(data, bytes);
  return hash.finish();
}

std::uint64_t xxh3(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace trainctl
