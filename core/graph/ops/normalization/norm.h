// The attributes and gradient operands that layer_norm and group_norm have in common. Both ops use the statistics of
// each sample.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

struct NormAttributes {
  float epsilon = 1e-3f;
  bool scale = true;   // whether the op has gamma (and its gradient dgamma)
  bool center = true;  // whether the op has beta (and its gradient dbeta)
};

// Pointers to the operands of a gradient op, with elements of type T; gamma, dgamma and dbeta may be null. Buffers is
// the class by which a backend accesses the memory of an op's operands.
template <class T>
struct NormBackward {
  const T *dy, *x;
  const float *gamma, *mean, *rstd;
  T* dx;
  float *dgamma, *dbeta;
  const T* other = nullptr;  // another gradient of x, to which dx is added

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
