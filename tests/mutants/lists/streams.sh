# shellcheck shell=bash
# Mutants of streams: screening, windows, what is kept, and how events are counted.

mutant stream-gap 'a segment reaches over a gap'
file learn/screening/stream_screening.cc
old '    ++figures_.gaps;
    interrupt(handlers);'
new '    ++figures_.gaps;'
caught_by unit_learn 'stream'

mutant stream-clock 'a step of the clock is ignored'
file learn/screening/stream_screening.cc
old '  } else if (step < 0) {'
new '  } else if (step < -1e9) {'
caught_by unit_learn 'stream'

mutant stream-broken-line 'a segment reaches over a line that is no sample'
file learn/screening/stream_screening.cc
old '        ++figures_.broken;
        interrupt(handlers);'
new '        ++figures_.broken;'
caught_by unit_learn 'stream'

mutant stream-wrong-rate 'samples at a wrong rate are kept'
file learn/screening/stream_screening.cc
old '  return !wrong_rate_;'
new '  return true;'
caught_by unit_learn 'stream'

mutant stream-window-labels 'the labels of a window are those of another place'
file learn/screening/stream_screening.cc
old '              made.labels.begin() + static_cast<std::ptrdiff_t>(made.begin));
  if'
new '              made.labels.begin());
  if'
caught_by unit_learn 'stream'

mutant stream-last-window 'the end of a long segment is left out'
file learn/screening/stream_screening.cc
old '  windows.push_back(window_at(segment, static_cast<std::ptrdiff_t>(samples - window), window, rate_hz));
  return windows;'
new '  return windows;'
caught_by unit_learn 'stream'

mutant stream-infinite 'a number that is not finite is a sample'
file learn/screening/sample_lines.cc
old '!read_number(fields[i], value) || !std::isfinite(value)'
new '!read_number(fields[i], value)'
caught_by unit_learn 'stream'

mutant stream-endless-line 'a line has no longest length'
file learn/screening/sample_lines.cc
old 'rest_.size() + piece.size() > kMaxLine'
new 'rest_.size() + piece.size() > 1000 * kMaxLine'
caught_by unit_learn 'stream'

mutant store-unbounded 'segments are not removed'
file learn/screening/segment_store.cc
old 'bytes_ + bytes > rules_.most_bytes'
new 'bytes > rules_.most_bytes'
caught_by unit_learn 'segment store'

mutant store-newest-first 'the newest segments leave'
file learn/screening/segment_store.cc
old '  std::ranges::sort(kept_, {}, &Kept::number);'
new '  std::ranges::sort(kept_, std::greater<>(), &Kept::number);'
caught_by unit_learn 'segment store'

mutant store-divided-event 'the parts of one event are on different sides'
file learn/screening/segment_store.cc
old '  if (segment.continued && side_'
new '  if (segment.labels.empty() && side_'
caught_by unit_learn 'segment store'

mutant events-any-class 'an event is found by one of another class'
file learn/evaluation/events.cc
old '  if (a.label != b.label || end <= begin) return false;'
new '  if (end <= begin) return false;'
caught_by unit_learn 'events'

mutant events-any-overlap 'any overlap counts'
file learn/evaluation/events.cc
old '  return 2 * (end - begin) >='
new '  return 20 * (end - begin) >='
caught_by unit_learn 'events'

mutant events-unchecked 'impossible sums of events are accepted'
file learn/evaluation/sums.cc
old '  return shape_.steps ? check_events() : Result<void>();'
new '  return {};'
caught_by unit_learn 'events'

mutant standardise-strength 'a standardised sample has lost its strength'
file learn/arrays/array_source.cc
old 'to[i * (numbers + 1) + numbers] = strength;'
new 'to[i * (numbers + 1) + numbers] = 0 * strength;'
caught_by unit_learn 'arrays: standardised'

mutant upsample-linear-ends 'interpolation at the ends takes a neighbour'
file learn/layers/pooling_layers.cc
old 'static_cast<double>(factor) - 0.5, 0.0);'
new 'static_cast<double>(factor) - 0.5, 0.25);'
caught_by unit_learn 'layers'

mutant confirm-one-device 'a device confirms itself'
file learn/screening/confirmation.cc
old '    if (seen.size() >= vehicles)'
new '    if (end - first >= vehicles)'
caught_by unit_learn 'confirmation'

mutant sensor-file-again 'a file is read again after a restart'
file client/streams/sensor.cc
old '        screening_.skip_until(*last);'
new '        screening_.skip_until(-1e9 - *last);'
caught_by unit_client 'sensor'

mutant sensor-flood 'a flood is not slowed down'
file client/streams/read_limit.h
old '    if (static_cast<double>(lines_) < most_)'
new '    if (static_cast<double>(lines_) < 100 * most_)'
caught_by unit_client 'sensor'

mutant stream-swapped-columns 'columns in another order swap the channels'
file learn/screening/sample_lines.cc
old '  wanted_ = channels;
'
new ''
caught_by unit_learn 'stream'

mutant stream-raised-weight 'an answer after the offer raises the weight'
file server/engine/round_engine.cc
old '(task->state == TaskState::kAssigned || task->state == TaskState::kLost)'
new '(task->state != TaskState::kFailed)'
caught_by unit_server 'round: an answer'

mutant stream-answer-ignored 'an answer before the offer counts for nothing'
file server/engine/round_engine.cc
old '    task->said = std::max(task->said, learn::trained_samples(arrived.samples, share));'
new ''
caught_by unit_server 'round: a client whose data grew'

mutant store-moved-file 'a file that its owner has moved still counts'
file learn/screening/segment_store.cc
old '    if (!removed) {'
new '    if (!removed && bytes_ == 0) {'
caught_by unit_learn 'segment store'

mutant stream-masked-growth 'a masked run is told that the data has grown'
file client/device/task_training.cc
old '    if (!run->masking && !run->local_privacy) self->context_'
new '    if (!run->local_privacy) self->context_'
caught_by unit_client 'daemon: where the coordinator must not know'

mutant stream-noised-growth 'a run with local noise is told that the data has grown'
file client/device/task_training.cc
old '    if (!run->masking && !run->local_privacy) self->context_'
new '    if (!run->masking) self->context_'
caught_by unit_client 'daemon: where the coordinator must not know'

mutant stream-answer-early 'a run without a segment is answered at once'
file client/device/task_worker.cc
old '  if (waits_for_stream(*described, side))
    return'
new '  if (false && waits_for_stream(*described, side))
    return'
caught_by unit_client 'daemon: a run on a stream'

mutant stream-status-forgotten 'the status does not count kept segments'
file client/diagnosis/status_file.cc
old '    ++stream->kept;'
new ''
caught_by unit_client 'status file'

mutant reverse-forward 'the gradient of a reversed sequence is not reversed'
file learn/layers/merging_layers.cc
old '    if (pass.dx[0] != nullptr) reverse(pass.dy, pass.rows, pass.dx[0]);'
new '    if (pass.dx[0] != nullptr) std::copy_n(pass.dy, pass.rows * shape_.size(), pass.dx[0]);'
caught_by unit_learn 'layers'

mutant confusion-transposed 'rows of the confusion matrix are predictions'
file learn/evaluation/sums.cc
old '    ++values_[confusion() + target * shape_.outputs + chosen];'
new '    ++values_[confusion() + chosen * shape_.outputs + target];'
caught_by unit_learn 'evaluation sums'
