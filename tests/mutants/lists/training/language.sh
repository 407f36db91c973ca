# shellcheck shell=bash
# Mutants of language models, of published models, and of their tokenizers.

mutant gqa-last-head-alone 'Attention: only the last of the heads that share keys adds to their gradient'
file learn/models/language/attention.cc
old '.add = !head.first};'
new '.add = false};'
caught_by unit_learn 'transformer: scores are a slow one'

mutant rotary-turns-back-wrongly 'Rotary positions: gradients are turned the same way as values'
file learn/models/language/rotary.cc
old 'heads.back ? -1.0F : 1.0F'
new 'heads.back ? 1.0F : 1.0F'
caught_by unit_learn 'transformer: scores are a slow one'

mutant lowest-block-stops-early 'Transformer: the gradient stops a block too early'
file learn/models/language/passes.cc
old 'pass.places.blocks[i].layer >= below;)'
new 'pass.places.blocks[i].layer > below;)'
caught_by unit_learn 'transformer: training some layers'

mutant untrained-block-computed 'Transformer: blocks that are not trained get gradients'
file learn/models/language/passes.cc
old 'return pass.adapters.empty() && !pass.space.trained.layers[layer].either.empty();'
new 'return pass.adapters.empty() && layer < pass.space.trained.layers.size();'
caught_by unit_learn 'transformer: training some layers'

mutant recomputed-too-late "Transformer: a block's backward pass uses the activations of the block above"
file learn/models/language/passes.cc
old '    if (space.recompute && i + 1 < last)'
new '    if (space.recompute && i + 2 < last)'
caught_by unit_learn 'transformer: activations that are computed again'

mutant decoder-forgets-position 'Decoder: a piece of several tokens is read at one position'
file learn/models/language/decoder.cc
old '                    .length = rows});'
new '                    .length = 1});'
caught_by unit_learn "generate: a decoder's scores"

mutant decoder-sees-later-tokens 'Decoder: a token of a prompt sees those after it'
file learn/models/language/decoder.cc
old '.seen = length_ + r + 1,'
new '.seen = std::min(length_ + r + 2, shape_.context),'
caught_by unit_learn "generate: a decoder's scores"

mutant long-word-merges-outdated 'Tokenizer: a long word merges a pair that is no longer there'
file learn/text/vocabulary/merging.cc
old 'symbols_[next_[candidate.at]] == candidate.right;'
new 'symbols_[next_[candidate.at]] != kNoToken;'
caught_by unit_learn 'vocabulary: short and long words'

mutant merge-makes-other-bytes 'Vocabulary: a merge may make a token with other bytes'
file learn/text/vocabulary/vocabulary.cc
old '  if (v.tokens[merge.made] != v.tokens[merge.left] + v.tokens[merge.right])'
new '  if (v.tokens[merge.made].empty())'
caught_by unit_learn 'vocabulary: a text that is wrong'

mutant text-becomes-control 'Tokenizer: a special token in a text becomes a control token'
file learn/text/vocabulary/tokenizer_json.cc
old '      control[value_of(token, "id").get<std::size_t>()] = true;'
new '      control[value_of(token, "id").get<std::size_t>()] = false;'
caught_by unit_learn 'published: a folder of'

mutant rare-byte-ends-text 'Tokenizer: a byte without a token becomes the end of a text'
file learn/text/tokenizer.cc
old 'if (words.unknown == words.begin || words.unknown == words.end) words.unknown.reset();'
new 'if (words.unknown == words.begin) words.unknown.reset();'
caught_by unit_learn 'vocabulary: a byte that no token'

mutant shard-outside-folder 'Import: an index may name a file outside its folder'
file learn/weights/hugging_face.cc
old 'if (name.empty() || std::filesystem::path(name).filename() != name)'
new 'if (name.empty())'
caught_by unit_learn 'refused models: an index of shards'

mutant imports-not-finite 'Import: a weight that is not finite is taken'
file learn/weights/weight_file.cc
old 'if (!std::ranges::all_of(piece, [](float value) { return std::isfinite(value); }))'
new 'if (piece.empty())'
caught_by unit_learn 'refused models: a value that is not finite'

mutant weight-beyond-file 'Import: a tensor may lie beyond the end of its file'
file learn/weights/weight_file.cc
old 'if (weight.offset > file.size() || weight_bytes(weight.type, count) > file.size() - weight.offset)'
new 'if (weight.offset > file.size())'
caught_by unit_learn 'refused models: a GGUF file that was cut'

mutant halves-not-joined 'Import: heads of llama2.c and GGUF keep their pairs'
file learn/weights/published.cc
old '    const std::size_t source = r - within + 2 * (within % (size / 2)) + within / (size / 2);'
new '    const std::size_t source = r - within + within % size;'
caught_by unit_learn 'published: a file of llama2'

mutant peft-scale-forgotten 'PEFT: the scale of an adapter is not read'
file learn/weights/peft.cc
old 'const auto factor = static_cast<float>(scale / static_cast<double>(adapters_.shape().scale));'
new 'const auto factor = static_cast<float>(scale / scale / static_cast<double>(rank) * static_cast<double>(rank + 1));'
caught_by unit_learn 'published: adapters are written'

mutant model-writes-escapes 'Generation: a model can write escape sequences to a terminal'
file apps/commands/model_commands.cc
old "(code < 0x20 && code != '\\n' && code != '\\t')"
new "(code == 0 && size > 1)"
caught_by integration_language 'language: what a model writes'

mutant tokenizer-unchecked "a device takes whatever the coordinator sends as the run's tokenizer"
file client/device/tokenizer_fetches.cc
old 'if (to_hex(sha256(ended.bytes)) != ended.hash)'
new 'if (ended.hash.empty())'
caught_by unit_client "A1: tokenizer: a coordinator that sends something else"

mutant tokenizer-without-end "a client may ask for a tokenizer's parts without end"
file server/access/message_allowance.h
old '    if (left == 0) return false;
    --left;
    return true;
  }

 private:'
new '    if (left == 0) return left == 0;
    --left;
    return true;
  }

 private:'
caught_by unit_server "for each part of a tokenizer once"

mutant frozen-copied "training reads frozen weights from its own copy, which does not have them"
file learn/trainer.cc
old '  plan.workspace->frozen = options.frozen;
'
new ''
caught_by unit_learn "frozen parameters: training reads them"

mutant base-unchecked 'a device takes a base of another type than the run says, and trains another model'
file learn/models/compact_weights.cc
old '      if (std::bit_cast<std::uint32_t>(values[i]) != std::uint32_t{half} << 16U)'
new '      if (!layout_)'
caught_by unit_learn 'compact weights: a value of another type'

mutant base-exact 'the base is not rounded before the run'
file learn/model_file.cc
old '  if (values) round_base(*model.layout(), model.spec().base_dtype, values->values());'
new '  if (values) round_base(*model.layout(), BaseDtype::kFloat32, values->values());'
caught_by integration_language 'language: a base is fine-tuned by adapters'

mutant base-changes 'an aggregator may add to a base that devices keep rounded'
file aggregation/aggregators/registry.cc
old '                                            .changes_base = true};'
new '                                            .changes_base = false};'
caught_by unit_run 'recipe: what cannot work with AdamW'

mutant base-whole 'a client keeps all of the base as float32, whatever the run says'
file client/prepared_run.cc
old '.base = {.dtype = spec.task.model.base_dtype,'
new '.base = {.dtype = {},'
caught_by unit_client 'base files: a device keeps the base'

mutant evaluation-without-base 'a client evaluates without the matrices that it keeps apart'
file learn/evaluation/evaluate.cc
old '  space.workspace->base = how.base;'
new '  space.workspace->base = nullptr;'
caught_by unit_learn 'compact weights: training and evaluation'

mutant tokenizer-part-twice 'a part of a tokenizer that comes twice ends the run on a device'
file client/device/tokenizer_fetches.cc
old '  if (part.offset < fetch.bytes.size()) return;'
new '  if (fetch.hash.empty()) return;'
caught_by unit_client 'A1: tokenizer: a coordinator that sends something else'

mutant import-unread 'a published model becomes a file that no program reads'
file learn/weights/import.cc
old '  FEDGE_TRY_VOID(check_description(metadata, path.string()));'
new ''
caught_by unit_learn 'refused models: numbers that no run file may have'

mutant head-unread 'a device that computes the loss of split training does not fetch the head'
file core/split/split_layout.cc
old '  if (head) ranges.push_back({ends_.back(), adapters_.offset});'
new '  if (head && ranges.empty()) ranges.push_back({ends_.back(), adapters_.offset});'
caught_by unit_learn 'split: a client needs nothing of the model'

mutant base-not-a-number 'a run begins with a model of other than numbers'
file learn/model_file.cc
old '      wrong != numbers.end())'
new '      numbers.empty())'
caught_by unit_learn 'external: '

mutant merged-unread 'a merged model has a key that no program reads without adapters'
file apps/commands/model_commands.cc
old '{"adapter", "base_dtype"}) table->erase(key);'
new '{"adapter"}) table->erase(key);'
caught_by integration_language 'language: a model writes the same text'

mutant shared-unchecked 'a client computes with what a shared file has, whatever its own model has'
file learn/models/compact_weights.cc
old '  if (file_ && !file_->writable()) return std::memcmp(&place, &value, sizeof value) == 0;'
new '  if (file_ && !file_->writable()) return std::memcmp(&place, &value, 0) == 0;'
caught_by unit_client 'shared base: a file with other values'
caught_by unit_learn 'compact weights: those of a published file'

mutant shared-by-all 'all bases of a layout share one file, which clients replace in turn'
file client/loaded_model.cc
old '    text += " " + std::to_string(begin) + " " + to_hex(manifest.chunks[i]);'
new '    text += " " + std::to_string(begin);'
caught_by unit_client 'shared base: new adapters leave the file'

mutant shared-named-by-adapters 'with new adapters, clients write a new file'
file client/loaded_model.cc
old '|| has_trainable(*loading.layout, begin, end)) continue;'
new '|| has_trainable(*loading.layout, end, begin)) continue;'
caught_by unit_client 'shared base: new adapters leave the file'

mutant shared-own-errors 'an error of the own model counts as one of the shared file'
file client/loaded_model.cc
old '  FEDGE_TRY_VOID(load_into(loaded, loading));
  if (const auto done'
new '  (void)load_into(loaded, loading);
  if (const auto done'
caught_by unit_client 'shared base: errors of the client'

mutant shared-never 'clients keep the base in memory of their own, whatever the owner says'
file client/device/task_worker.cc
old '                        .shared_bases = options.shared_bases,
'
new ''
caught_by integration_federation 'shared base: devices with one directory'

mutant shared-writable 'a process can change a file that others read'
file core/platform/shared_file.cc
old '  if (::mprotect(data_, size_, PROT_READ) != 0) return'
new '  if (false) return'
caught_by unit_core 'shared file: what one process has published'

mutant open-file-removed 'a file that a process has open is removed'
file core/platform/shared_file.cc
old '  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
'
new ''
caught_by unit_core 'shared file: (what is not|of unopened)'

mutant others-may-write 'a directory in which other users may write is used'
file client/loaded_model.cc
old '(perms::group_write | perms::others_write)'
new 'perms::none'
caught_by unit_client 'shared base: a directory that others can write'

mutant shared-unlocked 'clients that begin at once write the same file at once'
file client/loaded_model.cc
old '  FEDGE_TRY(written, load_published(loaded, loading, path));
  if (written) return {};
'
new ''
caught_by unit_client 'shared base: a client waits while another writes'

mutant planted-file-mapped 'a file that other users can write is mapped'
file core/platform/shared_file.cc
old '(status.st_mode & (S_IWGRP | S_IWOTH)) != 0)'
new '(status.st_mode & S_ISVTX) != 0)'
caught_by unit_core 'shared file: another size'

mutant split-base-shared 'in split training clients write a file for each cut'
file client/prepared_run.cc
old 'task.model().reads_apart() && spec.task.training.local_model != LocalModel::kSplit;'
new 'task.model().reads_apart() && spec.task.training.local_model != LocalModel::kBlock;'
caught_by unit_client 'prepared run: activations leave a device only'
