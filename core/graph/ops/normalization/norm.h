// What the normalisations by a sample's own statistics have in common, layer_norm and group_norm: attributes, operands.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

struct NormAttributes {
  float epsilon = 1e-3f;
  bool scale = true;   // gamma; where false the op has no such input (and no dgamma output)
  bool center = true;  // beta; likewise
};

// The memory of a gradient op's operands, whose elements are of type T; gamma, dgamma and dbeta may be null. Places are
// those of the interpreter that runs the op.
template <class T>
struct NormBackward {
  const T *dy, *x;
  const float *gamma, *mean, *rstd;
  T* dx;
  float *dgamma, *dbeta;

  template <class Places>
  NormBackward(const Places& places, const NormAttributes& a) {
    std::size_t in = 2, out = 1;
    dy = places.template in<T>(0);
    x = places.template in<T>(1);
    gamma = a.scale ? places.template in<float>(in++) : nullptr;
    mean = places.template in<float>(in++);
    rstd = places.template in<float>(in);
    dx = places.template out<T>(0);
    dgamma = a.scale ? places.template out<float>(out++) : nullptr;
    dbeta = a.center ? places.template out<float>(out) : nullptr;
  }
};

}  // namespace trainctl
