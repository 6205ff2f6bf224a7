// The arithmetic of recurrent cells for one unit, which is compiled into the kernels of all devices.
//
// A cell has `gates` gates, in Keras' order. x[gate] is the unit's element of the product of the input and the kernel;
// recurrent[gate] is its element of the product of the previous h and the recurrent kernel. `carry` passes from step to
// step in float32. `memory` is what the gradient needs in addition to the gates. A cell has the members
//
//   splits              whether the gradients with respect to x and `recurrent` differ; if so, the cell may have a
//                       recurrent bias
//   carries_h           whether the carry is h, in float32
//   step<Math>(...)     sets the gates and the memory, updates the carry, and returns h
//   gradient<Math>(...) sets the gradients with respect to x and `recurrent` (equal if the cell does not split) from
//                       `dh`, the gradient with respect to h, and turns `dcarry`, the gradient with respect to the
//                       carry, into the gradient with respect to the carry of the previous step
//
// Math has the functions that core/graph/ops/losses/rule.h lists.
#pragma once

#include "core/base/kernel_function.h"

namespace trainctl {

// Hochreiter and Schmidhuber (1997), with a forget gate. Gates: input, forget, candidate, output. The carry and the
// memory are the state c.
struct LstmCell {
  static constexpr int gates = 4;
  static constexpr bool splits = false;
  static constexpr bool carries_h = false;

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static float step(const float (&x)[gates], const float (&recurrent)[gates],
                                             float (&gate)[gates], float& carry, float& memory) {
    gate[0] = Math::sigmoid(x[0] + recurrent[0]);
    gate[1] = Math::sigmoid(x[1] + recurrent[1]);
    gate[2] = Math::tanh(x[2] + recurrent[2]);
    gate[3] = Math::sigmoid(x[3] + recurrent[3]);
    memory = carry = gate[1] * carry + gate[0] * gate[2];
    return gate[3] * Math::tanh(carry);
  }

  // `memory` belongs to this step; `memory_before` and `h_before` belong to the previous step.
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static void gradient(float dh, const float (&gate)[gates], float memory, float memory_before,
                                                float h_before, float& dcarry, float (&dx)[gates],
                                                float (&drecurrent)[gates]) {
    static_cast<void>(h_before);
    const float squashed = Math::tanh(memory);
    const float dc = dcarry + dh * gate[3] * (1.0f - squashed * squashed);
    dx[0] = drecurrent[0] = dc * gate[2] * gate[0] * (1.0f - gate[0]);
    dx[1] = drecurrent[1] = dc * memory_before * gate[1] * (1.0f - gate[1]);
    dx[2] = drecurrent[2] = dc * gate[0] * (1.0f - gate[2] * gate[2]);
    dx[3] = drecurrent[3] = dh * squashed * gate[3] * (1.0f - gate[3]);
    dcarry = dc * gate[1];
  }
};

// Cho et al. (2014), with the reset gate applied after the product (Keras' reset_after, PyTorch's GRU). Gates: update,
// reset, candidate. The carry is h; the memory is the candidate's element of the recurrent product.
struct GruCell {
  static constexpr int gates = 3;
  static constexpr bool splits = true;
  static constexpr bool carries_h = true;

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static float step(const float (&x)[gates], const float (&recurrent)[gates],
                                             float (&gate)[gates], float& carry, float& memory) {
    gate[0] = Math::sigmoid(x[0] + recurrent[0]);
    gate[1] = Math::sigmoid(x[1] + recurrent[1]);
    gate[2] = Math::tanh(x[2] + gate[1] * recurrent[2]);
    memory = recurrent[2];
    return carry = gate[0] * carry + (1.0f - gate[0]) * gate[2];
  }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static void gradient(float dh, const float (&gate)[gates], float memory, float memory_before,
                                                float h_before, float& dcarry, float (&dx)[gates],
                                                float (&drecurrent)[gates]) {
    static_cast<void>(memory_before);
    const float total = dh + dcarry;
    dx[2] = total * (1.0f - gate[0]) * (1.0f - gate[2] * gate[2]);
    dx[0] = drecurrent[0] = total * (h_before - gate[2]) * gate[0] * (1.0f - gate[0]);
    dx[1] = drecurrent[1] = dx[2] * memory * gate[1] * (1.0f - gate[1]);
    drecurrent[2] = dx[2] * gate[1];
    dcarry = total * gate[0];
  }
};

// Elman (1990), Keras' SimpleRNN: h is the gate. Carry and memory are not used.
struct SimpleCell {
  static constexpr int gates = 1;
  static constexpr bool splits = false;
  static constexpr bool carries_h = false;

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static float step(const float (&x)[gates], const float (&recurrent)[gates],
                                             float (&gate)[gates], float& carry, float& memory) {
    memory = carry = 0.0f;
    return gate[0] = Math::tanh(x[0] + recurrent[0]);
  }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static void gradient(float dh, const float (&gate)[gates], float memory, float memory_before,
                                                float h_before, float& dcarry, float (&dx)[gates],
                                                float (&drecurrent)[gates]) {
    static_cast<void>(memory), static_cast<void>(memory_before), static_cast<void>(h_before);
    dcarry = 0.0f;
    dx[0] = drecurrent[0] = dh * (1.0f - gate[0] * gate[0]);
  }
};

}  // namespace trainctl
