// Compares weights_sha256 with its definition.
#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/exec/interfaces/snapshot.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::weights_hash_test {

TEST_CASE("weights_sha256 is the hash of names, a zero byte and little-endian values in bytewise order") {
  RandomSnapshot random(3);
  auto& weights = random.snapshot.weights;
  weights[0].name = "Z";         // upper case sorts before lower case
  weights[1].name = "\xC3\xA9";  // and UTF-8 after both, as unsigned bytes
  weights[2].name = "a/b";
  weights[3].name = "a";
  weights[4].name = "a0";
  std::string text;
  for (const std::size_t i : {0, 3, 2, 4, 1}) {
    text += weights[i].name + '\0';
    for (std::int64_t j = 0; j < weights[i].view.count; ++j) {
      std::uint32_t bits;
      std::memcpy(&bits, weights[i].view.as<float>() + j, 4);
      for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(bits >> shift);
    }
  }
  CHECK(weights_sha256(weights) == sha256(text.data(), text.size()));
  std::reverse(weights.begin(), weights.end());
  CHECK(weights_sha256(weights) == sha256(text.data(), text.size()));
  weights[2].view.as<std::uint8_t>()[0] ^= 1;
  CHECK(weights_sha256(weights) != sha256(text.data(), text.size()));
}

}  // namespace trainctl::test::weights_hash_test
