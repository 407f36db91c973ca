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

mutant head-in-other-parts 'a compact head is multiplied in parts that do not suit the blocks of products'
file learn/models/language/space.h
old 'inline constexpr std::size_t kHeadTokens = 768;'
new 'inline constexpr std::size_t kHeadTokens = 700;'
caught_by unit_learn 'compact weights: training and evaluation'

mutant base-whole 'a client keeps all of the base as float32, whatever the run says'
file client/prepared_run.cc
old '.base_dtype = spec.task.model.base_dtype});'
new '.base_dtype = {}});'
caught_by unit_client 'base files: a device keeps the base'

mutant evaluation-without-base 'a client evaluates without the matrices that it keeps apart'
file learn/evaluation/evaluate.cc
old '  space.workspace->base = how.base;'
new '  space.workspace->base = nullptr;'
caught_by unit_learn 'compact weights: training and evaluation'

mutant tokenizer-part-twice 'a part of a tokenizer that comes twice ends the run on a device'
file client/device/tokenizer_fetches.cc
old '  if (part.offset < fetch.bytes.size()) return;'
new '  if (part.offset < fetch.bytes.size() / 2) return;'
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
