// Compares boundaries of bins with those of Keras' Discretization, and FarmHash64 with the values of its own library.
#include "io/datasets/tables/bins.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/datasets/tables/farm_hash.h"
#include "test/catch.h"

namespace trainctl::bins_test {
namespace {

// The values of a linear congruential generator.
std::vector<float> drawn(int count) {
  std::vector<float> values;
  std::uint64_t state = 7;
  for (int i = 0; i < count; ++i) {
    state = (state * 1103515245 + 12345) % (1ull << 31);
    values.push_back(static_cast<float>(state / 65536 % 1000) / 8);
  }
  return values;
}

}  // namespace

TEST_CASE("bins: boundaries are those of Keras' Discretization after adapt()") {
  struct Case {
    int values, num_bins;
    std::vector<float> boundaries;
  };
  const Case cases[] = {
      {3, 5, {70.5f, 100.75f}},
      {57, 4, {32.8125f, 68.4375f, 96.375f}},
      {100,
       7,
       {13.178565979003906f, 31.999980926513672f, 52.249969482421875f, 74.85713195800781f, 92.55355072021484f,
        105.35713195800781f}},
      {150, 3, {35.04163360595703f, 87.08329010009766f}},
      {1000,
       10,
       {12.374990463256836f, 24.249977111816406f, 37.12498092651367f, 49.12498474121094f, 60.37498474121094f,
        73.37499237060547f, 86.99999237060547f, 98.74999237060547f, 111.375f}},
      {12345,
       6,
       {20.333332061767578f, 41.33336639404297f, 62.12501907348633f, 83.00000762939453f, 103.87500762939453f}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.values, c.num_bins);
    CHECK(quantile_boundaries(drawn(c.values), c.num_bins) == c.boundaries);
  }
  CHECK(bin_of(0.999f, {0, 1}) == 1);
  CHECK(bin_of(1, {0, 1}) == 2);
  CHECK(bin_of(-5, {0, 1}) == 0);
}

TEST_CASE("bins: FarmHash64 of texts of all lengths") {
  const std::pair<int, std::uint64_t> cases[] = {
      {0, 11160318154034397263ull},   {1, 4787810249829893994ull},  {3, 3979540680440595841ull},
      {4, 14708324829907283305ull},   {7, 10810953559526984053ull}, {8, 1081479215267182365ull},
      {12, 8910251362692744102ull},   {16, 2161736752036300631ull}, {17, 7337602293499926190ull},
      {25, 17978303865471452741ull},  {32, 7714376564712875119ull}, {33, 13647079065380818870ull},
      {50, 374503502161314953ull},    {64, 1907212410693397370ull}, {65, 8220491543423646622ull},
      {100, 7806914253978377086ull},  {128, 500231257745944714ull}, {129, 9688664611621856643ull},
      {300, 17002858302555437011ull},
  };
  for (const auto& [length, hash] : cases) {
    CAPTURE(length);
    std::string text;
    for (int i = 0; i < length; ++i) text += static_cast<char>((i * 37 + 11) % 251);
    CHECK(farm_hash(text) == hash);
  }
}

}  // namespace trainctl::bins_test
