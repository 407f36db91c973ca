// The source of all kernels. One .cc per instruction set includes it after defining FEDGE_KERNELS (its
// namespace) and FEDGE_LANES (floats in a vector). All code is in that namespace and instantiates nothing
// from outside, so that the linker cannot put code for a newer processor into common functions. Vectors are
// the compiler's, without intrinsics.
#pragma once

#include <cstddef>

#include "learn/kernels/convolution_body.h"
#include "learn/kernels/dense_body.h"
#include "learn/kernels/elementwise_body.h"
#include "learn/kernels/gate_body.h"
#include "learn/kernels/kernels.h"
#include "learn/kernels/language_body.h"
#include "learn/kernels/packing_body.h"
#include "learn/kernels/patches_body.h"
#include "learn/kernels/product_body.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {

Kernels table(const char* name) {
  return {name,
          dense_forward,
          dense_backward,
          dense_update,
          bias_update,
          relu,
          relu_backward,
          softmax,
          axpy,
          kLanes,
          pack_panels,
          multiply_patches,
          add_patch_gradient,
          pool,
          unpool,
          add_terms,
          product,
          layer_norm,
          layer_norm_backward,
          layer_norm_gradient,
          rms_norm,
          rms_norm_backward,
          rms_norm_gradient,
          column_sums,
          column_squares,
          column_products,
          column_affine,
          column_combine,
          gelu,
          gelu_backward,
          sigmoid,
          sigmoid_backward,
          tanh,
          tanh_backward,
          silu,
          silu_backward,
          gated_silu,
          gated_silu_backward,
          leaky_relu,
          leaky_relu_backward,
          multiply_add,
          lstm_cell,
          lstm_cell_backward,
          gru_cell,
          gru_cell_backward,
          causal_softmax,
          causal_softmax_backward,
          attend,
          adam_step};
}

}  // namespace fedge::learn::FEDGE_KERNELS
