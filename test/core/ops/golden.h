// The values that test/golden/make_golden.py wrote.
#pragma once

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/safetensors.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test {

class Golden {
 public:
  // A file of test/golden.
  explicit Golden(const std::string& file) : file_(folder() + "/golden/" + file) {}

  bool has(const std::string& name) const { return file_.header().find(name) != nullptr; }
  // "conv2d_relu/in0". Throws Error{internal} where there is none.
  Value at(const std::string& name) const;
  // "CASE/in0", "CASE/in1", ... as many as there are.
  std::vector<Value> numbered(const std::string& prefix) const;
  // What stands before the first slash of the names.
  std::set<std::string> cases() const;

 private:
  // The bundle's tests find theirs beside them.
  static std::string folder() {
    const char* bundled = std::getenv("TRAINCTL_TEST_FOLDER");
    return bundled == nullptr ? TRAINCTL_SOURCE_DIR "/test" : bundled;
  }

  SafetensorsFile file_;
};

// The same values as another dtype, rounded where it does not hold them.
Value in_dtype(Value value, DType dtype);

// How far values are from those expected. Infinite where the counts differ or a value is not finite.
struct Deviation {
  double largest = 0;  // of |a - b| / (|b| + r), r being the magnitude of b: relative where values are large, and where
                       // they are small relative to what they are among
  double typical = 0;  // the magnitude of a - b over that of b
};
Deviation deviation(const std::vector<double>& a, const std::vector<double>& b);

// The root of the mean square.
double magnitude(const std::vector<double>& values);

// Checks values that were computed in `dtype` from inputs that are exact in it.
//
// float32: each term of a sum is rounded by 2^-24 = 6e-8 of the partial sum, and sums have up to a thousand terms.
// bfloat16: what is stored has 8 bits of mantissa, an error of up to 2^-9 of its size. Up to five such values follow
// one another (a layer's output before its bias, that behind it, its activation's, the gradient before the activation,
// that by an input), and the gradients of tanh and sigmoid, where they are small, magnify the error of the output that
// they start from. Typically errors cancel in part: 2^-6.5 is allowed; a single value may have 2^-6.
// float16: likewise, with 11 bits of mantissa: 2^-9.5; a single value that is small among its neighbours may have 2^-8.
void check_close(const Value& got, const Value& expected, DType dtype);

}  // namespace trainctl::test
