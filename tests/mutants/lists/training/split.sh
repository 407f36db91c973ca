# shellcheck shell=bash
# Mutants of split training: halves of a model, what is at the cut, and where it is.

mutant cut-ranks-below-only 'SplitLayout: at the cut, the server trains all ranks'
file core/split/split_layout.cc
old '(block == cut || block == cut + 1)'
new '(block == cut)'
caught_by unit_learn 'split: at the cut, only the first ranks'

mutant halves-joined-in-turn 'SplitLayout: joined values are in the wrong order'
file core/split/split_layout.cc
old '(*left[1])[next[1]].begin < (*left[0])[next[0]].begin'
new '(*left[1])[next[1]].begin > (*left[0])[next[0]].begin'
caught_by unit_learn 'split: both halves have every adapter once'

mutant moments-forgotten 'Optimizer: a client continues without its second moment'
file learn/optimizers/optimizer.cc
old '      std::copy_n(next, range.size(), all[m]->data() + range.begin);'
new '      std::copy_n(next, range.size(), all[0]->data() + range.begin);'
caught_by unit_learn 'split: one server trains clients'

mutant half-batch-forgotten 'UpperHalf: another client in the middle of a batch costs its gradient'
file learn/split/upper_half.cc
old '  if (within_batch_) scatter(state.gradient'
new '  if (false) scatter(state.gradient'
caught_by unit_learn 'split: one server trains clients'

mutant server-moves-at-each-piece 'UpperHalf: a step of the optimizer after each piece'
file learn/split/upper_half.cc
old '  if (piece.last) move();'
new '  move();'
caught_by unit_learn 'split: two halves, cut behind any block'

mutant targets-always-sent 'LowerHalf: targets are sent although they should stay'
file learn/split/lower_half.cc
old 'const auto targets = std::exchange(piece.targets, {});'
new 'const auto targets = piece.targets;'
caught_by unit_learn 'split: the server sees the targets only'

mutant padding-sent 'CutCodec: tokens behind the last target are sent'
file learn/split/cut_codec.cc
old 'if (targets[i] != kNoToken) sent'
new 'sent'
caught_by unit_learn 'cut codec: tokens after the last target'

mutant not-a-number-passes 'CutCodec: values that are not finite are accepted'
file learn/split/cut_codec.cc
old '    if (!finite) bad = std::min(bad, number);'
new '    if (!finite) bad = sent.count();'
caught_by unit_learn 'cut codec: bytes of another length'

mutant feedback-of-places 'CutFeedback: what was cut off belongs to places, not to samples'
file learn/split/cut_codec.cc
old 'remembered(samples[s], sent.of[s] * width)'
new 'remembered(static_cast<std::uint32_t>(s), sent.of[s] * width)'
caught_by unit_learn 'cut codec: with feedback'

mutant feedback-unbounded 'CutFeedback: new samples are remembered without a limit'
file learn/split/cut_codec.cc
old '  if ((floats_ - had + size) * sizeof(float) > kFeedbackBytes) return nullptr;
'
new ''
caught_by unit_learn 'cut codec: feedback for ever new samples'

mutant next-message-lost 'RunHalves: a message that comes while another is answered is dropped'
file server/coordinator/ports/run_halves.cc
old '  if (state.answering != place) state.next = std::move(**whole);
'
new '  static_cast<void>(place);
'
caught_by integration_liars 'lying halves: copies of a message'

mutant cut-jumps 'SplitPlanner: a cut moves by more than one block'
file aggregation/planners/split.cc
old 'std::clamp(wanted, before - 1, before + 1)'
new 'wanted'
caught_by unit_aggregation 'adaptive cuts: better clients take a block over'

mutant old-updates-count 'SplitPlanner: updates of earlier periods move a cut again'
file aggregation/planners/split.cc
old 'update.round < first || '
new 'update.round + 9 < first || '
caught_by unit_aggregation 'adaptive cuts: only updates of the last period'

mutant answer-computed-twice 'SplitServer: a message that comes again is computed again'
file server/split/split_server.cc
old 'if (training.answer && training.asked == asked) return *training.answer;'
new ''
caught_by unit_server 'split server: over messages, with any cut'

mutant steps-unchecked 'SplitServer: a message of another step is computed'
file server/split/split_server.cc
old 'if (message.step != training.state->steps) return begin_again();'
new 'if (message.step > training.state->steps + 9) return begin_again();'
caught_by unit_server 'split server: messages that the task does not allow'

mutant half-of-an-open-batch 'SplitServer: a training may end within a batch'
file server/split/split_server.cc
old 'state.steps != steps || training.sequences > 0 || training.open'
new 'state.steps != steps || training.open'
caught_by unit_server 'split server: only a complete training has a half'

mutant parts-without-credit 'SplitOutgoing: all parts are sent at once'
file protocol/split_stream.cc
old 'sent_ >= taken_ + kSplitWindow'
new 'sent_ >= taken_ + kMaxSplitParts'
caught_by unit_client 'split link: many bytes travel in parts'

mutant lost-message-stays-lost 'SplitLink: after a lost connection only the rest of a message is sent'
file client/device/split_link.cc
old '    exchange->outgoing.again();'
new '    exchange->outgoing.taken(0);'
caught_by unit_client 'split link: a lost connection costs a message'

mutant split-without-leave 'A device takes part in split training unasked'
file client/prepared_run.cc
old '    if (!side.splits)'
new '    if (false)'
caught_by unit_client 'prepared run: activations leave a device only'

mutant split-behind-a-promise 'A device sends activations in a run that promises noise'
file client/prepared_run.cc
old '    if (masking || local)'
new '    if (masking && local)'
caught_by unit_client 'prepared run: activations leave a device only'

mutant split-round-lost 'a device waits for ever for a coordinator that was killed before it had noted the round'
file client/device/split_link.cc
old '    if (!request->again && request->coverage != exchange->waiting->trained) return false;'
new '    if (!request->again) return false;'
caught_by unit_client 'split link: a lost connection costs a message'

mutant split-other-task 'a message of an abandoned task is sent again for a task of the same round with other parameters'
file client/device/split_link.cc
old 'request->coverage != exchange->waiting->trained)'
new 'request->run.value() == 0)'
caught_by unit_client 'split link: a lost connection costs a message'
