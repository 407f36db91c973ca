# shellcheck shell=bash
# Mutants of models that are lists of layers.

mutant layer-dropout-evaluates 'Layers: dropout also in evaluation'
file learn/layers/network.cc
old '    run_forward(parameters, batch, samples, nullptr, space);
    std::copy_n(output(graph_'
new '    run_forward(parameters, batch, samples, &space.draws, space);
    std::copy_n(output(graph_'
caught_by unit_learn 'layers: dropout is a function'

mutant layer-dropout-same-draws 'Layers: every step drops the same numbers'
file learn/layers/network.cc
old '    run_forward(parameters, batch, samples, &space.draws, space);'
new '    const Rng same(1);
    run_forward(parameters, batch, samples, &same, space);'
caught_by unit_learn 'layers: dropout is a function'

mutant layer-overwrites-read-output 'Layers: a curve overwrites an output that its layer still needs'
file learn/layers/graph.cc
old '                      !graph_.nodes[from - 1].operation->reads_output();'
new '                      graph_.nodes[from - 1].readers > 0;'
caught_by unit_learn 'layers: gradients'

mutant layer-overwrites-branch 'Layers: a curve overwrites an output that another layer reads'
file learn/layers/graph.cc
old 'node.operation->in_place() && from > 0 && graph_.nodes[from - 1].readers == 1 &&'
new 'node.operation->in_place() && from > 0 && graph_.nodes[from - 1].readers >= 1 &&'
caught_by unit_learn 'layers: the outputs'

mutant layer-forgets-branch 'Layers: only the last reader of a layer has a gradient'
file learn/layers/network.cc
old '    if (space.dx[i] != nullptr && space.dx[i] != gradient(from, space))'
new '    if (space.dx[i] == nullptr && space.dx[i] != gradient(from, space))'
caught_by unit_learn 'layers: gradients'

mutant layer-moves-untrained 'Layers: a step moves a whole layer of which a part is trained'
file learn/layers/operation.cc
old '    const std::size_t begin = std::max(range.begin, offset);
    const std::size_t end = std::min(range.end, offset + size);'
new '    const std::size_t begin = offset;
    const std::size_t end = offset + size + 0 * range.end;'
caught_by unit_learn 'layers: training some tensors'

mutant layer-pools-read-convolution 'Layers: a convolution that another layer reads is joined with its pooling'
file learn/layers/graph.cc
old '    if (layer.from.size() > 1 || read_names_.contains(layer_names_[i])) return false;'
new '    if (layer.from.size() > 1) return false;'
caught_by unit_learn 'layers: the outputs'

mutant layer-same-name 'Layers: two layers of one name are not noticed'
file learn/layers/graph.cc
old '    if (names_.contains(name)) return invalid('
new '    if (names_.contains(name) && pooled) return invalid('
caught_by unit_learn 'layers: a layer reads earlier'

mutant layer-text-reads-ahead 'Layers: a convolution over a text reads the tokens that it predicts'
file learn/layers/convolution_layer.cc
old '  if (context.text)'
new '  if (context.text && images)'
caught_by unit_learn 'layers: no layer of a text'

mutant layer-unbounded-activation 'Layers: an absurd activation is allocated'
file learn/layers/graph.cc
old 'constexpr double kMaxActivation = 268435456.0;  // 1 GiB'
new 'constexpr double kMaxActivation = 2684354560000.0;'
caught_by unit_learn 'layers: absurd sizes'

mutant layer-lstm-forgets 'Layers: an LSTM'\''s gradient does not flow back through its state'
file learn/layers/recurrent_layers.cc
old '    if (t == 0) return;
    s.states.backward('
new '    if (t + 1 < steps || t == 0) return;
    s.states.backward('
caught_by unit_learn 'layers: gradients'

mutant layer-norm-one-group 'Layers: group norm takes all channels as one group'
file learn/layers/norm_layers.cc
old '    const std::size_t width = shape_.channels / groups_;'
new '    const std::size_t width = shape_.channels * groups_ / groups_;'
caught_by unit_learn 'layers: the outputs'

mutant loss-weights-ignored 'Losses: training ignores the loss that the run chooses'
file learn/trainer.cc
old '  plan.workspace->loss = &spec_.loss;'
new '  plan.workspace->loss = nullptr;'
caught_by unit_learn 'chosen losses: a trainer minimises'

mutant loss-weights-undivided 'Losses: the weighted mean is divided by the number of samples'
file learn/models/weighted_losses.cc
old '    for (const Label label : labels_) total_ += weight_of(spec, label);'
new '    total_ = static_cast<double>(labels_.size());'
caught_by unit_learn 'chosen losses: values and gradients'

mutant loss-dice-of-the-batch 'Losses: the derivative of the Dice loss forgets the size of its own prediction'
file learn/models/weighted_losses.cc
old '((2 * sums[2 * k] + kSmooth) / size - (of_the_class ? 2 : 0)) / size /'
new '(0.0 - (of_the_class ? 2 : 0)) / size /'
caught_by unit_learn 'chosen losses: values and gradients'

mutant loss-any-task 'Losses: the Huber loss of classes'
file learn/objectives/loss_spec.cc
old 'if (spec.kind == LossKind::kHuber && target.kind != TargetKind::kValues)'
new 'if (spec.kind == LossKind::kHuber && target.outputs == 0)'
caught_by unit_learn 'chosen losses: a loss that the data'

mutant layer-gradient-late 'Layers: a gradient gets its buffer when its first reader writes it, not its last'
file learn/layers/gradient_plan.cc
old '      if (from > 0) last_reader[owners[from - 1] - 1] = n;'
new '      if (from > 0 && last_reader[owners[from - 1] - 1] == 0) last_reader[owners[from - 1] - 1] = n;'
caught_by unit_learn 'layers: gradients'

mutant layer-gradient-overwrites 'Layers: a layer writes its input gradient over the gradient that it reads'
file learn/layers/gradient_plan.cc
old '    for (const std::size_t owner : begun[n])
      plan.buffers['
new '    if (owners[n - 1] == n && n < nodes.size()) free.push_back(plan.buffers[n - 1]);
    for (const std::size_t owner : begun[n])
      plan.buffers['
caught_by unit_learn 'layers: gradients'

mutant layer-gradient-small 'Layers: a buffer that gradients share is as large as the first of them'
file learn/layers/gradient_plan.cc
old '  sizes[buffer] = std::max(sizes[buffer], size);'
new '  sizes[buffer] = std::max(sizes[buffer], 0 * size);'
caught_by unit_learn 'layers: gradients'

mutant layer-gru-bias 'Layers: both biases of a GRU have the same gradient, as those of an LSTM'
file learn/layers/recurrent_layers.cc
old '    if (r_.gates == 3) sum_biases('
new '    if (r_.gates == 4) sum_biases('
caught_by unit_learn 'layers: gradients'

mutant kernel-strip-overlap 'Kernels: the last vector of a strip overwrites the next strip'
file learn/kernels/packing_body.h
old 'return inner * kStrip + kCopied - kStrip;'
new 'return inner * kStrip + (kCopied - kStrip) * 0;'
caught_by unit_learn 'language kernels: products'

mutant kernel-constant-column 'Kernels: patches of 32 channels are read as if they had 16'
file learn/kernels/patches_body.h
old '          return patch_lines<V, 32>(panel);'
new '          return patch_lines<V, 16>(panel);'
caught_by unit_learn 'patches: products'

mutant kernel-spread-lines 'Kernels: a gradient is spread by whole lines whatever the stride'
file learn/layers/patch_convolution.cc
old '    if (shape_.x.stride == 1) {'
new '    if (shape_.x.stride >= 1) {'
caught_by unit_learn 'patch convolution: the three'

mutant kernel-column-chains 'Kernels: one of the chains of a column sum is forgotten'
file learn/kernels/elementwise_body.h
old '((acc[0] + acc[1]) + (acc[2] + acc[3]))'
new '((acc[0] + acc[1]) + (acc[2] + acc[2]))'
caught_by unit_learn 'columns: sums'
