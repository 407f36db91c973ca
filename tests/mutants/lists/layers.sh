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
