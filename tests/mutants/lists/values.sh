# shellcheck shell=bash
# Mutants of the checks of values and of other untrusted input (R2, R3, A6), and of
# the choice of samples.

mutant skip-finite-check 'R2: an update with a value that is no number is folded'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  if (limit > 0) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-nan-check 'R2: what is no number passes for a small one'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  const auto largest = fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size());
  if (largest <= limit || largest > 0x7f800000) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-finite-check-decoded 'R2: a value that is no number comes out of a compressed update'
file protocol/codecs/payload_decoder.cc
old '    if (codec != Codec::kFloat32 && !all_finite(out)) return not_finite(out);
'
new ''
caught_by unit_protocol 'payload'

mutant skip-update-check 'R2: nobody looks at the values of an update'
file run/stored_update.cc
old '  const auto norm = inspect_values(rules, arrived->manifest().coverage, StoredValues(update.plain));'
new '  const Result<double> norm = rules.layout.size() > 0 ? 1.0 : 0.0;'
caught_by integration_federation 'damaged updates|refused updates'

mutant endless-keys 'R3: a key of ten thousand parts takes the stack of who reads it'
file core/config/document.cc
old '  if (const TomlDepth deepest = measure_toml(text, kMaxParserDepth); deepest.levels > kMaxParserDepth)'
new '  if (const TomlDepth deepest = measure_toml(text, kMaxParserDepth); deepest.levels > text.size())'
caught_by unit_core 'keys of thousands of parts'

mutant string-hides-depth 'R3: what looks like the begin of a text hides the depth of what follows'
file core/config/toml_depth.cc
old '  const bool escapes = mark == '"'\"'"';'
new '  const bool escapes = mark != 0;'
caught_by unit_core 'keys of thousands of parts'

mutant reads-devices 'R3: a file that is a device is read until memory is gone'
file core/platform/files.cc
old '  if (!S_ISREG(status.st_mode))'
new '  if (S_ISDIR(status.st_mode))'
caught_by unit_core 'a pipe is refused'

mutant endless-file 'R3: a file that says it is empty is read without a bound'
file core/platform/files.cc
old '    if (text.size() + static_cast<std::size_t>(got) > max_bytes) return too_large(path, max_bytes);
'
new '    (void)max_bytes;
'
caught_by unit_core 'one that is larger is not begun'

mutant whole-task-only 'R3: a model whose run has told its clients more than the task is refused'
file learn/model_file.cc
old '    if (std::ranges::find(own, key) == own.end()) root.ignore(key);'
new '    if (std::ranges::find(own, key) == own.end() && value.where.empty()) root.ignore(key);'
caught_by unit_run 'the model of a serverless'

mutant option-takes-files 'R3: --set takes the files after it as further values'
file apps/cli/command_line.cc
old '    if (!option->get_positional()) option->allow_extra_args(false);'
new '    if (option->get_positional()) option->allow_extra_args(false);'
caught_by integration_programs 'one that may be repeated'

mutant counts-after-parsing 'A6: a message of a million empty messages is parsed before they are counted'
file protocol/wire_lengths.cc
old '    if (count > limited->most)'
new '    if (count > bytes.size())'
caught_by unit_protocol 'row 20: codec: what repeats'

mutant packed-counts-once 'A6: numbers that stand together in one field count as one'
file protocol/wire_lengths.cc
old '  if (packing == Packing::kNever) return 1;'
new '  if (packing != Packing::kFixed64) return 1;'
caught_by unit_protocol 'row 20: codec: what repeats'

mutant late-errors-without-place 'an error that is found after reading does not say where'
file core/config/reader.cc
old '  if (key.empty()) return error;'
new '  if (key.empty() || !document.root.empty()) return error;'
caught_by unit_core 'found after reading'

mutant nested-loss-summed 'the loss of nested ranks is the sum over them'
file learn/trainer.cc
old '    loss.mean += share * one.mean;'
new '    loss.mean += one.mean;'
caught_by unit_learn 'the mean of the losses at each rank'

mutant warm-up-by-one 'a learning rate is warm a step too early'
file learn/optimizers/optimizer.cc
old '    return static_cast<float>(rate * progress(step + 1) / schedule.warmup);'
new '    return static_cast<float>(rate * progress(step + 2) / schedule.warmup);'
caught_by unit_learn 'in just as many steps'

mutant examples-unread 'an example of the help names an option that does not exist, and no test notices'
file apps/cli/command_line.cc
old '        app.parse(arguments_of(example.command), false);'
new '        app.parse(arguments_of(example.command).substr(0, 0), false);'
caught_by integration_programs 'a wrong example'

mutant errors-follow 'errors of a file that only follow from another one are reported too'
file core/config/problems.cc
old '    if (again || follows(problem)) continue;'
new '    if (again) continue;'
caught_by unit_core 'what only follows'

mutant former-keys-always 'a key beside the wrong kind is dropped although --set has changed nothing about it'
file core/config/former_keys.cc
old '      if (!kind || wrong_before.contains(problem.key)) continue;'
new '      if (!kind) continue;'
caught_by unit_core 'beside the wrong kind'

mutant equal-events-lost 'equal events are held back and never counted'
file core/platform/repeated_events.cc
old '  ++found->second.held_back;'
new '  found->second.held_back = 0;'
caught_by unit_core 'repeated events: a few lines'

mutant partition-keeps-validation 'data.validation: the partition forgets to leave out the validation samples'
file learn/data/validation.cc
old '  const std::vector<std::uint32_t> rest = samples_without(validation, labels.size());'
new '  const std::vector<std::uint32_t> rest = samples_without({}, labels.size());'
caught_by unit_learn 'no client has'

mutant evaluate-on-test 'data.validation: the model is evaluated on the test samples all the same'
file learn/data/dataset.cc
old '  if (spec.validation == 0) return load_test(spec);'
new '  if (spec.validation < 1) return load_test(spec);'
caught_by unit_learn 'validation'
