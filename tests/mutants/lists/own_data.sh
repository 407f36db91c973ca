# shellcheck shell=bash
# Mutants of own data and of evaluations by clients.

mutant own-any-path 'a directory of public data sets serves runs on own data, too'
file learn/data/data_directories.cc
old '    if (found == directories.end() || (only_here && name.empty())) continue;'
new '    if (found == directories.end()) continue;'
caught_by unit_learn 'own data: a device uses only a path'

mutant own-tells-reasons 'the coordinator gets the message about data at a path that the owner named'
file client/prepared_run.cc
old '  if (!side.data_directories.empty()) return true;'
new '  if (side.data_directories.size() > 1000) return true;'
caught_by unit_client 'evaluation: an error about own data'

mutant own-overlap 'test samples are trained on'
file learn/data/files/split.cc
old '  return select_samples(data, samples_without(test, data.size()));'
new '  return data;'
caught_by unit_learn 'own data: a simulation'

mutant csv-quotes 'a line end within quotes ends the row'
file learn/tables/csv_reader.cc
old '      if (in_quotes) continue;'
new '      if (in_quotes && at_end_) continue;'
caught_by unit_learn 'csv:'

mutant evaluation-beside-noise 'a device evaluates models in runs whose updates have noise'
file client/prepared_run.cc
old '  if ((noised || whole > 0) && prepared->samples.value() > 0) prepared->evaluates = SampleCount(0);'
new '  if ((noised || whole > 0) && prepared->samples.value() > 999999) prepared->evaluates = SampleCount(0);'
caught_by unit_client 'evaluation: a device evaluates nothing'

mutant evaluation-whole-model 'an evaluation may cover the whole model'
file client/engine/run_book.cc
old '  if (!trains && request.coverage.count() != 1)'
new '  if (!trains && request.coverage.count() == 0)'
caught_by unit_client 'evaluation: a client refuses one'

mutant evaluation-same-terms 'a session of evaluations has the terms of one of updates'
file privacy/secure_aggregation/session.cc
old '  return sha256(text.add(terms).bytes());'
new '  return text.add(terms).bytes().empty() ? Digest() : terms;'
caught_by unit_client 'evaluation: a session'

mutant evaluation-any-samples 'a client evaluates as many samples as it likes'
file learn/evaluation/sums.cc
old '  if (static_cast<std::uint64_t>(samples) > most)'
new '  if (static_cast<std::uint64_t>(samples) > most + kMostSamples)'
caught_by unit_server 'evaluation: who declines'

mutant evaluation-summed-twice 'a client masks the evaluation of one model twice'
file client/secure/summed_updates.cc
old '  return zeros ? Digest() : sha256(std::as_bytes(sums));'
new '  return zeros || !sums.empty() ? Digest() : sha256(std::as_bytes(sums));'
caught_by unit_client 'evaluation: a client masks it'

mutant evaluation-starts-rounds 'a client that only evaluates makes a round possible'
file server/engine/round_selection.cc
old '  std::size_t available = present_.trainers();'
new '  std::size_t available = present_.size();'
caught_by unit_server 'evaluation: a client that only'

mutant evaluation-lost-at-restart 'a restart before the model is stored loses the evaluation'
file server/engine/sums/round_sums.cc
old '  anew_ = true;'
new '  anew_ = true, return_by_.reset(), returning_.clear();'
caught_by unit_server 'evaluation: a restart before'

mutant arrays-any-label 'a label beyond the classes is accepted'
file learn/arrays/array_source.cc
old '      if (!(value >= 0.0 && value < classes))'
new '      if (!(value >= 0.0 && value <= classes))'
caught_by unit_learn 'arrays: an error names'

mutant arrays-layout 'channels first are read as channels last'
file learn/arrays/array_source.cc
old '        place = sample * schema_.shape.size() + inside % pixels * channels + channel;'
new '        place = sample * schema_.shape.size() + inside;'
caught_by unit_learn 'arrays: samples have their channels last'

mutant arrays-size-lies 'a file whose header describes other elements is read'
file learn/arrays/array_file.cc
old '  if (stream.source_->size() != expected)'
new '  if (stream.source_->size() > expected)'
caught_by unit_learn 'arrays: an error names'

mutant windows-across-groups 'a window joins rows of two recordings'
file learn/tables/table_source.cc
old '        FEDGE_TRY_VOID(end_group(path.string()));'
new '        if (schema_.hop == 0) FEDGE_TRY_VOID(end_group(path.string()));'
caught_by unit_learn 'table: with a window'

mutant arrays-any-path 'a run names an array of another directory of the device'
file learn/arrays/array_schema.cc
old '    return !name.empty() && name.find_first_not_of(kArrayCharacters) == std::string::npos;'
new '    return !name.empty();'
caught_by unit_learn 'arrays: a run cannot make'

mutant statistics-beside-noise 'a device sends statistics in runs whose updates have noise'
file client/prepared_run.cc
old '  const bool counts = side.counts && !by_clients && (!noised || whole > 0);'
new '  const bool counts = side.counts && (!noised || whole > 0 || by_clients);'
caught_by unit_client 'statistics: none leave a device'

mutant statistics-unlimited 'a client counts its data as often as it is asked'
file client/engine/run_book.cc
old '  if (request.kind == TaskKind::kStatistics && request.round.value() > kMostStatistics)'
new '  if (request.kind == TaskKind::kStatistics && request.round.value() > 1000 * kMostStatistics)'
caught_by unit_client 'statistics: a client counts its data at most'

mutant statistics-same-terms 'a session of statistics has the terms of one of evaluations'
file privacy/secure_aggregation/session.cc
old '                                          : "fedge secure aggregation 1: statistics");'
new '                                          : "fedge secure aggregation 1: evaluation");'
caught_by unit_client 'statistics: a client masks each attempt once'

mutant statistics-any-samples 'a client counts as many samples as it likes'
file learn/statistics/federated_statistics.cc
old '  if (static_cast<std::uint64_t>(samples) > most)'
new '  if (static_cast<std::uint64_t>(samples) > most + 1000)'
caught_by unit_learn 'statistics: sums that no samples have'

mutant statistics-open-bins 'values beyond the last edge are in no bin of their column'
file learn/statistics/bins.cc
old '  const auto after = std::upper_bound(edges.begin() + 1, edges.end() - 1, value);'
new '  const auto after = std::upper_bound(edges.begin() + 1, edges.end(), value);'
caught_by unit_learn 'bins:'

mutant statistics-half-error 'the stated error of a quantile is half of what it may be'
file learn/statistics/bins.cc
old '  return {low + width * share, width * std::max(share, 1 - share)};'
new '  return {low + width * share, width * std::max(share, 1 - share) / 2};'
caught_by unit_learn 'bins: quantiles are within'

mutant statistics-unnormalised 'a device trains without the normalisation that the run requires'
file learn/task.cc
old '  if (given == expected) return {};'
new '  if (given <= expected) return {};'
caught_by unit_client 'statistics: a device trains only with'

mutant statistics-forgotten 'a restarted coordinator has lost the statistics'
file server/sum_results.cc
old '  return statistics_->restore(std::move(saved->edges), std::move(saved->sums));'
new '  return Result<void>();'
caught_by integration_programs 'own statistics: a coordinator that is killed'

mutant statistics-same-session 'the sessions of statistics and of training may have the same round and attempt'
file server/engine/round_selection.cc
old '  if (!rules_.statistics) attempt_ = 0;'
new '  attempt_ = 0;'
caught_by unit_server 'statistics phase: with secure sums'

mutant images-partial 'what is missing of a truncated JPEG is filled with grey'
file learn/images/image_file.cc
old '                        image.channels == 1 ? TJPF_GRAY : TJPF_RGB, kFlags) != 0)'
new '                        image.channels == 1 ? TJPF_GRAY : TJPF_RGB, kFlags) != 0 && image.width == 0)'
caught_by unit_learn 'images: a file that is cut short'

mutant images-any-size 'an image allocates as much as its header says'
file learn/images/image_file.cc
old '  if (height > kMaxImagePixels / width)'
new '  if (height > 100000 * kMaxImagePixels / width)'
caught_by unit_learn 'images: a size that is a lie'

mutant images-one-mean 'all channels are normalised by the first mean'
file learn/statistics/columns.cc
old '      if (!by.empty()) value = (value - by.mean[c]) / by.deviation[c];'
new '      if (!by.empty()) value = (value - by.mean[0]) / by.deviation[c];'
caught_by unit_learn 'images: the directories are the classes'

mutant json-skips-missing 'a field that an object lacks keeps the value of the row before'
file learn/tables/json_lines.cc
old '  values_.assign(columns_.size(), "");'
new '  values_.resize(columns_.size());'
caught_by unit_learn 'json lines: every kind of value'

mutant safetensors-beyond 'an array may reach beyond its file'
file learn/arrays/safetensors_array.cc
old '  if (begin > end || end > file.size() - data || end - begin != bytes)'
new '  if (begin > end || end - begin != bytes)'
caught_by unit_learn 'fuzz corpus: JSON lines, and arrays'

mutant statistics-other-bins 'an attempt may be repeated with other bins'
file client/local/client_memory.cc
old '  if (attempt.value() <= *last)'
new '  if (attempt.value() < *last)'
caught_by unit_client 'statistics: an attempt counts in the same bins only'

mutant target-scale 'errors of values are reported in deviations'
file learn/evaluation/sum_metrics.cc
old '    const double by = scale.empty() ? 1 : static_cast<double>(scale[k]);'
new '    const double by = scale.size() < 1000 ? 1 : static_cast<double>(scale[k]);'
caught_by unit_learn 'task sums: values'

mutant values-lie 'a client claims errors that contradict their squares'
file learn/evaluation/sums.cc
old '    if (contradict(errors, squared_errors) || contradict(values - most, squared_values))'
new '    if (contradict(0, squared_errors))'
caught_by unit_learn 'task sums: a liar'

mutant labels-lie 'a client claims more right labels than it has'
file learn/evaluation/sums.cc
old '  if (!one_each || hits != values_[kRight])'
new '  if (!one_each || hits > values_[kRight] + 1000)'
caught_by unit_learn 'task sums: a liar'

mutant points-order 'the classes of the points are those of another sample'
file learn/data/targets/target.cc
old '    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * size);'
new '    const auto first = all.begin() + static_cast<std::ptrdiff_t>(0 * i * size);'
caught_by unit_learn 'task data: parts'

mutant far-targets 'a target of any size is trained on'
file learn/tables/table_source.cc
old '    if (!schema_.raw && std::abs(value) > EvaluationSums::kMostValue)'
new '    if (schema_.raw && std::abs(value) > EvaluationSums::kMostValue)'
caught_by unit_learn 'task data: a table'

mutant best-forgotten 'a coordinator that restarts has forgotten its best model'
file server/run_state_saved.cc
old '    best_.emplace(track, std::move(object));'
new '    if (track.value() > 0) best_.emplace(track, std::move(object));'
caught_by integration_programs 'selection: a coordinator that is killed'

mutant last-kept 'the last model is kept instead of the best'
file server/run_state.cc
old '  if (!progress_.add(metrics)) return metrics;'
new '  (void)progress_.add(metrics);'
caught_by integration_programs 'selection: the best model'

mutant never-early 'a run whose rule to end is fulfilled goes on'
file server/engine/round_engine.cc
old '  if (committed.ends) return finish(kReached, effects);'
new '  if (committed.ends && !committed.made) return finish(kReached, effects);'
caught_by integration_programs 'selection: the best model'

mutant evaluation-by-trainers 'clients that train evaluate beside noise'
file server/engine/sums/round_sums.cc
old '    if (!counts && rules_.evaluation->apart && trains) return;'
new '    if (!counts && rules_.evaluation->apart && trains && counts) return;'
caught_by unit_server 'evaluation: where results would escape'

mutant shares-of-any-size 'a client may change the statistics by more than its share'
file learn/statistics/shares.cc
old '    if (missing + sum(first + Shape::kBins, shape.bins) > static_cast<double>(all))'
new '    if (missing + sum(first + Shape::kBins, shape.bins) > 2 * static_cast<double>(all))'
caught_by unit_learn 'shares: those of a liar are refused'

mutant shares-of-samples 'a client with more samples counts more in statistics with noise'
file learn/statistics/shares.cc
old '  const auto samples = static_cast<double>(counts[Shape::kSamples]);'
new '  const auto samples = std::min(3.0, static_cast<double>(counts[Shape::kSamples]));'
caught_by unit_learn 'shares: '

mutant statistics-free-of-charge 'steps of the statistics cost nothing of the budget'
file run/privacy/privacy_ledger.cc
old '  if (charges.statistics > 0) releases.push_back(spec.statistics_release(charges.statistics));'
new '  if (charges.statistics > 9) releases.push_back(spec.statistics_release(charges.statistics));'
caught_by unit_run 'privacy ledger: steps of statistics'

mutant statistics-outside-the-budget 'the noise of the rounds forgets what the statistics cost'
file run/privacy/differential_privacy.cc
old '    const auto noise = privacy::calibrate_noise(all, budget, spec.accountant, beside);'
new '    const auto noise = privacy::calibrate_noise(all, budget, spec.accountant);'
caught_by unit_run 'private run: statistics and rounds keep'

mutant statistics-charge-forgotten 'a restart forgets the steps of statistics that were released'
file server/store/saved_state.cc
old '  state.charges.statistics = in.statistics_charges();'
new '  state.charges.statistics = 0;'
caught_by unit_server 'saved state: '

mutant agreed-names-by-count 'rare names are not told apart'
file learn/statistics/federated_statistics.cc
old '                               slots_[c] > 0 ? Divide::kEvenly : Divide::kByCount);'
new '                               slots_[c] > 9999 ? Divide::kEvenly : Divide::kByCount);'
caught_by unit_learn 'agreed names: rare names'

mutant declined-never-told 'a client that takes no part never learns that the run has ended'
file server/conductor/conductor.cc
old '                   for (const ClientId client : declined_)'
new '                   for (const ClientId client : std::set<ClientId>())'
caught_by integration_programs 'own data: a device whose data does not fit'

mutant statistics-without-noise 'the statistics of a private run have no noise'
file server/sum_results.cc
old '    privacy::add_noise(total, {.key = key, .variance = variance_}, parallel);'
new '    (void)parallel;'
caught_by integration_programs 'own statistics: with noise each site'

mutant evaluation-shared-any 'a client claims more right predictions of the shared model than it has made'
file learn/evaluation/sums.cc
old '  if (std::max(values_[kRight], values_[kSharedRight]) > predictions)'
new '  if (values_[kRight] > predictions)'
caught_by unit_learn 'task sums: a liar'
