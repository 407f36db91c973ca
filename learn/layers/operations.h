// The factories of all operations, by file. Each checks its inputs' shapes. The table in
// learn/layers/kinds.cc says what they do.
#pragma once

#include "learn/layers/operation.h"

namespace fedge::learn {

MadeOperation make_dense(const LayerContext& context);        // dense_layer.cc
MadeOperation make_convolution(const LayerContext& context);  // convolution_layer.cc
MadeOperation make_transposed_convolution(const LayerContext& context);
// A convolution with ReLU and max-pooling by 2, which must be possible: pools_by_two().
MadeOperation make_pooled_convolution(const LayerContext& context);  // pooled_convolution.cc
bool pools_by_two(const LayerSpec& convolution, const LayerShape& from);
MadeOperation make_max_pool(const LayerContext& context);  // pooling_layers.cc
MadeOperation make_average_pool(const LayerContext& context);
MadeOperation make_global_average_pool(const LayerContext& context);
MadeOperation make_global_max_pool(const LayerContext& context);
MadeOperation make_upsample(const LayerContext& context);
MadeOperation make_group_norm(const LayerContext& context);  // norm_layers.cc
MadeOperation make_layer_norm(const LayerContext& context);
MadeOperation make_curve(const LayerContext& context);  // pointwise_layers.cc
MadeOperation make_dropout(const LayerContext& context);
MadeOperation make_add(const LayerContext& context);  // merging_layers.cc
MadeOperation make_multiply(const LayerContext& context);
MadeOperation make_concat(const LayerContext& context);
MadeOperation make_take(const LayerContext& context);
MadeOperation make_flatten(const LayerContext& context);
MadeOperation make_reverse(const LayerContext& context);
MadeOperation make_embedding(const LayerContext& context);
MadeOperation make_lstm(const LayerContext& context);  // recurrent_layers.cc
MadeOperation make_gru(const LayerContext& context);

}  // namespace fedge::learn
