// What the normalisations by a sample's own statistics have in common, layer_norm and group_norm: attributes, operands.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

struct NormAttributes {
  float epsilon = 1e-3f;
  bool scale = true;   // gamma; where false the op has no such input (and no dgamma output)
  bool center = true;  // beta; likewise
};

// The memory of a gradient op's operands, whose elements are of type T; gamma, dgamma and dbeta may be null. Buffers
// are those of the interpreter that runs the op.
template <class T>
struct NormBackward {
  const T *dy, *x;
  const float *gamma, *mean, *rstd;
  T* dx;
  float *dgamma, *dbeta;

  template <class Buffers>
  NormBackward(const Buffers& buffers, const NormAttributes& a) {
    std::size_t in = 2, out = 1;
    dy = buffers.template in<T>(0);
    x = buffers.template in<T>(1);
    gamma = a.scale ? buffers.template in<float>(in++) : nullptr;
    mean = buffers.template in<float>(in++);
    rstd = buffers.template in<float>(in);
    dx = buffers.template out<T>(0);
    dgamma = a.scale ? buffers.template out<float>(out++) : nullptr;
    dbeta = a.center ? buffers.template out<float>(out) : nullptr;
  }
};

}  // namespace trainctl
