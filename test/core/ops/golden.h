// Reads the golden values that test/golden/make_golden.py wrote.
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
  explicit Golden(const std::string& file) : file_(path(file)) {}

  static std::string path(const std::string& file) { return folder() + "/golden/" + file; }

  bool has(const std::string& name) const { return file_.header().find(name) != nullptr; }
  // Returns the value with this name, such as "conv2d_relu/in0". Throws Error{internal} if there is none.
  Value at(const std::string& name) const;
  // Returns all values PREFIX0, PREFIX1, ..., such as "CASE/in0" and "CASE/in1" for "CASE/in".
  std::vector<Value> numbered(const std::string& prefix) const;
  // Returns the names of cases: the part of each name before its first slash.
  std::set<std::string> cases() const;

 private:
  // The tests of the bundle have their own copy.
  static std::string folder() {
    const char* bundled = std::getenv("TRAINCTL_TEST_FOLDER");
    return bundled == nullptr ? TRAINCTL_SOURCE_DIR "/test" : bundled;
  }

  SafetensorsFile file_;
};

// Returns the same values in another dtype, rounded if the dtype cannot represent them.
Value in_dtype(Value value, DType dtype);

// The deviation of values from the expected ones. Infinite if the counts differ or a value is not finite.
struct Deviation {
  double largest = 0;  // the largest |a - b| / (|b| + r), where r is the magnitude of b: relative to a large value
                       // itself, and to typical values for a small one
  double typical = 0;  // the magnitude of a - b divided by the magnitude of b
};
Deviation deviation(const std::vector<double>& a, const std::vector<double>& b);

// Returns the root of the mean square.
double magnitude(const std::vector<double>& values);

// Checks values that were computed in `dtype` from inputs that are exact in it.
//
// float32: each term of a sum is rounded by 2^-24 = 6e-8 of the partial sum, and sums have up to a thousand terms.
// bfloat16: stored values have 8 bits of mantissa, an error of up to 2^-9 of their size. Up to five such values follow
// one another (a layer's output before its bias, after its bias and after its activation, the gradient before the
// activation, and the gradient of an input), and small gradients of tanh and sigmoid magnify the error of the output
// that they are computed from. Typically errors cancel in part: 2^-6.5 is allowed; a single value may have 2^-6.
// float16: the same with 11 bits of mantissa: 2^-9.5; a single value that is small among its neighbours may have 2^-8.
void check_close(const Value& got, const Value& expected, DType dtype);

}  // namespace trainctl::test
